"""Tallies: collections of rows (records without long texts), which compute sums, means, intervals and groups."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from evalsuite import stats
from evalsuite.core.types import Metric, Outcome, Record, Usage, are_outcomes

_T = TypeVar("_T")
UNMEASURED = "unmeasured"  # Key in a record's `facts`; its value maps each metric without a score to the reason.


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval.

    Attributes:
        value: the point estimate, on the metric's own scale: a share is 0.25, not 25.
        low: lower bound of the interval; None if the estimate has no interval.
        high: upper bound of the interval; None if the estimate has no interval.
        n: number of cases on which the estimate is based.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0

    @classmethod
    def of(cls, value: float, low: float, high: float, n: int = 0) -> Estimate | None:
        """Make an estimate; return None if the value is NaN, and leave out an interval that is NaN or unbounded."""
        if math.isnan(value):
            return None
        return cls(value, low, high, n) if math.isfinite(low) and math.isfinite(high) else cls(value, n=n)


def choose_primary(declared: str | None, scores: Iterable[str]) -> str | None:
    """Return the main metric: the declared one or, if none is declared, the first of the scores in alphabetical order.

    The order of appearance is not used, because it depends on which cases lack a score.
    """
    return declared if declared is not None else min(scores, default=None)


Question = tuple[str, str]  # The sample's id without its mode, and the mode.


def remove_mode(sample: str, mode: str) -> str:
    """Remove the mode from the end of a sample's id, where benchmarks with several modes append it."""
    written = mode.replace(":", "-")
    return sample.removesuffix(written).rstrip("-|") if mode and sample != written else sample


@dataclass(frozen=True, slots=True)
class Row:
    """A record without its long texts, as tallies need it."""

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
        """The question's id and the mode; both are the same in all runs and epochs."""
        mode = self.tags.get("mode", "")
        return remove_mode(self.sample, mode), mode

    @property
    def cluster(self) -> str:
        """The row's group of related cases: the value of the tag `cluster` or, without it, the sample's id."""
        return self.tags.get("cluster", self.sample)

    @property
    def model_usage(self) -> Usage:
        """The usage of the tested model, without that of judges and simulators."""
        return self.usage - self.judge_usage - self.simulator_usage

    @classmethod
    def of(cls, record: Record) -> Row:
        """Make a row from a record."""
        return cls(*(getattr(record, name) for name in _ROW_FIELDS))

    def with_scores(self, scores: Mapping[str, float]) -> Row:
        """Return a copy of the row in which `scores` replaces the scores."""
        return replace(self, scores=scores)


_ROW_FIELDS = tuple(item.name for item in fields(Row))


@dataclass(frozen=True, slots=True)
class Tally:
    """The rows of one benchmark, always sorted by case id.

    Attributes:
        rows: the rows, one per case.
    """

    rows: Sequence[Row] = ()

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
        """Select the rows that have all these tags and, if `keep` is given, for which `keep` returns true."""
        wanted = tags.items()
        return self._select_rows(
            at for at, row in enumerate(self.rows) if wanted <= row.tags.items() and (keep is None or keep(row))
        )

    def _select_rows(self, indices: Iterable[int]) -> Tally:
        return Tally(tuple(map(self.rows.__getitem__, indices)))

    def _compute_once(self, _key: object, compute: Callable[[], _T]) -> _T:
        """Compute a value from the rows; `_StoredTally` overrides this, and computes the value only once per key."""
        return compute()

    def groups(self, tag: str) -> dict[str, Tally]:
        """Make one tally for each value of a tag, sorted by value; rows without the tag are in none."""
        found: dict[str, array[int]] = {}
        for at, row in enumerate(self.rows):
            if tag in row.tags:
                found.setdefault(row.tags[tag], array("I")).append(at)
        return {value: self._select_rows(found[value]) for value in sorted(found)}

    def metrics(self) -> tuple[str, ...]:
        """List the names of all scores, in order of first appearance."""
        return self._compute_once(
            "metrics", lambda: tuple(dict.fromkeys(name for row in self.rows for name in row.scores))
        )

    def ran(self) -> Tally:
        """Select the rows whose test passed or failed (no error, not skipped)."""
        return self.where(lambda row: row.outcome in {"passed", "failed"})

    def scored(self, metric: str) -> Tally:
        """Select the rows that have this score and did not end in an error."""
        return self._compute_once(
            ("scored", metric), lambda: self.where(lambda row: row.outcome != "error" and metric in row.scores)
        )

    def values(self, metric: str) -> list[float]:
        """List the values of a metric, in the order of `scored(metric)`."""
        return [row.scores[metric] for row in self.scored(metric)]

    def clusters(self, metric: str) -> list[str]:
        """List the cluster (group of related cases) of each value: the tag `cluster`, by default the sample's id."""
        return [row.cluster for row in self.scored(metric)]

    def mean(self, metric: str) -> float | None:
        """Compute the mean without an interval; None if no row has the metric."""
        values = self.values(metric)
        return math.fsum(values) / len(values) if values else None

    def estimate(
        self, metric: str, confidence: float = 0.95, bounds: tuple[float, float] | None = None
    ) -> Estimate | None:
        """Estimate the mean, with an interval; the method depends on which values scores can have.

        If all scores are 0 or 1, and `bounds` is None or (0, 1), the interval is that of a share
        (`stats.share_interval`). If scores have known bounds, the interval is the betting interval. The intervals for
        shares and for bounded scores are valid for any number of cases. If scores have no known bounds, the interval is
        the t interval. If all clusters have the same mean, the t interval is left out, because the data do not show how
        much scores vary.

        A cluster consists of all epochs of a sample, or of all samples with the same source (the tag `cluster`).

        Args:
            metric: the name of the score.
            confidence: the confidence of the interval.
            bounds: the lowest and the highest possible score; None if unknown.

        Returns:
            The estimate, without an interval if all values come from one cluster; None if no row has the metric.
        """
        scored = ((row.scores[metric], row.cluster) for row in self.scored(metric))
        return estimate_clustered_mean(scored, confidence, bounds)

    def share(self, metric: str, confidence: float = 0.95) -> Estimate | None:
        """Estimate the mean of a score in [0, 1], by the same method as `estimate`."""
        return self.estimate(metric, confidence, (0.0, 1.0))


def estimate_clustered_mean(
    scored: Iterable[tuple[float, Hashable]], confidence: float = 0.95, bounds: tuple[float, float] | None = None
) -> Estimate | None:
    """Estimate the mean of values, each with its cluster, as `Tally.estimate` does; None without values."""
    values, clusters = list[float](), list[Hashable]()
    for value, cluster in scored:
        values.append(value)
        clusters.append(cluster)
    if not values:
        return None
    interval = _compute_interval_of_mean(values, clusters, confidence, bounds)
    return Estimate.of(math.fsum(values) / len(values), interval.low, interval.high, len(values))


def _compute_interval_of_mean(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float, bounds: tuple[float, float] | None
) -> stats.Interval:
    shares = are_outcomes(values, bounds)
    count = len(set(clusters))
    if shares and count == len(values):
        # Compute the interval of `share_interval` without importing numpy, which takes a sixth of a second.
        return stats.count_interval(math.fsum(values), len(values), confidence)
    if count < 2:
        return stats.Interval(-math.inf, math.inf)
    if shares:
        return stats.share_interval(values, clusters=clusters, confidence=confidence)
    if bounds is not None and bounds[0] <= min(values) and max(values) <= bounds[1]:
        return stats.betting_interval(values, bounds=bounds, clusters=clusters, confidence=confidence)
    return stats.mean_interval(values, clusters=clusters, confidence=confidence)


@dataclass(frozen=True, slots=True)
class RunView:
    """One run in a benchmark's section of the report: the benchmark's cases in this run, and the run's label.

    Attributes:
        label: the run's name in tables: its model's name or, if several runs have the same model, its folder's name.
        tally: all cases of the benchmark in this run.
        judge: the judge model; None if the run did not use a judge.
        source: a text that says where the samples come from.
        read: function that reads a case's record, with its texts, from the run's folder.
        declared: the range and the direction (higher or lower is better) of each declared metric.
        derived: functions that compute this run's metrics that are not means over cases; without the benchmark's code,
            they return the stored values.
    """

    label: str
    tally: Tally
    judge: str | None = None
    source: str = ""
    read: Callable[[str], Record] = dict[str, Record]().__getitem__
    declared: Mapping[str, Metric] = field(default_factory=dict)
    derived: Mapping[str, Callable[[Tally], Estimate | None]] = field(default_factory=dict)

    def estimate(self, metric: str, cases: Tally) -> Estimate | None:
        """Estimate a metric over some cases; the interval stays inside the metric's declared range."""
        declared = self.declared.get(metric)
        return cases.estimate(metric, bounds=declared.range if declared else None)
