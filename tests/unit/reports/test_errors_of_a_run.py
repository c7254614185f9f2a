"""Errors of one cause stand in one row, in the words of the first of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalsuite.core.json_codec import dumps, encode_record
from evalsuite.core.types import Record
from evalsuite.output.reports.section import Table
from evalsuite.output.reports.write import make_report
from evalsuite.results.run_folders import RunFolder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from pathlib import Path


def test_the_lowest_scores_list_none_that_prints_as_the_best(tmp_path: Path) -> None:
    records = [
        Record(f"test_x.py::test_x[{name}]", "x", name, 1, "m", "passed", scores={"f1": score}, input="?")
        for name, score in (("a", 0.9996), ("b", 1.0), ("c", 0.5))
    ]
    lines = "".join(f"{dumps(encode_record(record))}\n" for record in records)
    (tmp_path / "records.jsonl").write_text(lines, "utf-8")
    (tmp_path / "run.json").write_text(json.dumps({"version": 1, "model": "m", "settings": {}}))
    report = make_report(load_run(RunFolder(tmp_path)))
    lowest = next(section for section in report.sections if section.title == "Lowest scores")
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
    lines = "".join(f"{dumps(encode_record(record))}\n" for record in records)
    (tmp_path / "records.jsonl").write_text(lines, "utf-8")
    (tmp_path / "run.json").write_text(json.dumps({"version": 1, "model": "m", "settings": {}}))
    report = make_report(load_run(RunFolder(tmp_path)))
    (table,) = next(section for section in report.sections if section.title == "Errors").blocks
    assert isinstance(table, Table)
    message = "cannot connect to http://127.0.0.1:8000/v1 after 12.5 s"
    assert [list(row) for row in table.rows] == [[2, "BackendUnavailable", message, "test_x.py::test_x[a]"]]
