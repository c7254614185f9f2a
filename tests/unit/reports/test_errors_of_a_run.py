"""Errors and missing scores of a run in its report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalsuite.core.json_codec import dumps, encode_record
from evalsuite.core.types import Record
from evalsuite.output.reports.section import Section, Table
from evalsuite.output.reports.write import make_report
from evalsuite.results.run_folders import RunFolder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def _report_sections(folder: Path, records: Sequence[Record]) -> Sequence[Section]:
    lines = "".join(f"{dumps(encode_record(record))}\n" for record in records)
    (folder / "records.jsonl").write_text(lines, "utf-8")
    (folder / "run.json").write_text(json.dumps({"version": 1, "model": "m", "settings": {}}))
    return make_report(load_run(RunFolder(folder))).sections


def _one_of_four(benchmark: str) -> list[Record]:
    case = f"test_{benchmark}.py::test_{benchmark}"
    right = Record(f"{case}[a]", benchmark, "a", 1, "m", "passed", scores={"f1": 1.0})
    failed = (Record(f"{case}[{name}]", benchmark, name, 1, "m", "error", error="no answer") for name in "bcd")
    return [right, *failed]


def test_the_overview_says_how_many_cases_have_the_metric(tmp_path: Path) -> None:
    sections = _report_sections(tmp_path, [*_one_of_four("x"), *_one_of_four("y")])
    (table,) = next(section for section in sections if section.title == "Benchmarks").blocks
    assert isinstance(table, Table)
    assert [column.title for column in table.columns][:5] == ["benchmark", "cases", "errors", "metric", "scored"]
    assert list(table.rows[0])[:5] == ["x", 4, 3, "f1", 1]


def test_a_benchmarks_table_says_which_scores_some_cases_lack(tmp_path: Path) -> None:
    sections = _report_sections(tmp_path, _one_of_four("x"))
    table = next(section for section in sections if section.title == "x").blocks[0]
    assert isinstance(table, Table)
    assert table.note == "Some cases lack a score: f1 on 1 of 4."


def test_the_lowest_scores_list_none_that_prints_as_the_best(tmp_path: Path) -> None:
    records = [
        Record(f"test_x.py::test_x[{name}]", "x", name, 1, "m", "passed", scores={"f1": score}, input="?")
        for name, score in (("a", 0.9996), ("b", 1.0), ("c", 0.5))
    ]
    sections = _report_sections(tmp_path, records)
    lowest = next(section for section in sections if section.title == "Lowest scores")
    assert [block.title for block in lowest.blocks] == ["test_x[c]: f1 0.500"]


def test_addresses_and_numbers_of_a_message_are_shown_as_they_are(tmp_path: Path) -> None:
    records = [
        Record(
            f"test_x.py::test_x[{name}]",
            "x",
            name,
            1,
            "m",
            "error",
            error=f"cannot connect to http://127.0.0.1:8000/v1 after {seconds} s",
            cause="BackendUnavailable",
        )
        for name, seconds in (("a", 12.5), ("b", 13.75))
    ]
    sections = _report_sections(tmp_path, records)
    (table,) = next(section for section in sections if section.title == "Errors").blocks
    assert isinstance(table, Table)
    message = "cannot connect to http://127.0.0.1:8000/v1 after 12.5 s"
    assert [list(row) for row in table.rows] == [[2, "BackendUnavailable", message, "test_x.py::test_x[a]"]]
