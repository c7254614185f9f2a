"""Reads a run from its folder: benchmarks with their tallies, and the records in `records.jsonl`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import RunError, describe_error
from evalsuite.core.json_codec import decode_metric, decode_record, parse_json_as
from evalsuite.results.built_in import DeclaredAndBuiltInMetrics, find_built_in_metric
from evalsuite.results.run_folders import RECORDS, SUMMARY, RunFolder, count_lines, find_run_folder, update_records_file
from evalsuite.results.stored_rows import MOST_IN_MEMORY, Found, RowMaker, make_tallies
from evalsuite.results.tally import Estimate, Row, Tally, choose_primary

if TYPE_CHECKING:
    import pandas as pd

    from evalsuite.core.protocols import Benchmark
    from evalsuite.core.types import Metric, Record


class GuardedMetric:
    """Computes a derived metric; if the metric's function fails, stores the reason."""

    def __init__(self, compute: Callable[[Tally], Estimate | None]) -> None:
        self._compute = compute
        self.failure = ""  # Why the last computation failed; empty if it succeeded or if the metric was undefined.

    def __call__(self, cases: Tally) -> Estimate | None:
        """Compute the metric over some cases; None if it is undefined or its function failed."""
        self.failure = ""
        try:
            # Check the type of the result, because a user's function may return a bare number by mistake.
            result: object = self._compute(cases)
        except RunError as error:
            self.failure = str(error)
            return None
        except Exception as error:  # noqa: BLE001 - anybody's code; other metrics do not depend on it
            self.failure = f"its function raised {' '.join(describe_error(error).split())}"
            return None
        if result is None:
            return None
        if not isinstance(result, Estimate):
            self.failure = f"its function returned {type(result).__name__}; it must return an Estimate or None"
        elif not all(bound is None or _is_number(bound) for bound in (result.value, result.low, result.high)):
            self.failure = f"its function returned {result}; value, low and high must be finite numbers"
        else:
            return result
        return None


def _is_number(value: object) -> bool:
    """Tell whether a value is a finite number or NaN, which stands for an undefined metric."""
    return isinstance(value, Real) and not math.isinf(value)


def get_failure(metric: object) -> str:
    """Return why the last computation of a derived metric failed; return "" if it did not fail."""
    return metric.failure if isinstance(metric, GuardedMetric) else ""


class _DerivedMetrics(dict[str, "Callable[[Tally], Estimate | None]"]):
    """The derived metrics that a benchmark declares, by name; look-up also finds built-in metrics."""

    def __init__(self, own: Mapping[str, Callable[[Tally], Estimate | None]], scored: frozenset[str]) -> None:
        super().__init__((name, GuardedMetric(compute)) for name, compute in own.items())
        self._scored = scored

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (name not in self._scored and find_built_in_metric(str(name)) is not None)

    def __missing__(self, name: str) -> Callable[[Tally], Estimate | None]:
        metric = None if name in self._scored else find_built_in_metric(name)
        if metric is None:
            raise KeyError(name)
        return metric


@dataclass(frozen=True, slots=True)
class StoredBenchmark:
    """A benchmark's results in `summary.json`, used if the code of the benchmark is not available."""

    cases: int
    metrics: dict[str, Estimate | None]
    primary: str | None = None
    title: str = ""
    missing: dict[str, list[str]] = field(default_factory=dict)  # The cases that lack a value, for each derived metric.


@dataclass(frozen=True, slots=True)
class BenchmarkResults:
    """One benchmark's cases in a run."""

    tally: Tally  # The benchmark's cases.
    source: str  # A text that says where the samples come from.
    model: str  # The model's name in the form in which the user wrote it.
    # The benchmark's declaration in its code; None if the code is missing, or if the records do not name any.
    benchmark: Benchmark | None = None
    gone: str = ""  # Why the code of the benchmark is missing; empty if it is available.
    stored: StoredBenchmark | None = None  # Stored results, which are used if the benchmark's code is missing.

    @property
    def title(self) -> str:
        """The benchmark's name in headings; empty if the run did not store one."""
        return self.benchmark.title if self.benchmark else self.stored.title if self.stored else ""

    @property
    def primary(self) -> str | None:
        """The most important metric of the benchmark, for overviews with a single metric."""
        declared = self.benchmark or self.stored
        return choose_primary(declared.primary if declared else None, self.tally.metrics())

    @property
    def derived(self) -> Mapping[str, Callable[[Tally], Estimate | None]]:
        """Metrics that are not means over cases, by name; built-in metrics are included."""
        scored = frozenset(self.tally.metrics())
        own: Mapping[str, Callable[[Tally], Estimate | None]] = self.benchmark.derived if self.benchmark else {}
        if self.stored:
            names = sorted(self.stored.metrics.keys() - scored - {"pass_rate"})
            own = {name: partial(self._find_stored_value, name) for name in names if not find_built_in_metric(name)}
        return _DerivedMetrics(own, scored)

    def _find_stored_value(self, metric: str, cases: Tally) -> Estimate | None:
        """Return the stored value of a derived metric, which exists only for all cases together."""
        if self.stored is None or len(cases) != len(self.tally) or len(cases) != self.stored.cases:
            raise RunError(self.gone)
        return self.stored.metrics[metric]


@dataclass(frozen=True, slots=True, eq=False)  # Hashed by identity, since `asyncio.gather` hashes `evaluate`'s result.
class Run:
    """A run, read from its folder; long texts are read from the file only when they are needed."""

    folder: RunFolder  # The run's folder.
    info: Mapping[str, Any]  # The contents of `run.json`.
    benchmarks: Mapping[str, BenchmarkResults]  # The run's benchmarks by name, in alphabetical order.
    offsets: Mapping[str, int]  # For each case, the position of its record in `records.jsonl`, in bytes.

    @property
    def baselines(self) -> Sequence[str]:
        """The names of this run's baselines as the user wrote them, without duplicates."""
        named: Sequence[str] = self.info.get("settings", {}).get("baseline") or ()
        return tuple(dict.fromkeys(named))

    def read(self, case: str) -> Record:
        """Read one case's complete record."""
        file = self.folder.path / RECORDS
        with file.open("rb") as stream:
            stream.seek(self.offsets[case])
            return _parse_record(stream.readline(), file, case)

    @property
    def records(self) -> Sequence[Record]:
        """All records with their texts, sorted by benchmark and case id; each record is read when it is needed."""
        return _LazyRecords(self, [row.case for row in self.all_rows()])

    def frame(self) -> pd.DataFrame:
        """Make a data frame with a row per case; `flatten_record` describes its columns."""
        try:
            import pandas as pd
        except ImportError as error:
            raise RunError("frames need pandas: pip install pandas") from error
        return pd.DataFrame([flatten_record(record) for record in self.records])

    def metrics(self, benchmark: str) -> dict[str, Metric]:
        """Collect the declarations of a benchmark's metrics, from its code and from the run's files."""
        written = self.info.get("metrics", {}).get(benchmark, {})
        code = self.benchmarks[benchmark].benchmark
        scored = {name: decode_metric(plain) for name, plain in written.items()}
        scores = self.benchmarks[benchmark].tally.metrics()
        return DeclaredAndBuiltInMetrics(scored | dict(code.metrics if code else {}), scores)

    def lower_is_better(self, benchmark: str, metric: str) -> bool:
        """Tell whether lower values of a metric are better, as its declaration says."""
        declared = self.metrics(benchmark).get(metric)
        return declared is not None and declared.better == "lower"

    def all_rows(self) -> Iterator[Row]:
        """Iterate over all cases of all benchmarks."""
        for bench in self.benchmarks.values():
            yield from bench.tally


class _LazyRecords(Sequence["Record"]):
    def __init__(self, run: Run, cases: Sequence[str]) -> None:
        self._run, self._cases = run, cases

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, at: Any) -> Any:
        return _LazyRecords(self._run, self._cases[at]) if isinstance(at, slice) else self._run.read(self._cases[at])

    def __call__(self) -> Iterator[Record]:
        """Iterate over the records; this method makes `run.records()` equivalent to `run.records`."""
        return iter(self)

    def __repr__(self) -> str:
        return f"<{len(self)} records of {self._run.folder.name}>"


INSTALLED = Declarations()  # Finds benchmarks only in installed packages.


def load_run(folder: RunFolder | Path | str, declarations: Declarations = INSTALLED) -> Run:
    """Read a run; if a case has several records, the last one counts.

    Args:
        folder: the folder of the run. A text is a path, a name in `reports/`, or `last`.
        declarations: used to find the code of the benchmarks that the records name.

    Raises:
        RunError: the run does not exist, or one of its records is damaged; the message gives the line's number.
    """
    if not isinstance(folder, RunFolder):
        folder = find_run_folder(Path("reports"), str(folder))
    journalled, file = update_records_file(folder.path), folder.path / RECORDS
    origins: dict[str, tuple[str, str, str]] = {}
    tallies, offsets = make_tallies(_list_rows(file, origins), in_temporary_file=count_lines(file) > MOST_IN_MEMORY)
    info = folder.info()
    if "seconds" in info and not journalled:
        check_completeness(file, folder.path / SUMMARY, len(offsets))
    benches = {}
    for name in sorted(tallies):
        source, model, place = origins[name]
        declared, gone = declarations.find_benchmark(name, place)
        stored = _read_stored_benchmark(folder, name) if gone else None
        benches[name] = BenchmarkResults(tallies[name], source, model, declared, gone, stored)
    return Run(folder, info, benches, offsets)


def _read_stored_benchmark(folder: RunFolder, benchmark: str) -> StoredBenchmark | None:
    try:
        return parse_json_as(StoredBenchmark, json.dumps(folder.summary()["benchmarks"][benchmark]).encode())
    except (KeyError, TypeError, ValueError):
        return None


def _list_rows(file: Path, origins: dict[str, tuple[str, str, str]]) -> Iterator[Found]:
    """Yield a file's rows; store in `origins` the source, model and declaration in each benchmark's last record."""
    try:
        stream = file.open("rb")
    except OSError as error:
        raise RunError(f"{file} cannot be read: {error.strerror}") from error
    rows, offset = RowMaker(), 0
    with stream:
        for number, line in enumerate(stream, 1):
            # Skip a last line without a line end: the run was killed while writing it.
            if line.endswith(b"\n"):
                record = _parse_record(line, file, number)
                origins[record.benchmark] = record.source, record.model, record.declared
                yield offset, record.benchmark, rows.make_row(record)
            offset += len(line)


def _parse_record(line: bytes, file: Path, number: int | str) -> Record:
    try:
        return decode_record(line)
    except ValueError as error:
        raise RunError(
            f"{file}, line {number}: not a record of evalsuite ({error}); "
            "once this line is taken out, the rest can be read"
        ) from error


def check_completeness(file: Path, summary: Path, cases: int) -> None:
    """Check that a finished run's records are complete."""
    try:
        counts = json.loads(summary.read_text("utf-8"))["cases"]
        expected = sum(counts.values()) if counts else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        expected = None  # Without a readable summary, only the end of the file is checked.
    with file.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, 2) - 1))
        cut = stream.read(1) not in {b"", b"\n"}  # Whether the last line has no line end.
    if not cut and (expected is None or cases >= expected):
        return
    number = "" if expected is None else f"holds {cases} of {expected} cases"
    parts = [part for part in (number, "ends within a line" if cut else "") if part]
    raise RunError(f"{file} {' and '.join(parts)}: it was cut short; copy it again")


def flatten_record(record: Record) -> dict[str, Any]:
    """Convert a record to a flat row with columns such as `tag.NAME` and `score.NAME`; targets form a JSON list.

    The cost is None if a call has no known price.
    """
    target = record.target
    return {
        "case": record.case,
        "benchmark": record.benchmark,
        "sample": record.sample,
        "epoch": record.epoch,
        "model": record.model,
        "outcome": record.outcome,
        **{f"tag.{name}": value for name, value in record.tags.items()},
        **{f"score.{name}": value for name, value in record.scores.items()},
        "error": record.error,
        "cause": record.cause,
        "calls": record.usage.calls,
        "prompt_tokens": record.usage.prompt_tokens,
        "completion_tokens": record.usage.completion_tokens,
        "cost": None if record.usage.unpriced else record.usage.cost,
        "seconds": record.seconds,
        "input": record.input,
        "target": json.dumps(target, ensure_ascii=False) if isinstance(target, list | tuple) else target,
        "answer": record.transcript.answer if record.transcript else None,
    }


def list_columns(rows: Iterable[dict[str, Any]]) -> Sequence[str]:
    """List the columns that any row has, in order of first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))
