"""The comparison of table metrics with published rankings of changed tables, on tables of our own."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

COMMAND = runpy.run_path(str(Path(__file__).parents[3] / "perf" / "tabxbench.py"))
TABLE = "| name | points |\n|---|---|\n| {} | 12 |\n| Bob | 31 |\n| Eve | 45 |"
# The third copy is the best, then the first, the fifth, the second and the fourth.
CHANGES = (
    ("45", "46"),
    ("31 |\n| Eve | 45", "32 |\n| Tom | 99"),
    ("points", "points"),
    ("12 |\n| Bob | 31 |\n| Eve | 45", "7"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tables, gold = [], []
    for name, digits in (("Ann", "20413"), ("Zoe", "31524"), ("Kim", "20413"), ("Una", "31524")):
        table = TABLE.format(name)
        copies = [*(table.replace(*change) for change in CHANGES), table.replace("31", "32").replace("45", "46")]
        tables.append({"original": table} | {f"pertubation{place}": copy for place, copy in enumerate(copies)})
        gold.append({"original": table, "rankings": digits})
    (tmp_path / "tables.json").write_text(json.dumps(tables))
    (tmp_path / "gold_ranking.json").write_text(json.dumps(gold))
    return tmp_path


def test_a_metric_that_orders_all_copies_as_people_do_agrees_fully(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert COMMAND["main"](folder) == 0
    first, second = capsys.readouterr().out.split("###")[1:]
    assert first.startswith(" 4 references; the digits are copies from best to worst")
    line = next(line for line in first.splitlines() if line.startswith("| table\\_score "))
    assert line.count(" 1.000 |") == 3, "equal values have no bounded interval"
    assert second.startswith(" 4 references; the digits are the rank of each copy")


@pytest.mark.parametrize(("scores", "share"), [([0.9, 0.5, 0.1], 1.0), ([0.1, 0.5, 0.9], 0.0), ([0.5] * 3, 0.5)])
def test_a_tie_counts_as_half_of_a_pair(scores: list[float], share: float) -> None:
    assert COMMAND["share_ordered_right"](scores, [0, 1, 2]) == share


def test_rankings_of_other_tables_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "gold_ranking.json").write_text(json.dumps([{"original": "x", "rankings": "01234"}] * 4))
    assert COMMAND["main"](folder) == 2
    assert "different tables" in capsys.readouterr().err
