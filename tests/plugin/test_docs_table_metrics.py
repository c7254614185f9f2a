"""Every example and every score of docs/table_metrics.md holds, as it stands there."""

from __future__ import annotations

import json
import re
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main
from evalsuite.metrics import tables
from evalsuite.stats.correlation import PairResamples

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = (Path(__file__).parents[2] / "docs" / "table_metrics.md").read_text("utf-8")
COMMANDS = re.findall(r"^evalsuite .+?(?= {2,}#|$)", PAGE, re.MULTILINE)
WANTED = "| City | 2023 | 2024 |\n|---|--:|--:|\n| Ulm | 1,200 | -40 |\n| Jena | 900 | 75 |\n| Hof | 310 | 62 |"
HEAD, RULE, *ROWS = WANTED.split("\n")
CHANGED = {
    "1200 for 1,200": WANTED.replace("1,200", "1200"),
    "40 for -40": WANTED.replace("-40", "40"),
    "two heads swapped": WANTED.replace("2023 | 2024", "2024 | 2023"),
    "rows reversed": "\n".join([HEAD, RULE, *reversed(ROWS)]),
}
METRICS: dict[str, Callable[[str], float]] = {
    **{
        name: partial(getattr(tables, name), reference=WANTED, format="markdown")
        for name in ("teds", "teds_structure", "grits_content", "grits_topology", "rms")
    },
    "cell_f1": lambda answer: tables.cell_f1(answer, WANTED, format="markdown").cells,
    "table_score": lambda answer: tables.table_score(answer, WANTED).value,
}


def test_the_example_prints_number_signature_and_diff(capsys: pytest.CaptureFixture[str]) -> None:
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert example
    exec(example[1], {})
    shown = capsys.readouterr().out
    assert "table_score|version:" in shown
    assert "1,700 → 1,200" in shown


@pytest.mark.parametrize("metric", METRICS)
def test_the_page_shows_the_scores_of_the_changed_table(metric: str) -> None:
    lines = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    row = next(cells for cells in lines if cells[0].startswith(f"| `{metric}`"))
    head = next(cells for cells in lines if cells[0] == "| metric" and cells[1] == "compares")
    shown = {name.strip(" |"): cell.strip(" |") for name, cell in zip(head[3:], row[3:], strict=True)}
    assert shown == {change: f"{METRICS[metric](answer):.2f}" for change, answer in CHANGED.items()}


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("evalsuite.metaeval.agreement.PairResamples", partial(PairResamples, resamples=20))
    latex = "\\begin{tabular}{ll}\nClub & Wins \\\\\nGulls & 8 \\\\\n\\end{tabular}"
    answer, html = "| Club | Wins |\n|---|---|\n| Gulls | 7 |", "<table><tr><td>Club</td><td>Wins</td></tr></table>"
    pair = {"prediction": answer, "reference": answer, "human": 9, "format": "markdown"}
    files = {
        "wanted.tex": latex,
        "wanted.html": html,
        "answer.txt": answer,
        "answer.md": answer,
        "pairs.jsonl": json.dumps(pair),
        "rated.jsonl": "\n".join(json.dumps(pair | {"human": human}) for human in (2, 5, 9)),
        "my_tables/one.tex": latex,
        "marking_app.py": "def judge(messages):\n"
        '    return \'{"reasoning": "Compared.", "content": 9, "structure": 9}\'\n',
    }
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, "utf-8")
    assert len(COMMANDS) == 5
    for command in COMMANDS:
        words = shlex.split(command.replace("gpt-4", "function:marking_app:judge"))[1:]
        paths = [str(path) for word in words for path in (tmp_path.glob(word) if "*" in word else [word])]
        assert main(paths) in ((0, 1) if "compare" in words else (0,)), command
    assert Path("diff.html").exists()
    assert Path("agreement.png").exists()
