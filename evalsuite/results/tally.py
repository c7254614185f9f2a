"""Tallies: addable aggregates of records; means, intervals and tables are read off them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from evalsuite.core.types import Outcome, Record, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from evalsuite.core.types import Metric
    from evalsuite.stats import Interval


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval.

    Attributes:
        value: the point estimate, on the metric's own scale (a share is 0.25, not 25).
        low: lower bound; None where no interval can be given.
        high: upper bound, likewise.
        n: number of cases behind it.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0

    def within(self, low: float, high: float) -> Estimate:
        """Cut the interval at the metric's range, which a t interval does not respect."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=max(self.low, low), high=min(self.high, high))


Question = tuple[str, str]
"""A sample's id without its mode, and the mode."""


def whatever_the_mode(sample: str, mode: str) -> str:
    """Remove the mode from a sample's id, which ends with it where a benchmark runs in several modes."""
    written = mode.replace(":", "-")
    return sample.removesuffix(written).rstrip("-|") if mode and sample != written else sample


@dataclass(frozen=True, slots=True)
class Row:
    """What a tally keeps of a record: everything but the long texts."""

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
        """What was asked, and in which mode; the same in every run and epoch."""
        mode = self.tags.get("mode", "")
        return whatever_the_mode(self.sample, mode), mode

    @property
    def cluster(self) -> str:
        """What this case shares with others: the value of its tag `cluster`, or its sample."""
        return self.tags.get("cluster", self.sample)

    @property
    def model_usage(self) -> Usage:
        """What the model under test took by itself."""
        return self.usage - self.judge_usage - self.simulator_usage

    @classmethod
    def of(cls, record: Record) -> Row:
        """Take what a tally keeps from a record."""
        return cls(*(getattr(record, name) for name in _ROW_FIELDS))

    def with_scores(self, scores: Mapping[str, float]) -> Row:
        """Copy the case with other scores."""
        return replace(self, scores=scores)


_ROW_FIELDS = tuple(item.name for item in fields(Row))


@dataclass(frozen=True, slots=True)
class Tally:
    """Rows of one benchmark, in the order of their case ids whatever order they came in.

    Attributes:
        rows: one per case.
    """

    rows: tuple[Row, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Tally:
        """Make a tally of these rows."""
        return cls(tuple(sorted(rows, key=lambda row: row.case)))

    def __add__(self, other: Tally) -> Tally:
        """Add the rows of both; addition is associative and does not depend on the order."""
        return Tally.of((*self.rows, *other.rows))

    def __len__(self) -> int:
        """Count the cases, errors included."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows."""
        return iter(self.rows)

    def count(self, outcome: Outcome) -> int:
        """Count the rows with this outcome."""
        return sum(row.outcome == outcome for row in self.rows)

    def where(self, keep: Callable[[Row], bool] | None = None, **tags: str) -> Tally:
        """Select the rows that have all these tags and, if given, that `keep` accepts."""
        wanted = tags.items()
        return Tally(
            tuple(row for row in self.rows if wanted <= row.tags.items() and (keep is None or keep(row)))
        )

    def groups(self, tag: str) -> dict[str, Tally]:
        """Make a tally per value of a tag, in the order of the values; rows without the tag are left out."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            if tag in row.tags:
                found.setdefault(row.tags[tag], []).append(row)
        return {value: Tally(tuple(found[value])) for value in sorted(found)}

    def metrics(self) -> tuple[str, ...]:
        """List the names of all scores, in order of first appearance."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.scores))

    def ran(self) -> Tally:
        """Select the rows that passed or failed."""
        return self.where(lambda row: row.outcome in {"passed", "failed"})

    def scored(self, metric: str) -> Tally:
        """Select the rows that are not errors and have this score."""
        return self.where(lambda row: row.outcome != "error" and metric in row.scores)

    def values(self, metric: str) -> list[float]:
        """List one value per row of `scored(metric)`."""
        return [row.scores[metric] for row in self.scored(metric)]

    def clusters(self, metric: str) -> list[str]:
        """List the cluster of each value: its sample, or what its samples share (the tag `cluster`)."""
        return [row.cluster for row in self.scored(metric)]

    def mean(self, metric: str) -> float | None:
        """Compute the plain mean, or None where nothing was measured."""
        values = self.values(metric)
        return math.fsum(values) / len(values) if values else None

    def estimate(
        self, metric: str, confidence: float = 0.95, bounds: tuple[float, float] | None = None
    ) -> Estimate | None:
        """Estimate the mean with an interval that depends on which values the scores can have.

        0/1 scores have a share's interval (`stats.share_interval`), those within known bounds the betting
        interval; both hold for any number of cases. Others have the t interval, and none where all clusters have
        the same mean: nothing varied, which does not show that nothing could.

        Epochs of a sample are one cluster, as are samples that share a source (the tag `cluster`).

        Args:
            metric: its name.
            confidence: the interval's.
            bounds: what no score can leave, where that is known.

        Returns:
            None where nothing was measured; without an interval where all values come from one cluster.
        """
        scored = self.scored(metric)
        return scored.estimate_of([row.scores[metric] for row in scored], confidence, bounds)

    def estimate_of(
        self, values: Sequence[float], confidence: float = 0.95, bounds: tuple[float, float] | None = None
    ) -> Estimate | None:
        """Estimate the mean of other values, one for each row, as `estimate` does."""
        if not values:
            return None
        clusters = [row.cluster for row in self.rows]
        mean = math.fsum(values) / len(values)
        interval = _interval(values, clusters, confidence, bounds)
        if interval is None:
            return Estimate(mean, n=len(values))
        return Estimate(mean, interval.low, interval.high, len(values))

    def share(self, metric: str, confidence: float = 0.95) -> Estimate | None:
        """`estimate` of a metric in [0, 1]."""
        return self.estimate(metric, confidence, (0.0, 1.0))


def _interval(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    confidence: float,
    bounds: tuple[float, float] | None,
) -> Interval | None:
    from evalsuite import stats

    shares = all(value in (0.0, 1.0) for value in values)
    apart = len(set(clusters))
    if shares and apart == len(values):
        # What the general one comes to; by itself it needs no numpy, whose import takes a sixth of a second.
        return stats.count_interval(math.fsum(values), len(values), confidence)
    if apart < 2:
        return None
    if shares:
        return stats.share_interval(values, clusters=clusters, confidence=confidence)
    if bounds is not None and bounds[0] <= min(values) and max(values) <= bounds[1]:
        return stats.betting_interval(values, bounds=bounds, clusters=clusters, confidence=confidence)
    interval = stats.mean_interval(values, clusters=clusters, confidence=confidence)
    return interval if math.isfinite(interval.high) else None


def _no_records(case: str) -> Record:
    raise KeyError(case)


@dataclass(frozen=True, slots=True)
class RunView:
    """One benchmark of one run, as a report sees it.

    Attributes:
        label: what tells this run from the others: the model, or the run's name where models repeat.
        tally: all its cases.
        judge: the judge model, if the run had one.
        source: where the samples came from, in words.
        read: fetches one case's whole record from the run's folder.
        declared: range and direction of its metrics, as far as anybody said.
    """

    label: str
    tally: Tally
    judge: str | None = None
    source: str = ""
    read: Callable[[str], Record] = field(default=_no_records)
    declared: Mapping[str, Metric] = field(default_factory=dict)

    def estimate(self, metric: str, cases: Tally) -> Estimate | None:
        """Estimate a metric over some of the cases, with the interval that its declared range allows."""
        declared = self.declared.get(metric)
        return cases.estimate(metric, bounds=declared.range if declared else None)
