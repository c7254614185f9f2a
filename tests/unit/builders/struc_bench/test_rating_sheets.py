"""From runs to a blind sheet, and from filled-in copies to `human_scores.json`."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.struc_bench.items import TableItem, read_human_scores, write_question
from evalsuite.core.types import Record, Transcript

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Call = Callable[..., Any]
    Row = dict[str, str]

WANTED = "<table><tr><td>{}</td></tr></table>"


def output(place: int, mode: str, answer: str | None, model: str = "gpt-4") -> Record:
    item = TableItem("Make a table.", f"Text {place}.", WANTED.format(place), "One cell.")
    sample = f"html-{place:03}"
    return Record(
        f"{sample}-{mode}-{model}", "struc_bench", f"{sample}-{mode}", 1, model, "passed",
        tags={"format": "html", "mode": mode, "cluster": sample}, input=write_question(item, "html", mode),
        target=item.output, transcript=None if answer is None else Transcript(answer),
    )  # fmt: skip


@pytest.fixture
def sheet(desk: Any, call: Call, tmp_path: Path) -> Path:
    """A sheet of two runs: three outputs of one model, one of another, and a case that failed."""
    runs = {
        "one": [output(0, "direct", "=1+1"), output(0, "format_cot", "B"), output(1, "direct", None)],
        "two": [output(0, "direct", "C", "llama"), output(1, "direct", "D", "llama")],
    }
    for name, records in runs.items():
        desk.folder(records, name)
    path = tmp_path / "sheet.csv"
    outcome = call("sheet", "one", "two", "--reports", desk.reports, "--to", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == f"4 of 4 outputs in {path}; their models are in {tmp_path / 'sheet.key.json'}\n"
    return path


def rows(sheet: Path) -> list[Row]:
    return list(csv.DictReader(sheet.read_text("utf-8-sig").splitlines()))


def fill(sheet: Path, name: str, marks: Callable[[Row], dict[str, str]]) -> Path:
    """A copy of the sheet, filled in by a person of this name."""
    lines = [{**row, **marks(row)} for row in rows(sheet)]
    path = sheet.with_name(f"{name}.csv")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    return path


def imported(call: Call, sheet: Path, *copies: Path) -> Any:
    return call(
        "ratings", *copies, "--key", sheet.with_suffix(".key.json"), "--to", sheet.with_name("human_scores.json")
    )


def test_the_sheet_shows_outputs_and_nothing_of_who_made_them(sheet: Path) -> None:
    lines = rows(sheet)
    assert sorted((row["markup"], row["text"], row["wanted"], row["answer"]) for row in lines) == [
        ("HTML", "Text 0.", WANTED.format(0), "'=1+1"),
        ("HTML", "Text 0.", WANTED.format(0), "B"),
        ("HTML", "Text 0.", WANTED.format(0), "C"),
        ("HTML", "Text 1.", WANTED.format(1), "D"),
    ]
    shown = sheet.read_text("utf-8-sig")
    assert not any(word in shown for word in ("gpt-4", "llama", "direct", "format_cot", "One cell."))
    assert all(row[name] == "" for row in lines for name in ("content", "format", "element_error", "comment"))


def test_a_sheet_that_may_hold_ratings_is_left_alone(sheet: Path, desk: Any, call: Call) -> None:
    before = sheet.read_bytes()
    outcome = call("sheet", "one", "--reports", desk.reports, "--to", sheet)
    assert outcome.status == 2
    assert "exists and may contain ratings" in outcome.err
    assert sheet.read_bytes() == before


def test_filled_in_copies_become_ratings_that_the_benchmark_reads(sheet: Path, call: Call) -> None:
    ann = fill(
        sheet, "ann", lambda row: {"content": "8", "format": "7,5", "naming_error": "x" * (row["answer"] == "B")}
    )
    bo = fill(sheet, "bo", lambda row: {"content": "3", "format": "4"} if row["answer"] in "CD" else {})
    outcome = imported(call, sheet, ann, bo)
    assert (outcome.status, outcome.err) == (0, "")
    assert "6 ratings of 4 outputs by 2 people" in outcome.out
    gpt, llama = (read_human_scores(sheet.with_name("human_scores.json"), model) for model in ("gpt-4", "llama"))
    assert (8, 7.5) in gpt["html-000-format_cot"]["raters"].values()
    assert gpt["html-000-format_cot"]["errors"]["naming_error"] == 1.0
    assert set(llama["html-001-direct"]["raters"].values()) == {(8, 7.5), (3, 4)}
    # Bo marked no error anywhere, so did not look for any, and Ann's labels alone count.
    assert set(gpt["html-000-format_cot"]["errors"].values()) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ({"content": "11", "format": "1"}, "column content: found '11', expected a number from 0 to 10"),
        ({"content": "good", "format": "1"}, "column content: found 'good'"),
        ({"content": "8"}, "a single mark"),
        ({"content": "8", "format": "1", "element_error": "maybe"}, "column element_error: found 'maybe'"),
        ({"output": "?"}, "output '?'"),
        ({}, "no line with marks"),
    ],
)
def test_a_mistake_in_a_copy_is_one_message_with_its_line(sheet: Path, call: Call, marks: Row, message: str) -> None:
    outcome = imported(call, sheet, fill(sheet, "ann", lambda row: marks if "D" in row["answer"] else {}))
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert "ann.csv" in outcome.err
    assert message in outcome.err
    assert not sheet.with_name("human_scores.json").exists()


def test_what_a_spreadsheet_saves_with_semicolons_is_read(sheet: Path, call: Call) -> None:
    copy = fill(sheet, "ann", lambda row: {"content": "1", "format": "2"})
    lines = list(csv.reader(copy.read_text("utf-8").splitlines()))
    with copy.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows(lines)
    assert imported(call, sheet, copy).status == 0
    assert len(json.loads(sheet.with_name("human_scores.json").read_text("utf-8"))) == 4
