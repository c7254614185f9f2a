"""Does the judge agree with people? Over all samples of a tally, so that gates and tables can ask.

A comparison without a usable verdict counts as disagreement, in accuracy and, as a label of its own that
people never give, in kappa. A dialogue without a usable judgement has no score to correlate; how many
there are stands beside each correlation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeVar

from evalsuite.benchmarks.chat_eval.ratings import ASPECT_NAMES
from evalsuite.results.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalsuite.results.tally import Row, Tally
    from evalsuite.stats import Interval

Coefficient = Literal["spearman", "kendall"]
T = TypeVar("T")


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
    from evalsuite.stats.jackknife import interval_of_replicates
    from evalsuite.stats.rank_tables import without_each_cluster

    rows = list(dialogues(tally))
    if len(rows) < 3:
        return None
    clusters = [str(row.facts["dialogue"]) for row in rows]
    pairs_of = [
        ([row.facts["judged"][one] for row in rows], [row.facts["human"][one] for row in rows])
        for one in aspects
    ]
    each = [without_each_cluster(judge, people, clusters, coefficient) for judge, people in pairs_of]
    value = math.fsum(whole for whole, _ in each) / len(each)
    without = [math.fsum(left) / len(each) for left in zip(*(left for _, left in each), strict=True)]
    if math.isnan(value):
        return None
    return _with_interval(value, interval_of_replicates(value, without, bounds=(-1.0, 1.0)), len(rows))


def _clusters(tally: Tally, cluster: Callable[[Row], str], item: Callable[[Row], T]) -> list[list[T]]:
    found: dict[str, list[T]] = {}
    for row in tally:
        found.setdefault(cluster(row), []).append(item(row))
    return list(found.values())


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
