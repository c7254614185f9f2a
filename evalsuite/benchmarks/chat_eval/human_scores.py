"""The judge's agreement with people over all samples of a tally, for gates and tables.

A comparison without a usable verdict counts as disagreement, in accuracy and, as a label of its own that
people never give, in kappa. A dialogue without a usable judgement has no score to correlate; how many
there are stands beside each correlation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from evalsuite.benchmarks.chat_eval.overlap import OVERLAP
from evalsuite.benchmarks.chat_eval.ratings import ASPECT_NAMES
from evalsuite.results.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.results.tally import Row, Tally
    from evalsuite.stats import Interval

Coefficient = Literal["spearman", "kendall"]
T = TypeVar("T")
FEWEST = 3
"""Responses below which nothing is correlated."""


def pairs(tally: Tally) -> Tally:
    """The comparisons that were judged, well or badly; errors are left out."""
    return tally.where(lambda row: row.outcome != "error" and "human" in row.facts, task="pairs")


def dialogues(tally: Tally) -> Tally:
    """The dialogues with a usable judgement."""
    return tally.where(lambda row: row.outcome != "error" and bool(row.facts.get("judged")), task="dialogues")


def kappa(tally: Tally) -> Estimate | None:
    """Cohen's kappa between the judge's and people's verdicts; None where it is undefined."""
    from evalsuite import stats

    def agreement(verdicts: Sequence[tuple[str, str]]) -> float:
        people, judge = zip(*verdicts, strict=True)
        return stats.cohen_kappa(people, judge)

    clusters = _clusters(
        pairs(tally), lambda row: row.sample, lambda row: (row.facts["human"], row.facts["verdict"] or "none")
    )
    return _estimate(clusters, agreement)


def correlation(
    tally: Tally, coefficient: Coefficient, aspects: Sequence[str] = ASPECT_NAMES
) -> Estimate | None:
    """The judge's rank correlation with people over all responses (turn level), the mean over aspects.

    As UniEval's own script computes it: all responses in one list. The interval leaves out whole
    dialogues. None where the correlation is undefined for an aspect.
    """
    return RatedResponses.by_judge(tally).correlation(coefficient, aspects)


@dataclass(frozen=True, slots=True)
class RatedResponses:
    """Dialogue responses with people's ratings and the values to correlate with them.

    Attributes:
        rows: of the responses.
        values: of each response, by aspect.
    """

    rows: Sequence[Row]
    values: Sequence[Mapping[str, float]]

    @classmethod
    def by_judge(cls, tally: Tally) -> RatedResponses:
        """With the judge's scores."""
        rows = list(dialogues(tally))
        return cls(rows, [row.facts["judged"] for row in rows])

    @classmethod
    def by_metric(cls, tally: Tally, name: str) -> RatedResponses:
        """With a metric that asks no judge, the same value for every aspect."""
        rows = [row for row in tally if name in row.facts.get(OVERLAP, {})]
        return cls(rows, [dict.fromkeys(ASPECT_NAMES, row.facts[OVERLAP][name]) for row in rows])

    def correlation(self, coefficient: Coefficient, aspects: Sequence[str] = ASPECT_NAMES) -> Estimate | None:
        """The mean over aspects, with the jackknife's interval by dialogue; None where it is undefined."""
        from evalsuite.stats.jackknife import interval_of_replicates

        value, without = self.replicates(coefficient, aspects)
        if math.isnan(value):
            return None
        return _with_interval(
            value, interval_of_replicates(value, without, bounds=(-1.0, 1.0)), len(self.rows)
        )

    def replicates(self, coefficient: Coefficient, aspects: Sequence[str]) -> tuple[float, list[float]]:
        """The mean correlation, and that without each dialogue; nan where it is undefined."""
        from evalsuite.stats.rank_tables import without_each_cluster

        if len(self.rows) < FEWEST:
            return math.nan, []
        clusters = [str(row.facts["dialogue"]) for row in self.rows]
        each = [
            without_each_cluster(
                [values[aspect] for values in self.values],
                [row.facts["human"][aspect] for row in self.rows],
                clusters,
                coefficient,
            )
            for aspect in aspects
        ]
        whole = math.fsum(value for value, _ in each) / len(each)
        return whole, [math.fsum(left) / len(each) for left in zip(*(left for _, left in each), strict=True)]


def _clusters(tally: Tally, cluster: Callable[[Row], str], item: Callable[[Row], T]) -> list[list[T]]:
    clusters: dict[str, list[T]] = {}
    for row in tally:
        clusters.setdefault(cluster(row), []).append(item(row))
    return list(clusters.values())


def _estimate(clusters: Sequence[Sequence[T]], statistic: Callable[[list[T]], float]) -> Estimate | None:
    from evalsuite.stats.jackknife import jackknife_interval

    items = [item for cluster in clusters for item in cluster]
    value = statistic(items) if items else math.nan
    if math.isnan(value):
        return None
    interval = jackknife_interval(clusters, statistic, bounds=(-1.0, 1.0))
    return _with_interval(value, interval, len(items))


def _with_interval(value: float, interval: Interval, n: int) -> Estimate:
    if math.isnan(interval.low):
        return Estimate(value, n=n)
    return Estimate(value, interval.low, interval.high, n)
