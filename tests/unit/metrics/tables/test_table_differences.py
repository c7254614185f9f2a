"""What a table score shows, from any form of table."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from evalsuite.cli import main
from evalsuite.core.errors import ScoringError
from evalsuite.metrics import tables
from evalsuite.metrics.tables import table_score, table_scores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = [["Team", "Wins"], ["Gulls", "8"], ["Otters", "4"]]
WANTED = "| Team | Wins |\n|---|---|\n| Gulls | 8 |\n| Otters | 4 |"
ANSWER = WANTED.replace("8", "7")


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        [{"Team": "Gulls", "Wins": 8}, {"Team": "Otters", "Wins": 4}],
        pd.DataFrame({"Team": ["Gulls", "Otters"], "Wins": [8, 4]}),
        pd.DataFrame({"Wins": [8, 4]}, index=pd.Index(["Gulls", "Otters"], name="Team")),
        "<table><tr><td>Team<td>Wins<tr><td>Gulls<td>8<tr><td>Otters<td>4</table>",
    ],
    ids=["rows", "records", "frame", "frame with an index", "html"],
)
def test_tables_are_compared_in_any_form(table: object) -> None:
    assert table_score(WANTED, table).content == 1.0
    assert table_score(table, WANTED).content == 1.0
    assert table_score(table, table).value == 1.0


def test_missing_values_of_a_frame_are_blank_cells() -> None:
    frame = pd.DataFrame({"Team": ["Gulls", "Otters"], "Wins": [8, None]}).astype({"Wins": "Int64"})
    assert table_score("| Team | Wins |\n| Gulls | 8 |\n| Otters | |", frame).content == 1.0


def test_aliases_name_formats_and_anything_else_is_refused() -> None:
    assert table_score(ANSWER, WANTED, format="md") == table_score(ANSWER, WANTED, format="markdown")
    with pytest.raises(TypeError, match="not int"):
        table_score(5, WANTED)


@pytest.mark.parametrize(
    "metric",
    [tables.teds, tables.teds_structure, tables.grits_content, tables.grits_topology, tables.rms, tables.cell_f1],
)
def test_published_metrics_take_tables_and_formats_as_the_table_score_does(metric: Callable[..., object]) -> None:
    expected = metric(ANSWER, WANTED, format="markdown")
    assert metric(ANSWER, WANTED) == metric(ANSWER, WANTED, format="md") == expected
    rows = [["Team", "Wins"], ["Gulls", 8], ["Otters", 4]]
    assert metric(rows, rows) == metric(WANTED, WANTED)


@pytest.mark.parametrize(
    "cell",
    [
        f'<td colspan="{"9" * 5000}">x',
        "<td>\ud800",
        f"<td>{'<b>' * 3000}x",
        f"{'<div>' * 3000}<td>x",
        f"<td>{'<table><tr><td>' * 400}x",
    ],
    ids=["an endless span", "half a surrogate pair", "a deep cell", "a deep table", "tables in tables"],
)
@pytest.mark.parametrize("metric", [tables.teds, tables.teds_structure, tables.grits_content, tables.rms])
def test_published_metrics_read_hostile_html(metric: Callable[..., float], cell: str) -> None:
    wanted = "<table><tr><td>x</td><td>y</td></tr></table>"
    assert 0.0 <= metric(f"<table><tr>{cell}", wanted, format="html") <= 1.0


def test_the_released_h_score_takes_aliases_of_formats() -> None:
    tex = r"\begin{tabular}{l} a \\ b \end{tabular}"
    assert tables.h_score(tex, tex, format="tex") == tables.h_score(tex, tex, format="latex")


def test_each_cell_says_where_it_stands_and_what_is_wrong() -> None:
    score = table_score(f"{ANSWER}\n| Herons | 1 |", WANTED)
    assert [str(cell) for cell in score.cells if cell.state != "equal"] == [
        "Gulls / Wins: 7, not 8",
        "Herons / Team: not wanted Herons",
        "Herons / Wins: not wanted 1",
    ]
    assert repr(score) == f"TableScore(value={score.value:.4f}, content={score.content:.4f}, form={score.form:.4f})"
    assert json.loads(json.dumps(score.to_dict()))["differences"][0]["wanted"] == "8"
    assert "7 \u2192 8" in score.show()
    assert "<del>7</del> <ins>8</ins>" in score._repr_html_()


def test_rows_in_any_order_show_no_missing_rows() -> None:
    shuffled = "| Team | Wins |\n|---|---|\n| Otters | 4 |\n| Gulls | 8 |"
    score = table_score(shuffled, WANTED, row_order=False)
    assert score.content == 1.0
    assert {cell.state for cell in score.cells} == {"equal"}


def test_a_hostile_cell_is_shown_harmless_and_short() -> None:
    hostile = f"&lt;script&gt;\x1b[31m\x1b]8;;http://x\x07 \u202eabc\u2066 {'y' * 900_000}"
    score = table_score(ANSWER.replace("7", hostile), WANTED)
    shown = [score._repr_html_(), score.show(), *map(str, score.differences)]
    assert all(len(text) < 4_000 for text in shown)
    assert not any(char in text for text in shown for char in "\x1b\x07\u202e\u2066")
    assert "<script>" not in shown[0]
    assert len(score.to_dict()["differences"][0]["predicted"]) > 900_000


def test_many_pairs_are_scored_at_once_and_a_bad_one_is_named() -> None:
    scores = table_scores([(ANSWER, WANTED), {"prediction": WANTED, "reference": ROWS, "format": "md"}])
    assert [score.content for score in scores] == [5 / 6, 1.0]
    with pytest.raises(ScoringError, match="pair 1: the reference contains no table"):
        table_scores([(WANTED, WANTED), (WANTED, "none")])


def test_pairs_of_a_file_are_scored_as_a_table_csv_or_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = tmp_path / "pairs.jsonl"
    records = [{"id": "a", "prediction": ANSWER, "reference": ROWS}, {"prediction": WANTED, "reference": WANTED}]
    pairs.write_text("\n".join(map(json.dumps, records)))
    assert main(["score", "tables", "--pairs", str(pairs), "--format", "md"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()[:4]] == ["pair", "a", "2", "mean"]
    assert main(["score", "tables", "--pairs", str(pairs), "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "pair,value,content,form"
    assert main(["score", "tables", "--pairs", str(pairs), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[1])["value"] == 1.0


def test_an_id_of_a_pair_is_not_a_formula_in_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"id": "=1+1", "prediction": WANTED, "reference": WANTED}))
    assert main(["score", "tables", "--pairs", str(pairs), "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "'=1+1,1.0,1.0,1.0"


def test_a_pair_of_a_file_without_a_table_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"id": "a", "prediction": WANTED, "reference": "none"}))
    assert main(["score", "tables", "--pairs", str(pairs)]) == 2
    assert "pair a: the reference contains no table" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1"),
        ("[]", "line 1"),
        ("", "no line"),
        ('{"prediction": 1, "reference": "|a|"}', "not int"),
        ('{"prediction": "|a|", "wanted": "|a|"}', "fields prediction, wanted"),
    ],
)
def test_a_damaged_file_of_pairs_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(text)
    assert main(["score", "tables", "--pairs", str(pairs)]) == 2
    assert message in capsys.readouterr().err


def test_a_diff_of_two_tables_lists_the_cells_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, page = tmp_path / "a.md", tmp_path / "b.md", tmp_path / "diff.html"
    first.write_text(ANSWER)
    second.write_text(WANTED)
    assert main(["diff", "tables", str(first), str(second), "--html", str(page)]) == 0
    assert "Gulls / Wins: 7, not 8" in capsys.readouterr().out
    assert "<del>7</del>" in page.read_text()
    assert main(["compare", "tables", str(second), str(second)]) == 0
    assert "no cell differs" in capsys.readouterr().out


@pytest.mark.parametrize(("most", "listed"), [("0", 0), ("1", 1), ("9", 2)])
def test_a_diff_lists_no_more_cells_than_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], most: str, listed: int
) -> None:
    first, second = tmp_path / "a.md", tmp_path / "b.md"
    first.write_text(ANSWER.replace("Otters | 4", "Otters | 5"))
    second.write_text(WANTED)
    assert main(["compare", "tables", str(first), str(second), "--most", most]) == 0
    shown = capsys.readouterr().out
    assert shown.count(", not ") == listed
    assert (f"... and {2 - listed} more (--most)" in shown) == (listed < 2)


def test_a_negative_number_of_cells_to_list_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.md"
    file.write_text(WANTED)
    with pytest.raises(SystemExit):
        main(["compare", "tables", str(file), str(file), "--most", "-1"])
    assert "argument --most: '-1' is not a whole number of at least 0" in capsys.readouterr().err


def test_a_page_of_many_diffs_names_each_pair(tmp_path: Path) -> None:
    pairs, page = tmp_path / "pairs.jsonl", tmp_path / "diffs.html"
    records = [{"id": name, "prediction": ANSWER, "reference": WANTED} for name in ("<first>", "second")]
    pairs.write_text("\n".join(map(json.dumps, records)))
    assert main(["score", "tables", "--pairs", str(pairs), "--html", str(page)]) == 0
    assert re.findall(r"<h1>(.+?): table score", page.read_text()) == ["&lt;first&gt;", "second"]


def test_a_byte_order_mark_before_a_table_is_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.md"
    file.write_text(WANTED, "utf-8-sig")
    assert main(["score", "tables", "--reference", str(file), "--prediction", str(file), "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "a.md,1.0,1.0,1.0"
    assert table_score(f"\ufeff{WANTED}", WANTED).value == table_score(WANTED, f"\ufeff{WANTED}").value == 1.0


@pytest.mark.parametrize(
    "arguments", [["--reference", "x"], ["--pairs", "x", "--prediction", "y"], ["--pairs", "x", "--json", "--csv"], []]
)
def test_score_tables_needs_a_pair_of_files_or_a_file_of_pairs(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["score", "tables", *arguments])
    assert "give --reference and --prediction, or --pairs" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(60))
def test_cells_differ_if_and_only_if_the_content_is_not_perfect(seed: int) -> None:
    draw = random.Random(seed)
    texts = ["", "-", "NA", "5", "5.0%", "-5", "A+", "A", "$50", "€50", "New York", "x_1", "10^3"]
    wanted = [draw.choices(texts, k=3) for _ in range(draw.randint(1, 4))]
    wanted[0][0] = "Name"
    predicted = [[draw.choice(texts) if draw.random() < 0.1 else cell for cell in row] for row in wanted]
    if draw.random() < 0.3:
        predicted = [[*row, draw.choice(["", "-", "7"])] for row in predicted]
    score = table_score(predicted, wanted)
    assert (score.content == 1.0) == (not score.differences), (predicted, wanted)
