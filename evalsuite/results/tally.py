"""Tallies: addable aggregates of records; means, intervals and tables are read off them."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from evalsuite.results.estimate import Estimate
from evalsuite.results.rows import PackedRows, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from evalsuite.core.types import Metric, Outcome, Record
    from evalsuite.stats import Interval


@dataclass(frozen=True, slots=True)
class Tally:
    """Rows of one benchmark, in the order of their case ids whatever order they came in.

    Attributes:
        rows: one a case; those of a run that was read are `PackedRows`.
    """

    rows: Sequence[Row] = ()

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Tally:
        """A tally of these rows."""
        return cls(tuple(sorted(rows, key=lambda row: row.case)))

    def __add__(self, other: Tally) -> Tally:
        """The tally of both: addition is associative and does not depend on the order."""
        return Tally.of((*self.rows, *other.rows))

    def __len__(self) -> int:
        """The number of cases, errors included."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        """The rows."""
        return iter(self.rows)

    def each(self, attribute: str) -> Iterator[Any]:
        """One attribute of each row, in the order of the rows; cheaper than the rows themselves."""
        rows = self.rows
        return rows.each(attribute) if isinstance(rows, PackedRows) else map(attrgetter(attribute), rows)

    def pick(self, places: Sequence[int]) -> Tally:
        """The rows at these places, in this order, which must be theirs."""
        rows = self.rows
        return Tally(
            rows.pick(places) if isinstance(rows, PackedRows) else tuple(rows[place] for place in places)
        )

    def count(self, outcome: Outcome) -> int:
        """How many rows have this outcome."""
        return sum(own == outcome for own in self.each("outcome"))

    @property
    def samples_are_apart(self) -> bool:
        """Whether each row surely has a sample of its own, as far as that can be told without looking at them all."""
        return isinstance(self.rows, PackedRows) and self.rows.samples_are_apart()

    def where(self, keep: Callable[[Row], bool] | None = None, **tags: str) -> Tally:
        """The rows that have all these tags and, if given, that `keep` accepts."""
        places: Iterable[int] = range(len(self.rows))
        if tags:
            wanted = tags.items()
            places = (place for place, own in enumerate(self.each("tags")) if wanted <= own.items())
        if keep:
            places = (place for place in places if keep(self.rows[place]))
        return self.pick(array("I", places))

    def groups(self, tag: str) -> dict[str, Tally]:
        """A tally for each value of a tag, in the order of the values; rows without the tag are left out."""
        found: dict[str, array[int]] = {}
        for place, tags in enumerate(self.each("tags")):
            if tag in tags:
                found.setdefault(tags[tag], array("I")).append(place)
        return {value: self.pick(found[value]) for value in sorted(found)}

    def metrics(self) -> tuple[str, ...]:
        """The names of all scores, in order of first appearance."""
        return tuple(dict.fromkeys(name for names in dict.fromkeys(self._score_names()) for name in names))

    def _score_names(self) -> Iterator[tuple[str, ...]]:
        rows = self.rows
        return rows.score_names() if isinstance(rows, PackedRows) else (tuple(row.scores) for row in rows)

    def scored(self, metric: str) -> Tally:
        """The rows that are not errors and have this score."""
        both = zip(self.each("outcome"), self._score_names(), strict=True)
        return self.pick(
            array(
                "I",
                (
                    place
                    for place, (outcome, names) in enumerate(both)
                    if outcome != "error" and metric in names
                ),
            )
        )

    def scores_of(self, metric: str) -> Iterator[float | None]:
        """One score of each row, errors included; None where a row has none."""
        rows = self.rows
        if isinstance(rows, PackedRows):
            return rows.scores_of(metric)
        return (row.scores.get(metric) for row in rows)

    def values(self, metric: str) -> list[float]:
        """One value for each row of `scored(metric)`."""
        return self.scored(metric)._scores(metric)  # noqa: SLF001 - another of this class

    def _scores(self, metric: str) -> list[float]:
        """The score of each row, all of which have it."""
        rows = self.rows
        if isinstance(rows, PackedRows):
            return [value for value in rows.scores_of(metric) if value is not None]
        return [row.scores[metric] for row in rows]

    def clusters(self, metric: str) -> list[str]:
        """The cluster of each value: its sample, or what its samples share (the tag `cluster`)."""
        return list(self.scored(metric)._cluster_names())  # noqa: SLF001 - another of this class

    def _cluster_names(self) -> Iterator[str]:
        both = zip(self.each("tags"), self.each("sample"), strict=True)
        return (tags.get("cluster", sample) for tags, sample in both)

    def _clusters(self) -> Sequence[Hashable]:
        """Something for each row that is equal for rows of one cluster alone: numbers where all are apart."""
        if self.samples_are_apart and not any("cluster" in tags for tags in self.each("tags")):
            return range(len(self.rows))
        return list(self._cluster_names())

    def mean(self, metric: str) -> float | None:
        """The plain mean, or None where nothing was measured."""
        values = self.values(metric)
        return math.fsum(values) / len(values) if values else None

    def estimate(
        self, metric: str, confidence: float = 0.95, bounds: tuple[float, float] | None = None
    ) -> Estimate | None:
        """The mean with its interval, which depends on what the scores can be.

        0/1 scores have a share's interval (`stats.share_interval`), those within known bounds the betting
        interval; both hold for any number of cases. Others have the t interval, and none where all clusters have
        the same mean: nothing varied, which does not show that nothing could.

        Epochs of a sample are one cluster, as are samples that share a source (the tag `cluster`).

        Args:
            metric: its name.
            confidence: of the interval.
            bounds: what no score can leave, where that is known.

        Returns:
            None where nothing was measured; without an interval where all values come from one cluster.
        """
        scored = self.scored(metric)
        return scored.estimate_of(scored._scores(metric), confidence, bounds)  # noqa: SLF001 - of this class

    def estimate_of(
        self, values: Sequence[float], confidence: float = 0.95, bounds: tuple[float, float] | None = None
    ) -> Estimate | None:
        """As `estimate`, of other values: one for each row."""
        if not values:
            return None
        clusters = self._clusters()
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
    apart = len(values) if isinstance(clusters, range) else len(set(clusters))
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
        """A metric over some of the cases, with the interval that its declared range allows."""
        declared = self.declared.get(metric)
        return cases.estimate(metric, bounds=declared.range if declared else None)
