"""What a report and a comparison keep of a run while they are made: columns, not rows."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING

from evalsuite.decisions.verdict import judge_run, measure
from evalsuite.output.reports.report import build_report
from evalsuite.results.record_file import RECORDS
from evalsuite.results.rows import Row
from evalsuite.results.run_folders import RunFolder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from pathlib import Path


def write_run(folder: Path, cases: int) -> RunFolder:
    folder.mkdir()
    settings = {"gate": ["b.right >= 0.1 @95%"]}
    (folder / "run.json").write_text(json.dumps({"version": 1, "seconds": 1.0, "settings": settings}))
    with (folder / RECORDS).open("w") as stream:
        for number in range(cases):
            record = {
                "benchmark": "b",
                "case": f"t.py::test_b[s{number:05}]",
                "sample": f"s{number:05}",
                "epoch": 1,
                "model": "m",
                "outcome": "passed" if number % 3 else "failed",
                "scores": {"right": float(number % 3 > 0), "f1": number / cases},
                "tags": {"region": ("eu", "asia")[number % 2]},
                "usage": {"calls": 1, "prompt_tokens": 9, "completion_tokens": 9, "cost": 0.0},
            }
            stream.write(json.dumps(record) + "\n")
    return RunFolder(folder)


def rows() -> int:
    gc.collect()
    return sum(type(kept) is Row for kept in gc.get_objects())


def test_a_report_holds_no_row_of_its_run(tmp_path: Path) -> None:
    before = rows()
    run = load_run(write_run(tmp_path / "one", 2000))
    measured, verdict = measure(run), judge_run(run)
    sections = build_report(run, verdict, measured)
    assert sections
    assert rows() - before < 100
