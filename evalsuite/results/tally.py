"""Tallies: collections of rows (records without long texts), with methods for sums, means, intervals and groups."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from evalsuite.core.types import Metric, Outcome, Record, Usage

if TYPE_CHECKING:
    from evalsuite.stats import Interval

_T = TypeVar("_T")
UNMEASURED = "unmeasured"  # Key, in a record's `facts`, of the reasons why the case lacks scores, by metric.


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval.

    Attributes:
        value: the point estimate, on the metric's own scale (a share is 0.25, not 25).
        low: lower bound of the interval; None if the estimate has no interval.
        high: upper bound of the interval; None if the estimate has no interval.
        n: number of cases that the estimate is based on.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0

    @classmethod
    def of(cls, value: float, low: float, high: float, n: int = 0) -> Estimate | None:
        """Make an estimate; return None if the value is NaN, and omit the interval if the bounds are NaN."""
        if math.isnan(value):
            return None
        return cls(value, n=n) if math.isnan(low) else cls(value, low, high, n)


def choose_primary(declared: str | None, scores: Iterable[str]) -> str | None:
    """Return the main metric: the declared one, else the first score by name; None without scores.

    The order of appearance would depend on which cases lack a score.
    """
    return declared if declared is not None else min(scores, default=None)


Question = tuple[str, str]  # A sample's id without its mode, then the mode.


def remove_mode(sample: str, mode: str) -> str:
    """Remove the mode from the end of a sample's id; only benchmarks with several modes append the mode."""
    written = mode.replace(":", "-")
    return sample.removesuffix(written).rstrip("-|") if mode and sample != written else sample


@dataclass(frozen=True, slots=True)
class Row:
    """A record without its long texts, for tallies."""

    case: str
    sample: str
    epoch: int
    outcome: Outcome
    tags: Mapping[str, str]
    scores: Mapping[str, float]
    facts: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    judge_usage: Usage = field(default_factory=Usage)
    simulator_usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    solving_seconds: float = 0.0
    excused: str | None = None
    cause: str | None = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    @property
    def question(self) -> Question:
        """The question's id and the mode, which are the same in every run and epoch."""
        mode = self.tags.get("mode", "")
        return remove_mode(self.sample, mode), mode

    @property
    def cluster(self) -> str:
        """The name of the row's cluster of related cases: the value of the tag `cluster`, or else the sample's id."""
        return self.tags.get("cluster", self.sample)

    @property
    def model_usage(self) -> Usage:
        """The usage of the model under test, without judges and simulators."""
        return self.usage - self.judge_usage - self.simulator_usage

    @classmethod
    def of(cls, record: Record) -> Row:
        """Make a row from a record."""
        return cls(*(getattr(record, name) for name in _ROW_FIELDS))

    def with_scores(self, scores: Mapping[str, float]) -> Row:
        """Copy the row with other scores."""
        return replace(self, scores=scores)


_ROW_FIELDS = tuple(item.name for item in fields(Row))


class StoredRows(Protocol):
    """Rows that are read from a file when they are used; see `stored_rows`."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Row]: ...
    def __getitem__(self, at: int) -> Row: ...

    def take(self, places: Iterable[int]) -> StoredRows:
        """Select rows by their numbers."""

    def remember(self, key: object, compute: Callable[[], _T]) -> _T:
        """Return what was computed under this key before, or compute it."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The rows of one benchmark, always sorted by case id.

    Attributes:
        rows: the rows, one per case.
    """

    rows: tuple[Row, ...] | StoredRows = ()

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Tally:
        """Make a tally of these rows."""
        return cls(tuple(sorted(rows, key=lambda row: row.case)))

    def __add__(self, other: Tally) -> Tally:
        return Tally.of((*self.rows, *other.rows))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def count(self, outcome: Outcome) -> int:
        """Count the rows with this outcome."""
        return sum(row.outcome == outcome for row in self.rows)

    def where(self, keep: Callable[[Row], bool] | None = None, **tags: str) -> Tally:
        """Select the rows that have all these tags; if `keep` is given, only rows for which `keep` returns true."""
        wanted = tags.items()
        return self._take(
            at for at, row in enumerate(self.rows) if wanted <= row.tags.items() and (keep is None or keep(row))
        )

    def _take(self, places: Iterable[int]) -> Tally:
        if isinstance(self.rows, tuple):
            return Tally(tuple(map(self.rows.__getitem__, places)))
        return Tally(self.rows.take(places))

    def _remember(self, key: object, compute: Callable[[], _T]) -> _T:
        """Compute a value; for rows in a file, only once, because each pass over the file takes long."""
        if isinstance(self.rows, tuple):
            return compute()
        return self.rows.remember(key, compute)

    def groups(self, tag: str) -> dict[str, Tally]:
        """Make one tally per value of a tag, sorted by value; rows without the tag are left out."""
        found: dict[str, array[int]] = {}
        for at, row in enumerate(self.rows):
            if tag in row.tags:
                found.setdefault(row.tags[tag], array("I")).append(at)
        return {value: self._take(found[value]) for value in sorted(found)}

    def metrics(self) -> tuple[str, ...]:
        """List the names of all scores, in order of first appearance."""
        return self._remember("metrics", lambda: tuple(dict.fromkeys(name for row in self.rows for name in row.scores)))

    def ran(self) -> Tally:
        """Select the rows that passed or failed."""
        return self.where(lambda row: row.outcome in {"passed", "failed"})

    def scored(self, metric: str) -> Tally:
        """Select the rows that are not errors and have this score."""
        return self._remember(
            ("scored", metric), lambda: self.where(lambda row: row.outcome != "error" and metric in row.scores)
        )

    def values(self, metric: str) -> list[float]:
        """List the values of a metric, one per row of `scored(metric)`."""
        return [row.scores[metric] for row in self.scored(metric)]

    def clusters(self, metric: str) -> list[str]:
        """List the cluster of each value: the tag `cluster`, or else the sample's id."""
        return [row.cluster for row in self.scored(metric)]

    def mean(self, metric: str) -> float | None:
        """Compute the plain mean; None if no row has the metric."""
        values = self.values(metric)
        return math.fsum(values) / len(values) if values else None

    def estimate(
        self, metric: str, confidence: float = 0.95, bounds: tuple[float, float] | None = None
    ) -> Estimate | None:
        """Estimate the mean, with an interval whose method depends on the values that scores can take.

        Scores of 0 and 1 get a share's interval (`stats.share_interval`). Scores within known bounds get the betting
        interval. These intervals are valid for any number of cases. Scores without known bounds get the t interval. If
        all clusters have the same mean, the interval is omitted, because equal values do not prove that scores cannot
        vary.

        Epochs of a sample form one cluster, and so do samples that share a source (the tag `cluster`).

        Args:
            metric: the score's name.
            confidence: the confidence of the interval.
            bounds: the lowest and highest possible score, if known.

        Returns:
            None if no row has the metric; an estimate without an interval if all values come from one cluster.
        """
        scored = self.scored(metric)
        return scored.estimate_of([row.scores[metric] for row in scored], confidence, bounds)

    def estimate_of(
        self, values: Sequence[float], confidence: float = 0.95, bounds: tuple[float, float] | None = None
    ) -> Estimate | None:
        """Estimate the mean of given values, one per row, as `estimate` does."""
        if not values:
            return None
        clusters = [row.cluster for row in self.rows]
        mean = math.fsum(values) / len(values)
        interval = _make_interval(values, clusters, confidence, bounds)
        if interval is None:
            return Estimate(mean, n=len(values))
        return Estimate(mean, interval.low, interval.high, len(values))

    def share(self, metric: str, confidence: float = 0.95) -> Estimate | None:
        """Estimate the mean of a score in [0, 1], as `estimate` does with these bounds."""
        return self.estimate(metric, confidence, (0.0, 1.0))


def _make_interval(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float, bounds: tuple[float, float] | None
) -> Interval | None:
    from evalsuite import stats

    shares = all(value in (0.0, 1.0) for value in values)
    count = len(set(clusters))
    if shares and count == len(values):
        # The result equals that of `share_interval`, without importing numpy, which takes a sixth of a second.
        return stats.count_interval(math.fsum(values), len(values), confidence)
    if count < 2:
        return None
    if shares:
        return stats.share_interval(values, clusters=clusters, confidence=confidence)
    if bounds is not None and bounds[0] <= min(values) and max(values) <= bounds[1]:
        return stats.betting_interval(values, bounds=bounds, clusters=clusters, confidence=confidence)
    interval = stats.mean_interval(values, clusters=clusters, confidence=confidence)
    return interval if math.isfinite(interval.high) else None


def _refuse_record_access(case: str) -> Record:
    raise KeyError(case)


@dataclass(frozen=True, slots=True)
class RunView:
    """The data from which the report on one benchmark in one run is made.

    Attributes:
        label: the run's label in tables: the model's name, or the run's name if several runs have the same model.
        tally: all cases of the benchmark in this run.
        judge: the judge model; None if the run had no judge.
        source: a description of the samples' origin.
        read: function that reads one case's complete record from the run's folder.
        declared: range and direction of each declared metric.
    """

    label: str
    tally: Tally
    judge: str | None = None
    source: str = ""
    read: Callable[[str], Record] = field(default=_refuse_record_access)
    declared: Mapping[str, Metric] = field(default_factory=dict)

    def estimate(self, metric: str, cases: Tally) -> Estimate | None:
        """Estimate a metric over some of the cases, with an interval within the metric's declared range."""
        declared = self.declared.get(metric)
        return cases.estimate(metric, bounds=declared.range if declared else None)
