"""Rank correlations with an interval that holds where they are nearly perfect, too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.stats.clustering import Interval
from evalsuite.stats.jackknife import interval_of_replicates
from evalsuite.stats.rank_tables import without_each_cluster

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from evalsuite.stats.rank_tables import RankCoefficient

    Variables = Sequence[tuple[Sequence[float], Sequence[float]]]

FEWEST = 3
"""Cases below which nothing is correlated."""


def rank_replicates(
    variables: Variables, clusters: Sequence[Hashable], coefficient: RankCoefficient
) -> tuple[float, list[float]]:
    """The mean coefficient of several pairs of variables over all cases, and that without each cluster.

    Args:
        variables: x and y of each pair, one value a case.
        clusters: which cases belong together.
        coefficient: Spearman's rho or Kendall's tau-b.

    Returns:
        nan wherever a variable is constant; (nan, []) with fewer than three cases.
    """
    if len(clusters) < FEWEST:
        return math.nan, []
    each = [without_each_cluster(x, y, clusters, coefficient) for x, y in variables]
    whole = math.fsum(value for value, _ in each) / len(each)
    return whole, [math.fsum(left) / len(each) for left in zip(*(left for _, left in each), strict=True)]


def rank_interval(
    variables: Variables,
    clusters: Sequence[Hashable],
    coefficient: RankCoefficient,
    *,
    confidence: float = 0.95,
) -> tuple[float, Interval]:
    """The mean coefficient of several pairs of variables, and the jackknife's interval with a guard.

    Among cases that nearly all agree, the rare one that does not may be missing, and the jackknife, which knows the
    drawn ones only, would not reckon with it; of a perfect correlation its interval is a point. So each bound is that
    of the jackknife or, if it is farther off, that with one more cluster of opposite extremes (for the upper bound:
    of extremes that agree), as the Clopper-Pearson bound counts one more success. The guard is our own;
    `docs/statistics.md` has its simulation.

    Args:
        variables: as `rank_replicates`.
        clusters: as `rank_replicates`.
        coefficient: as `rank_replicates`.
        confidence: 0.95 for a 95% interval.

    Returns:
        nan for the value where it is undefined, and for the bounds where it is undefined without some cluster.
    """
    value, without = rank_replicates(variables, clusters, coefficient)
    if math.isnan(value) or any(math.isnan(left) for left in without):
        return value, Interval(math.nan, math.nan)
    plain = interval_of_replicates(value, without, confidence=confidence)
    size = max(1, round(len(clusters) / len(without)))

    def bounds(opposite: bool) -> list[Interval]:  # noqa: FBT001 - one of two ways
        return [
            interval_of_replicates(
                *rank_replicates(
                    [_with_one_more(x, y, size, up=up, opposite=opposite) for x, y in variables],
                    [*((0, cluster) for cluster in clusters), *[(1, "")] * size],
                    coefficient,
                ),
                confidence=confidence,
            )
            for up in (True, False)
        ]

    lows = [bound.low for bound in (plain, *bounds(opposite=True)) if not math.isnan(bound.low)]
    highs = [bound.high for bound in (plain, *bounds(opposite=False)) if not math.isnan(bound.high)]
    return value, Interval(max(-1.0, min([value, *lows])), min(1.0, max([value, *highs])))


def _with_one_more(
    x: Sequence[float], y: Sequence[float], size: int, *, up: bool, opposite: bool
) -> tuple[list[float], list[float]]:
    """Both variables with `size` more cases, x at its upper or lower end, and y at the opposite or the same end."""
    ends = (min(y), max(y))
    return [*x, *[max(x) if up else min(x)] * size], [*y, *[ends[up != opposite]] * size]
