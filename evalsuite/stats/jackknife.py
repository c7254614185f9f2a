"""Compute a jackknife interval for any statistic of clustered items: kappa, alpha, a rank correlation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from evalsuite.stats.clustering import Interval
from evalsuite.stats.inputs import probability

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

FEWEST_CLUSTERS = 2  # minimum clusters for an interval

NO_WIDTH = 1e-12  # width of an interval below which the values differ only by rounding


def jackknife_interval(
    clusters: Sequence[Sequence[T]],
    statistic: Callable[[list[T]], float],
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence: float = 0.95,
) -> Interval:
    """Compute the t interval of a statistic with the jackknife's standard error, leaving out whole clusters.

    Efron and Tibshirani, "An Introduction to the Bootstrap" (1993, chapter 11): the squared error is (G - 1) / G times
    the sum of squared deviations of the G leave-one-out values from their mean. The method is meant for smooth
    statistics; it fails for a median. It is deterministic, and takes G + 1 evaluations.

    Args:
        clusters: the items, as one list per cluster.
        statistic: function of a list of items; returns nan if undefined.
        bounds: lowest and highest possible value; the interval is cut there.

    Returns:
        The interval; (nan, nan) if the statistic is undefined for all items or without some cluster, if there are fewer
        than two clusters, or if the value stays the same without each of them (see `interval_of_sameness`).

    Raises:
        ValueError: the confidence is not in (0, 1).
    """
    if len(clusters) < FEWEST_CLUSTERS:
        probability(confidence, "confidence")
        return Interval(math.nan, math.nan)
    value = statistic([item for cluster in clusters for item in cluster])
    without = [_without(clusters, at, statistic) for at in range(len(clusters))]
    return interval_of_replicates(value, without, bounds=bounds, confidence=confidence)


def interval_of_replicates(
    value: float,
    without: Sequence[float],
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence: float = 0.95,
) -> Interval:
    """Compute the jackknife interval from the statistic of all items and of those without each cluster."""
    from scipy.special import stdtrit

    probability(confidence, "confidence")
    count = len(without)
    if count < FEWEST_CLUSTERS:
        return Interval(math.nan, math.nan)
    centre = math.fsum(without) / count
    squares = math.fsum((value - centre) ** 2 for value in without)
    reach = float(stdtrit(count - 1, (1 + confidence) / 2)) * math.sqrt(squares * (count - 1) / count)
    if math.isnan(value + reach) or reach < NO_WIDTH:
        return Interval(math.nan, math.nan)
    return Interval(max(bounds[0], value - reach), min(bounds[1], value + reach))


def pvalue_of_replicates(value: float, without: Sequence[float]) -> float:
    """Compute the two-sided p-value of a statistic whose null value is 0, by the t test of `interval_of_replicates`."""
    from scipy.special import stdtr, stdtrit

    interval = interval_of_replicates(value, without)
    if math.isnan(interval.low) or not interval.low < interval.high:
        return math.nan
    freedom = len(without) - 1
    error = (interval.high - interval.low) / 2 / float(stdtrit(freedom, 0.975))
    return 2 * float(stdtr(freedom, -abs(value) / error))


def _without(clusters: Sequence[Sequence[T]], left_out: int, statistic: Callable[[list[T]], float]) -> float:
    return statistic([item for at, cluster in enumerate(clusters) if at != left_out for item in cluster])
