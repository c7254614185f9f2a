"""What may hide behind cases that all say the same: bounds where the jackknife and the bootstrap have no width.

If G independent clusters are all of one kind, clusters of another kind may still make up a share p of those that were
not drawn, as long as (1 - p)^G is not below the error of one bound: Clopper and Pearson (Biometrika 26, 1934) for none
of G. Each function here gives the worst value that a statistic could have with that share.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.stats.clustering import Interval
from evalsuite.stats.inputs import probability

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from evalsuite.stats.clustering import ClusteredMean
    from evalsuite.stats.inputs import Labels


def unlike_share(clusters: int, confidence: float = 0.95) -> float:
    """The largest share of clusters unlike all that were seen that these do not exclude, one-sided.

    Args:
        clusters: independent ones, all of one kind; at least one.
        confidence: of a two-sided interval, of which this is one bound: it is wrong with half the error.
    """
    if clusters < 1:
        raise ValueError(f"a bound needs at least one cluster; got {clusters}")
    return float(-math.expm1(math.log((1 - probability(confidence, "confidence")) / 2) / clusters))


def interval_of_sameness(
    value: float, clusters: int, bounds: tuple[float, float], confidence: float = 0.95
) -> Interval:
    """The interval of a bounded statistic that every cluster leaves where it is.

    It holds for whatever weighs clusters evenly, as means and their differences do: a share p of clusters moves them by
    at most p times the way to the bound. Kappa moves faster (`kappa_floor`), and so do rank correlations
    (`rank_intervals`).

    Args:
        value: of the statistic, with all clusters and without any one of them.
        clusters: independent ones.
        bounds: what the statistic cannot leave.
        confidence: 0.95 for a 95% interval.
    """
    share = unlike_share(clusters, confidence)
    return Interval(value - share * (value - bounds[0]), value + share * (bounds[1] - value))


def kappa_floor(
    a: Labels,
    b: Labels,
    *,
    clusters: Sequence[Hashable] | None = None,
    cuts: Sequence[frozenset[Hashable]] = (),
    cut_weight: float = 1.0,
    confidence: float = 0.95,
) -> float:
    """A lower bound of Cohen's kappa, exact for independent items, however few disagree.

    1 - kappa is the disagreement d over that by chance. d has its exact upper bound. The disagreement by chance is at
    least 2 s (1 - s), where s is the mean share of the raters' labels on one side of a cut between labels: the items
    on which both are there, and half of those on which they differ. The share of the former has its exact lower
    bound. Half of the error goes to d, and half to the shares of both sides of each cut (Bonferroni), so that rare
    labels, whose share nobody knows, widen the interval.

    Args:
        a: the first rater's label for each item.
        b: the second rater's labels of the same items in the same order.
        clusters: what items share; None where each stands for itself.
        cuts: the labels on one side of each cut; none for plain kappa, whose cut is around the commonest label.
        cut_weight: what a disagreement across one cut counts, where the farthest one counts 1.
        confidence: of a two-sided interval, of which this is the lower bound.

    Returns:
        From -1 to 1; -1 where nothing more can be said.
    """
    from collections import Counter

    groups: list[Hashable] = list(range(len(a)) if clusters is None else clusters)
    error = (1 - probability(confidence, "confidence")) / 2
    pairs = list(zip(a, b, strict=True))
    commonest = Counter([*a, *b]).most_common(1)[0][0]
    sides = list(cuts) or [frozenset({commonest})]
    most = _bound([x != y for x, y in pairs], groups, error / 2, upper=True)
    apart = most / 2 if not cuts else 0.0
    each = error / 2 / (2 * len(sides))
    chance = 0.0
    for side in sides:
        inside = _bound([x in side and y in side for x, y in pairs], groups, each, upper=False) + apart
        outside = (
            _bound([x not in side and y not in side for x, y in pairs], groups, each, upper=False) + apart
        )
        chance += cut_weight * min(2 * share * (1 - share) for share in (inside, outside))
    return max(-1.0, 1 - most / chance) if chance > 0 else -1.0


def _bound(happens: list[bool], clusters: list[Hashable], error: float, *, upper: bool) -> float:
    """One bound of a share, wrong with a chance of at most `error`."""
    from evalsuite.stats.intervals import share_interval

    interval = share_interval([float(each) for each in happens], clusters=clusters, confidence=1 - 2 * error)
    return interval.high if upper else interval.low


def interval_within(mean: ClusteredMean, clusters: int, confidence: float, scale: float) -> Interval:
    """The t interval within the scale; where no cluster differs from the others, what these do not exclude."""
    if mean.error == 0:
        return interval_of_sameness(mean.mean, clusters, (-scale, scale), confidence)
    interval = mean.interval(confidence)
    return Interval(max(-scale, interval.low), min(scale, interval.high))
