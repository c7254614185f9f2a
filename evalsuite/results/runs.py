"""A run's folder: `reports/<run>/` with `run.json`, the journal, `records.jsonl`, and what is made of them."""

from __future__ import annotations

import itertools
import json
import re
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.declarations import Declarations
from evalsuite.errors import RunError
from evalsuite.json_codec import decode_metric, decode_record
from evalsuite.results import shapes
from evalsuite.results.built_in import BuiltInMetrics, built_in
from evalsuite.results.cut_short import check_whole, ends_within_a_line
from evalsuite.results.flat_rows import flat_row
from evalsuite.results.guarded_metric import GuardedMetric
from evalsuite.results.record_file import JOURNAL as JOURNAL  # noqa: PLC0414 - named here, too
from evalsuite.results.record_file import RECORDS as RECORDS  # noqa: PLC0414 - likewise
from evalsuite.results.record_file import bring_up_to_date, has_journal
from evalsuite.results.row_columns import Offsets, RowColumns, StoredRows
from evalsuite.results.tally import Row, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    import pandas as pd

    from evalsuite.protocols import Benchmark
    from evalsuite.results.estimate import Estimate
    from evalsuite.types import Metric, Record

VERSION = 1
INFO, REPORT, SUMMARY, COMMENT = "run.json", "report.md", "summary.json", "comment.md"

LONGEST_NAME = 200
"""Bytes; file systems take 255, and other tools add to it."""

LAST = "last"
"""Stands for the run that was begun last, other than to try out some cases (`-k`, ids) under no name."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a run is kept.

    Attributes:
        path: the folder, which may not be there yet.
    """

    path: Path

    @property
    def name(self) -> str:
        """The run's name."""
        return self.path.name

    def info(self) -> dict[str, Any]:
        """What the run knows of itself: settings, times, what was paid; empty where nothing was written.

        Raises:
            RunError: the file is damaged, or of another version.
        """
        file = self.path / INFO
        try:
            info: dict[str, Any] = json.loads(file.read_text("utf-8"))
            version = info["version"]
        except FileNotFoundError:
            return {}
        except (KeyError, TypeError) as error:
            raise RunError(f"{file} is damaged: it names no version") from error
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"{file} cannot be read: {error}") from error
        if version == VERSION and (problem := shapes.info(info)):
            raise RunError(f"{file} is damaged: {problem}")
        if version != VERSION:
            raise RunError(f"{file} has version {version}, this evalsuite reads version {VERSION}")
        return info

    def write_info(self, info: Mapping[str, Any]) -> None:
        """Replaces `run.json` in one step."""
        replace_text(
            self.path / INFO, json.dumps({"version": VERSION, **info}, indent=1, ensure_ascii=False) + "\n"
        )


def replace_text(file: Path, text: str) -> None:
    """Writes a file so that it is, at every instant, the old one or the new one."""
    draft = file.with_name(f".{file.name}.draft")
    draft.write_bytes(text.encode("utf-8", "replace"))
    draft.replace(file)


def new_folder(reports: Path, name: str | None, model: str, now: datetime) -> RunFolder:
    """The folder of a new run; not made yet.

    Raises:
        RunError: a run of this name is there already, or the name is none.
    """
    if name is None:
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", model.rpartition("/")[2]).strip("-.")[:40]
        stem = f"{now:%Y%m%d-%H%M%S}-{slug or 'model'}"
        names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        return RunFolder(next(reports / name for name in names if not (reports / name).exists()))
    check_name(reports, name)
    return RunFolder(reports / name)


def make_folder(reports: Path, name: str | None, model: str, now: datetime) -> RunFolder:
    """Makes the folder of a new run.

    Raises:
        RunError: as `new_folder`, or the folder cannot be made.
    """
    while True:
        folder = new_folder(reports, name, model, now)
        try:
            folder.path.mkdir(parents=True)
        except OSError as error:
            if not isinstance(error, FileExistsError) or not folder.path.is_dir():
                raise RunError(
                    f"{folder.path} cannot be made: {error.strerror}; name another folder with --reports"
                ) from error
            if name is None:
                # Another session was quicker to take the name.
                continue
        return folder


def check_name(reports: Path, name: str, *, otherwise: str | None = None) -> None:
    """Sees that a new run may have this name.

    Args:
        reports: the folder of runs.
        name: of the new run.
        otherwise: what to do where there is a run of this name, if not to resume it.

    Raises:
        RunError: a run of this name is there already, or the name is none.
    """
    if not re.fullmatch(r"[\w.+@=-]+", name) or name.startswith(".") or len(name.encode()) > LONGEST_NAME:
        raise RunError(
            f"{name:.80}: a run's name is letters, digits and . _ - + @ =, at most {LONGEST_NAME} bytes of them, "
            "since it names a folder"
        )
    if name == LAST:
        raise RunError(f"{name}: this word means the newest run; choose another name")
    if is_run(reports / name):
        advice = otherwise or f"go on with it with --resume {name}, or choose another name"
        raise RunError(f"a run {name} is there already: {advice}")


def find_folder(reports: Path, name: str) -> RunFolder:
    """The folder of an earlier run: by name, by path, by one of its files, or `last` for the one begun last.

    Raises:
        RunError: there is none; the message lists the newest that are there.
    """
    if name != LAST:
        for path in (reports / name, Path(name)):
            folder = path.parent if path.name in {INFO, RECORDS, SUMMARY} else path
            if is_run(folder):
                return RunFolder(folder)
    if name != LAST and _is_file(Path(name)):
        raise RunError(f"{name} is not a run's folder, {RECORDS}, {INFO} or {SUMMARY}")
    runs = sorted((folder for folder in reports.glob("*") if (folder / INFO).is_file()), key=begun)
    if name == LAST and runs:
        return RunFolder(next((folder for folder in reversed(runs) if not _tries_out(folder)), runs[-1]))
    newest = ", ".join(folder.name for folder in reversed(runs[-5:])) or "none"
    raise RunError(f"no run {name!r} in {reports}; the newest there: {newest}")


def _tries_out(folder: Path) -> bool:
    """Whether a run only tries out some cases: picked by -k or by their ids, under no name of its own."""
    try:
        info = RunFolder(folder).info()
    except RunError:
        return False
    selection, settings = info.get("selection") or {}, info.get("settings") or {}
    picked = selection.get("keyword") or any("::" in str(arg) for arg in selection.get("args") or ())
    return bool(picked) and not settings.get("run")


def is_run(path: Path) -> bool:
    """Whether a folder holds a run, were it only its beginning."""
    return any(_is_file(path / name) for name in (RECORDS, INFO, JOURNAL))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A name that is too long for a file.
        return False


def begun(folder: Path) -> tuple[str, int]:
    """When a run was begun; of those begun in one second, and of damaged ones, when it was last written to."""
    try:
        started = str(RunFolder(folder).info().get("started", ""))
    except RunError:
        # Its damage matters to whoever asks for it, and not to whoever asks for another.
        started = ""
    return started, (folder / INFO if _is_file(folder / INFO) else folder).stat().st_mtime_ns


def interruption(info: Mapping[str, Any]) -> str | None:
    """Why a run did not come to its end, by what it knows of itself; None where it did."""
    if info.get("stopped"):
        return str(info["stopped"])
    return None if "seconds" in info else "it was killed, or it still goes on"


class _WithBuiltIn(dict[str, "Callable[[Tally], Estimate | None]"]):
    """A benchmark's own derived metrics, which are listed, and the built-in ones, which are found by name.

    Args:
        own: the benchmark's.
        scored: names of its scores, which go before built-in metrics of the same name.
    """

    def __init__(self, own: Mapping[str, Callable[[Tally], Estimate | None]], scored: frozenset[str]) -> None:
        super().__init__((name, GuardedMetric(compute)) for name, compute in own.items())
        self._scored = scored

    def _built_in(self, name: object) -> Callable[[Tally], Estimate | None] | None:
        return built_in(name) if isinstance(name, str) and name not in self._scored else None

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._built_in(name) is not None

    def __missing__(self, name: str) -> Callable[[Tally], Estimate | None]:
        metric = self._built_in(name)
        if metric is None:
            raise KeyError(name)
        return metric


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark's cases in a run.

    Attributes:
        tally: its rows.
        source: where the samples came from, in words.
        model: the model as the user named it.
        benchmark: as it was declared; None where it was declared without code of its own, or the code is gone.
        gone: why the benchmark's code is not to be had; empty where nothing is missing.
    """

    tally: Tally
    source: str
    model: str
    benchmark: Benchmark | None = None
    gone: str = ""

    @property
    def primary(self) -> str | None:
        """The metric that stands for the benchmark where there is room for one."""
        chosen = self.benchmark.primary if self.benchmark else None
        return chosen if chosen is not None else next(iter(self.tally.metrics()), None)

    @property
    def derived(self) -> Mapping[str, Callable[[Tally], Estimate | None]]:
        """Metrics that are no mean over cases, by name; built-in ones are there without being listed."""
        own = self.benchmark.derived if self.benchmark else {}
        return _WithBuiltIn(own, frozenset(self.tally.metrics()))


@dataclass(frozen=True, slots=True)
class Run:
    """A run, read from its folder; the long texts stay there.

    Attributes:
        folder: where it is.
        info: what the run knows of itself.
        benchmarks: by name, in alphabetical order.
        offsets: where each case's record begins in `records.jsonl`.
    """

    folder: RunFolder
    info: Mapping[str, Any]
    benchmarks: Mapping[str, Bench]
    offsets: Mapping[str, int]

    @property
    def baselines(self) -> Sequence[str]:
        """The runs that it was compared with, as they were named, each once."""
        named: Sequence[str] = self.info.get("settings", {}).get("baseline") or ()
        return tuple(dict.fromkeys(named))

    def read(self, case: str) -> Record:
        """One case's whole record.

        Raises:
            KeyError: the run has no such case.
        """
        file = self.folder.path / RECORDS
        with file.open("rb") as stream:
            stream.seek(self.offsets[case])
            return _parse(stream.readline(), file, case)

    def records(self) -> Iterator[Record]:
        """All whole records, benchmark by benchmark, in the order of their case ids."""
        for case in self.each("case"):
            yield self.read(case)

    def frame(self) -> pd.DataFrame:
        """A row a case, in the columns of `results.flat_rows`.

        Raises:
            RunError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise RunError("frames need pandas: pip install pandas") from error
        return pd.DataFrame([flat_row(record) for record in self.records()])

    def metrics(self, benchmark: str) -> dict[str, Metric]:
        """What is declared of a benchmark's metrics: by its code, and by its scorers as the run wrote it down."""
        written = self.info.get("metrics", {}).get(benchmark, {})
        code = self.benchmarks[benchmark].benchmark
        scored = {name: decode_metric(plain) for name, plain in written.items()}
        return BuiltInMetrics(scored | dict(code.metrics if code else {}))

    def lower_is_better(self, benchmark: str, metric: str) -> bool:
        """Whether less of a metric is better, as far as its scorer or its benchmark declares it."""
        declared = self.metrics(benchmark).get(metric)
        return declared is not None and declared.better == "lower"

    def each(self, attribute: str) -> Iterator[Any]:
        """One attribute of all cases of all benchmarks, in the order of `all_rows` and cheaper."""
        for bench in self.benchmarks.values():
            yield from bench.tally.each(attribute)

    def all_rows(self) -> Iterator[Row]:
        """All cases of all benchmarks."""
        for bench in self.benchmarks.values():
            yield from bench.tally


INSTALLED = Declarations()
"""Finds the benchmarks of installed packages, and no others."""


def load_run(folder: RunFolder | Path | str, declarations: Declarations = INSTALLED) -> Run:
    """Reads a run; of a case that ran twice, the later record counts.

    Args:
        folder: of the run; as text, its path, or its name in `reports/`, or `last`.
        declarations: finds the benchmarks that the records name.

    Raises:
        RunError: there is no such run, or a record is damaged; the message names the line.
    """
    if not isinstance(folder, RunFolder):
        folder = find_folder(Path("reports"), str(folder))
    bring_up_to_date(folder.path)
    columns = RowColumns()
    last: dict[str, tuple[str, str, str]] = {}
    for offset, record in _records(folder.path / RECORDS):
        columns.append(record, offset)
        last[record.benchmark] = record.source, record.model, record.declared
    counted = columns.counted()
    info = folder.info()
    if "seconds" in info and not has_journal(folder.path):
        file = folder.path / RECORDS
        check_whole(file, folder.path / SUMMARY, len(counted), cut=ends_within_a_line(file))
    places: dict[str, array[int]] = {}
    for at in counted:
        places.setdefault(str(columns.benchmark[at]), array("I")).append(at)
    benches = {}
    for name in sorted(places):
        source, model, place = last[name]
        tally = Tally(StoredRows(columns, places[name]))
        benches[name] = Bench(tally, source, model, *declarations.find(name, place))
    return Run(folder, info, benches, Offsets(columns, counted))


def _records(file: Path) -> Iterator[tuple[int, Record]]:
    try:
        stream = file.open("rb")
    except OSError as error:
        raise RunError(f"{file} cannot be read: {error.strerror}") from error
    offset = 0
    with stream:
        for number, line in enumerate(stream, 1):
            # A line without an end was being written when the run died.
            if line.endswith(b"\n"):
                yield offset, _parse(line, file, number)
            offset += len(line)


def _parse(line: bytes, file: Path, number: int | str) -> Record:
    try:
        plain = json.loads(line)
        problem = shapes.RECORD(plain)
        if problem:
            raise ValueError(problem)
        return decode_record(plain)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise RunError(
            f"{file}, line {number}: not a record of evalsuite ({type(error).__name__}: {error}); "
            "once this line is taken out, the rest can be read"
        ) from error
