"""Means of clustered values: standard errors, intervals (also if all clusters have one mean), and the jackknife.

Neither cases that share a source nor epochs of one sample are independent; only clusters are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from evalsuite.stats.inputs import Array, Labels, Values, check_probability, check_same_length, convert_to_floats

T = TypeVar("T")
Replicates = tuple[float, list[float]]  # A statistic of all cases, and its values without each cluster in turn.
ROUNDING = 1e-12  # Differences between values are rounding errors if their relative spread is smaller than this.
_SAME = 1e-9  # An interval shows only rounding errors of equal values if its relative width is smaller than this.


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval.

    Attributes:
        low: lower bound; minus infinity if the interval is unbounded below.
        high: upper bound; infinity if the interval is unbounded above.
    """

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean with its cluster-robust standard error.

    Attributes:
        mean: the mean of all values with equal weights.
        error: the standard error; infinite for a single cluster.
        clusters: the number of independent clusters.
        freedom: the standard error's degrees of freedom: the number of clusters minus one if all have the same size,
            otherwise fewer.
    """

    mean: float
    error: float
    clusters: int
    freedom: float

    def quantile(self, level: float) -> float:
        """Compute Student's t quantile with this mean's degrees of freedom."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, level))

    def interval(self, confidence: float) -> Interval:
        """Compute the two-sided t interval: unbounded for one cluster, a single point if all clusters have one mean."""
        if math.isinf(self.error):
            return Interval(-math.inf, math.inf)
        reach = self.quantile((1 + confidence) / 2) * self.error
        return Interval(self.mean - reach, self.mean + reach)

    def pvalue_above(self, null: float) -> float:
        """Compute the one-sided p-value of the hypothesis that the true mean is at most `null`.

        If all clusters have the same mean, the t statistic is infinite, so the exact sign test over clusters is used.
        """
        from scipy.special import stdtr

        if self.error == 0 or math.isinf(self.error):
            sign = math.ldexp(1.0, -self.clusters)
            return 0.5 if self.mean == null else sign if self.mean > null else 1 - sign
        return float(stdtr(self.freedom, (null - self.mean) / self.error))

    def pvalue_two_sided(self) -> float:
        """Compute the two-sided p-value of a mean of zero; 1 for a single cluster."""
        return min(1.0, 2 * replace(self, mean=abs(self.mean)).pvalue_above(0.0))


def sum_clusters(values: Array, clusters: Labels | None) -> tuple[Array, Array]:
    """Return each cluster's sum and number of values, in order of appearance; None makes each value a cluster."""
    import numpy as np

    if clusters is None:
        return values, np.ones_like(values)
    check_same_length(values, clusters, "values and clusters")
    number: dict[object, int] = {}
    code = np.array([number.setdefault(name, len(number)) for name in clusters])
    return np.bincount(code, weights=values), np.bincount(code).astype(float)


def group_by_cluster(items: Sequence[T], clusters: Sequence[Hashable]) -> list[list[T]]:
    """Group items by their clusters, in order of the clusters' first appearance."""
    groups: dict[Hashable, list[T]] = {}
    for item, cluster in zip(items, clusters, strict=True):
        groups.setdefault(cluster, []).append(item)
    return list(groups.values())


def clustered_mean(values: Values, clusters: Labels | None = None) -> ClusteredMean:
    """Compute the mean, and its standard error from the spread of the clusters' summed residuals.

    The squared standard error is the sum of r^2 / (1 - w) over the clusters, divided by n^2. Here r is the sum of a
    cluster's residuals, w the cluster's share of the values, and n the number of values. The estimator is the
    bias-reduced sandwich CR2 with Satterthwaite's degrees of freedom: Bell and McCaffrey, "Bias reduction in standard
    errors for linear regression with multi-stage samples" (Survey Methodology 28, 2002). For G clusters of equal size,
    the result equals Liang and Zeger's sandwich (Biometrika 73, 1986) with the factor G / (G - 1) and G - 1 degrees of
    freedom, as in Miller, "Adding Error Bars to Evals" (arXiv 2411.00640). With one value per cluster, the standard
    error is s / sqrt(n).
    """
    return compute_mean_of_clusters(*sum_clusters(convert_to_floats(values), clusters))


def compute_mean_of_clusters(totals: Array, sizes: Array) -> ClusteredMean:
    """Compute the same as `clustered_mean`, from the sum and the number of values of each cluster."""
    import numpy as np

    count, n = len(totals), math.fsum(sizes)
    mean = math.fsum(totals) / n
    if count == 1:
        return ClusteredMean(mean, math.inf, 1, 0.0)
    residuals, shares = totals - sizes * mean, sizes / n
    if np.max(abs(residuals)) <= ROUNDING * np.max(abs(totals)):
        return ClusteredMean(mean, 0.0, count, count - 1.0)
    error = math.sqrt(math.fsum(residuals**2 / (1 - shares))) / n
    if np.ptp(shares) <= ROUNDING:
        return ClusteredMean(mean, error, count, count - 1.0)
    # Satterthwaite's degrees of freedom are (trace M)^2 / trace(M^2), where M is the covariance of the clusters'
    # adjusted residuals, computed as if all cases were independent. For a mean, this equals 1 / (sum w_g^2 + sum over
    # g != h of v_g v_h), where w_g is the share of cluster g among all values, and v_g = w_g^2 / (1 - w_g).
    adjusted = shares**2 / (1 - shares)
    freedom = 1 / float((shares**2).sum() + adjusted.sum() ** 2 - (adjusted**2).sum())
    return ClusteredMean(mean, error, count, freedom)


def mean_interval(values: Values, *, clusters: Labels | None = None, confidence: float = 0.95) -> Interval:
    """Compute the t interval of a mean, cluster-robust if clusters are given.

    Args:
        values: finite numbers, one per case.
        clusters: the cluster of each value, such as the sample of an epoch, or the document that a question is about.

    Returns:
        The interval. For a single cluster, or if all clusters have the same mean, the interval is (-inf, inf), because
        the data do not show how much clusters vary.

    Raises:
        ValueError: the list is empty, a value is not finite, lists differ in length, or the confidence is outside of
            (0, 1).
    """
    check_probability(confidence, "confidence")
    interval = clustered_mean(values, clusters).interval(confidence)
    # Use a tolerance, because sums of equal values may differ by rounding errors.
    noise = _SAME * max(map(abs, values))
    return interval if interval.high - interval.low > noise else Interval(-math.inf, math.inf)


def bound_differing_share(clusters: int, confidence: float = 0.95) -> float:
    """Compute an upper bound of the population's share of differing clusters, if all observed clusters are equal."""
    if clusters < 1:
        raise ValueError(f"a bound needs at least one cluster; got {clusters}")
    return float(-math.expm1(math.log((1 - check_probability(confidence, "confidence")) / 2) / clusters))


def make_constant_statistic_interval(
    value: float, clusters: int, bounds: tuple[float, float], confidence: float = 0.95
) -> Interval:
    """Compute the interval of a bounded statistic whose value does not change if any single cluster is left out.

    The interval is valid for statistics that weight clusters equally, such as means and differences of means. If a
    share p of the clusters had other values, such a statistic would move by at most p times its distance from a bound.
    Kappa and rank correlations can move more, so `kappa_lower_bound` and `rank_interval` compute their intervals.
    """
    share = bound_differing_share(clusters, confidence)
    return Interval(value - share * (value - bounds[0]), value + share * (bounds[1] - value))


def make_bounded_interval(mean: ClusteredMean, confidence: float, scale: float) -> Interval:
    """Clip a mean's t interval to [-scale, scale]; if clusters are equal, use `make_constant_statistic_interval`."""
    if mean.error == 0:
        return make_constant_statistic_interval(mean.mean, mean.clusters, (-scale, scale), confidence)
    interval = mean.interval(confidence)
    return Interval(max(-scale, interval.low), min(scale, interval.high))


FEWEST_CLUSTERS = 2  # Minimum number of clusters for a jackknife interval.
NO_WIDTH = 1e-12  # A spread of values, or half an interval's width, below this comes only from rounding errors.


def jackknife_interval(
    clusters: Sequence[Sequence[T]],
    statistic: Callable[[list[T]], float],
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence: float = 0.95,
) -> Interval:
    """Compute the t interval of a statistic; its standard error comes from a jackknife that leaves out whole clusters.

    The squared error is (G - 1) / G times the sum of squared deviations of the G leave-one-out values from their mean:
    Efron and Tibshirani, "An Introduction to the Bootstrap" (1993, chapter 11). The method is meant for smooth
    statistics; it fails for a median. The result is deterministic and needs G + 1 evaluations of the statistic for G
    clusters.

    Args:
        clusters: the items, as one list per cluster.
        statistic: function of a list of items; returns nan if undefined.
        bounds: lowest and highest possible value, to which the interval is clipped.

    Returns:
        The interval. It is (nan, nan) if there are fewer than two clusters, if a value of the statistic is undefined,
        or if all its values are equal (see `make_constant_statistic_interval`).

    Raises:
        ValueError: the confidence is not in (0, 1).
    """
    if len(clusters) < FEWEST_CLUSTERS:
        check_probability(confidence, "confidence")
        return Interval(math.nan, math.nan)
    value = statistic([item for cluster in clusters for item in cluster])
    leave_one_out = [
        statistic([item for at, cluster in enumerate(clusters) if at != left_out for item in cluster])
        for left_out in range(len(clusters))
    ]
    return compute_jackknife_interval(value, leave_one_out, bounds=bounds, confidence=confidence)


def estimate_by_jackknife(value: float, leave_one_out: Sequence[float]) -> ClusteredMean:
    """Return a statistic with its jackknife standard error, from its values without each of at least two clusters."""
    count = len(leave_one_out)
    centre = math.fsum(leave_one_out) / count
    squares = math.fsum((left - centre) ** 2 for left in leave_one_out)
    return ClusteredMean(value, math.sqrt(squares * (count - 1) / count), count, count - 1.0)


def compute_jackknife_interval(
    value: float,
    leave_one_out: Sequence[float],
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence: float = 0.95,
) -> Interval:
    """Compute the jackknife interval from the statistic of all items and its values without each cluster."""
    check_probability(confidence, "confidence")
    if len(leave_one_out) < FEWEST_CLUSTERS:
        return Interval(math.nan, math.nan)
    interval = estimate_by_jackknife(value, leave_one_out).interval(confidence)
    if not interval.high - interval.low >= 2 * NO_WIDTH:  # The width is nan if the statistic is undefined.
        return Interval(math.nan, math.nan)
    return Interval(max(bounds[0], interval.low), min(bounds[1], interval.high))


def compute_jackknife_pvalue(value: float, leave_one_out: Sequence[float]) -> float:
    """Compute the two-sided p-value of the hypothesis that the statistic is 0, by a jackknife t test."""
    if math.isnan(compute_jackknife_interval(value, leave_one_out).low):
        return math.nan
    return estimate_by_jackknife(value, leave_one_out).pvalue_two_sided()
