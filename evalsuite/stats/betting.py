"""A betting interval of a bounded mean, valid for any number of cases and any distribution."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from evalsuite.stats.clustering import Interval, cluster_totals
from evalsuite.stats.inputs import numbers, probability, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.stats.inputs import Array, Labels, Values

TRUNCATION = 0.75
"""The share of the capital that a bet may put at risk: the paper's c for intervals of a fixed number."""

HALVINGS = 30
"""Bisections of the range: past the ninth digit."""


def betting_interval(
    values: Values,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    clusters: Labels | None = None,
    confidence: float = 0.95,
) -> Interval:
    """The hedged betting interval of the mean of bounded values.

    For each supposed mean a gambler bets against it on one value after the other; the means at which the
    capital ever reaches 2 / (1 - confidence) times the first stake are excluded. Waudby-Smith and Ramdas,
    "Estimating means of bounded random variables by betting" (JRSS B 86, 2024; arXiv 2010.09686, theorem 3
    and section 4.4). The error is at most 1 - confidence whatever the number of values and their distribution,
    as long as clusters are independent. Cases of a cluster are bet on together: the summed distance from
    the supposed mean, over the size of the largest cluster, is a value in the same bounds.

    The values are bet on in an order drawn by a fixed seed, so that the order of the cases says nothing.

    Args:
        values: finite numbers within the bounds, one per case.
        bounds: what no value can leave.
        clusters: what the values share; see `mean_interval`.
        confidence: 0.95 for a 95% interval.

    Returns:
        Within the bounds, around the mean, and never a single point.

    Raises:
        ValueError: as `mean_interval`, the bounds hold nothing between them, or a value is outside of them.
    """
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"values need a range with low below high; got {low} and {high}")
    array = (within(numbers(values), low, high, "values") - low) / (high - low)
    target = math.log(2 / (1 - probability(confidence, "confidence")))
    totals, sizes = cluster_totals(array, clusters)
    order = random.Random(0).sample(range(len(totals)), len(totals))  # noqa: S311 - an order, no secret
    shares, means = (sizes / sizes.max())[order], (totals / sizes)[order]
    centre = math.fsum(totals) / math.fsum(sizes)
    below = _excluded(means, shares, target, centre)
    above = 1 - _excluded(1 - means, shares, target, 1 - centre)
    return Interval(low + (high - low) * below, low + (high - low) * above)


def _excluded(means: Array, shares: Array, target: float, centre: float) -> float:
    """The largest mean below the observed one that is excluded, to be found by bisection as wealth falls in it."""
    import numpy as np

    bets = _bets(means, shares, target)

    def wealth(mean: float) -> float:
        stakes = np.minimum(bets, TRUNCATION / mean)
        return float(np.max(np.log1p(stakes * shares * (means - mean)).cumsum()))

    return _last(lambda mean: wealth(mean) >= target, centre)


def _bets(means: Array, shares: Array, target: float) -> Array:
    """sqrt(2 log(2 / alpha) / (n v)), with v the variance of the values before, regularised by one of 1/4."""
    import numpy as np

    count = len(means)
    drawn, weight = np.cumsum(shares * means), np.cumsum(shares)
    centres = (0.5 + drawn) / (1 + weight)
    squares = 0.25 + np.cumsum((shares * (means - centres)) ** 2)
    variances = np.concatenate([[0.25], squares[:-1] / np.arange(2, count + 1)])
    return np.asarray(np.sqrt(2 * target / (count * variances)))


def _last(excluded: Callable[[float], bool], centre: float) -> float:
    left, right = 0.0, centre
    for _ in range(HALVINGS):
        middle = (left + right) / 2
        if middle > 0 and excluded(middle):
            left = middle
        else:
            right = middle
    return left
