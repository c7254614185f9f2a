"""Rows, records and runs, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.declarations import Declarations
from evalsuite.core.json_codec import dumps, encode_record
from evalsuite.core.protocols import Benchmark
from evalsuite.core.types import Record, Transcript, Usage
from evalsuite.results.run_folders import RECORDS, RunFolder
from evalsuite.results.runs import Run, load_run
from evalsuite.results.tally import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from evalsuite.core.types import Outcome


def record(
    sample: str,
    scores: Mapping[str, float] | None = None,
    outcome: Outcome = "passed",
    *,
    benchmark: str = "capitals",
    epoch: int = 1,
    **more: Any,
) -> Record:
    given = {
        "model": "gpt-4",
        "source": "some samples",
        "scores": scores or {},
        "usage": Usage(1, 10, 5),
        "transcript": Transcript(f"answer of {sample}"),
        **more,
    }
    case = f"{place(benchmark)}[{sample}-{epoch}]"
    return Record(case=case, benchmark=benchmark, sample=sample, epoch=epoch, outcome=outcome, **given)


def row(sample: str, scores: Mapping[str, float] | None = None, outcome: Outcome = "passed", **more: Any) -> Row:
    return Row.of(record(sample, scores, outcome, **more))


class Desk:
    """Where runs are made by hand, in a folder of the test's own.

    Args:
        reports: the folder of the runs.
    """

    record = staticmethod(record)
    row = staticmethod(row)

    def __init__(self, reports: Path) -> None:
        self.reports = reports
        self.declared: dict[str, Benchmark] = {}

    def folder(self, records: Iterable[Record], name: str = "run", **info: Any) -> RunFolder:
        """A finished run with these records; `settings` and the like go into what it knows of itself."""
        folder = RunFolder(self.reports / name)
        folder.path.mkdir(parents=True, exist_ok=True)
        lines = "".join(dumps(encode_record(self._placed(one))) + "\n" for one in records)
        (folder.path / RECORDS).write_text(lines, encoding="utf-8")
        told = {"model": "gpt-4", "settings": {}, "started": "2026-01-01T00:00:00+00:00", "seconds": 1.5, **info}
        folder.write_info(told)
        return folder

    def run(self, records: Iterable[Record], name: str = "run", **info: Any) -> Run:
        return load_run(self.folder(records, name, **info), Declarations(live=self.declared))

    def declare(self, name: str, **own: Any) -> None:
        """Declares a benchmark; the records of folders made from now on are of it."""
        parts: dict[str, Any] = {"title": name, "load": unused, "solver": unused, "scorers": unused}
        self.declared[place(name)] = Benchmark(name=name, **parts | own)

    def _placed(self, one: Record) -> Record:
        return replace(one, declared=place(one.benchmark)) if place(one.benchmark) in self.declared else one


def place(benchmark: str) -> str:
    return f"cases/test_{benchmark}.py::test_{benchmark}"


def unused(_: object) -> Any:
    raise NotImplementedError


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "reports")
