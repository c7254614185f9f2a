"""Intervals of a share, of a bounded mean, of any mean by resampling, and of a difference of independent estimates."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

from evalsuite.stats.clustering import ROUNDING, Interval, compute_mean_of_clusters, sum_clusters
from evalsuite.stats.inputs import (
    Array,
    Labels,
    Values,
    check_probability,
    check_range,
    convert_to_binary,
    convert_to_floats,
    find_by_bisection,
)

RESAMPLES = 9999  # Number of resamples; with 9,999, the quantiles of 95% and 99% intervals need no interpolation.
FEW = 30  # The exact interval replaces Wilson's if there are fewer successes or failures than this.
CELLS_AT_ONCE = 4_000_000  # Maximum resampled values in memory at a time: about 100 MB for any number of cases.


def wilson_interval(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """Compute Wilson's score interval of a share, without continuity correction.

    Wilson, "Probable inference, the law of succession, and statistical inference" (JASA 22, 1927); in the form of
    Newcombe (Statistics in Medicine 17, 1998, p. 857, method 3).

    Args:
        successes: a number from 0 to n; not necessarily whole if n is an effective number of cases.
        n: the number of cases, above 0.

    Raises:
        ValueError: n is not above 0, successes is not in [0, n], or the confidence is not in (0, 1).
    """
    if not 0 < n < math.inf:
        raise ValueError(f"a share needs at least one case; got n={n}")
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie between 0 and n={n}; got {successes}")
    z = NormalDist().inv_cdf((1 + check_probability(confidence, "confidence")) / 2)
    share, weight = float(successes / n), float(z * z / n)
    centre = (share + weight / 2) / (1 + weight)
    reach = math.sqrt(weight * share * (1 - share) + weight * weight / 4) / (1 + weight)
    low = 0.0 if successes == 0 else centre - reach
    return Interval(low, 1.0 if successes == n else centre + reach)


def exact_interval(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """Compute Clopper and Pearson's exact interval of a share by the quantiles of the beta distribution.

    Each bound is wrong with a probability of at most (1 - confidence) / 2. Clopper and Pearson, "The use of confidence
    or fiducial limits" (Biometrika 26, 1934). `wilson_interval` describes the arguments and errors.
    """
    wilson_interval(successes, n, confidence)  # This call only raises ValueError for invalid arguments.
    half, failures = (1 - confidence) / 2, n - successes
    if float(n).is_integer() and float(successes).is_integer() and min(successes, failures) < FEW:
        # For few cases, use a plain sum, because importing scipy takes a tenth of a second.
        return _compute_exact_interval_by_sums(int(successes), int(n), half)
    from scipy.special import betaincinv

    low = float(betaincinv(successes, failures + 1, half)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - half)) if failures else 1.0
    return Interval(low, high)


def _compute_exact_interval_by_sums(successes: int, n: int, tail_probability: float) -> Interval:
    failures = n - successes
    if failures < successes:
        turned = _compute_exact_interval_by_sums(failures, n, tail_probability)
        return Interval(1 - turned.high, 1 - turned.low)
    low = (
        find_by_bisection(lambda share: _compute_binomial_cdf(successes - 1, n, share) > 1 - tail_probability, 0.0, 1.0)
        if successes
        else 0.0
    )
    high = find_by_bisection(lambda share: _compute_binomial_cdf(successes, n, share) > tail_probability, 0.0, 1.0)
    return Interval(low, high)


def _compute_binomial_cdf(k: int, n: int, share: float) -> float:
    """Compute the binomial probability of at most k successes in n trials."""
    start = n * math.log1p(-share)
    odds, log_term, terms = math.log(share) - math.log1p(-share), start, [start]
    for done in range(k):
        log_term += math.log((n - done) / (done + 1)) + odds
        terms.append(log_term)
    return math.fsum(math.exp(term) for term in terms)


def count_interval(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """Compute Wilson's interval, or the exact interval if successes or failures are few; see `share_interval`."""
    if min(successes, n - successes) < FEW:
        return exact_interval(successes, n, confidence)
    return wilson_interval(successes, n, confidence)


def share_interval(values: Values, *, clusters: Labels | None = None, confidence: float = 0.95) -> Interval:
    """Compute the interval of a share whose cases may be clustered: Wilson's, or the exact interval near 0 and 1.

    Near 0 and 1, one of Wilson's bounds is wrong several times as often as allowed; an exact bound is never wrong more
    often than allowed. The exact interval is used if there are fewer than 30 successes or fewer than 30 failures.
    Enumeration for 50 to 400 cases shows that each bound of such a 95% interval is wrong with a probability of at most
    3.6%.

    For clustered cases, the formulas use an effective number of cases (z / t)^2 q. The number q is p (1 - p) / e^2, but
    at most the number of cases. Here p is the share, and e its cluster-robust standard error. If all values are equal
    (e is 0), q is the number of clusters. The factor (z / t)^2 contains two quantiles: z of the normal distribution,
    and t of Student's t distribution with e's degrees of freedom. The effective number of cases is from Korn and
    Graubard (Survey Methodology 24, 1998); Franco et al. (Journal of Survey Statistics and Methodology 7, 2019) also
    use it in Wilson's interval. Unlike the t interval, the result stays within [0, 1] and is not a single point if all
    values are equal.

    Args:
        values: 0 or 1, one per case.
        clusters: the cluster of each value; see `mean_interval`.

    Returns:
        The interval; [0, 1] for a single cluster of several values.

    Raises:
        ValueError: an argument is invalid for `mean_interval`, or a value is neither 0 nor 1.
    """
    array = convert_to_binary(values)
    totals, sizes = sum_clusters(array, clusters)
    if len(totals) == len(array):
        return count_interval(float(array.sum()), len(array), confidence)
    check_probability(confidence, "confidence")
    if len(totals) == 1:
        return Interval(0.0, 1.0)
    mean, n = compute_mean_of_clusters(totals, sizes), float(len(totals))
    if 0 < mean.mean < 1 and mean.error > 0:
        variance = mean.mean * (1 - mean.mean)
        n = variance / max(mean.error**2, variance / len(array))
    n *= (NormalDist().inv_cdf((1 + confidence) / 2) / mean.quantile((1 + confidence) / 2)) ** 2
    return count_interval(mean.mean * n, n, confidence)


def bootstrap_interval(
    values: Values, *, clusters: Labels | None = None, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """Compute the bias-corrected and accelerated bootstrap interval (BCa) of a mean.

    Efron, "Better bootstrap confidence intervals" (JASA 82, 1987), computed by scipy. Clusters are drawn as a whole.

    Args:
        values: finite numbers, one per case.
        clusters: the cluster of each value; see `mean_interval`.
        seed: the resampling's seed; the same seed gives the same interval.

    Returns:
        The interval; (-inf, inf) for a single cluster, or if all clusters have the same mean.
    """
    import numpy as np

    check_probability(confidence, "confidence")
    array = convert_to_floats(values)
    totals, sizes = sum_clusters(array, clusters)
    means = totals / sizes
    if len(totals) == 1 or np.ptp(means) <= ROUNDING * np.max(abs(means)):
        return Interval(-math.inf, math.inf)
    from scipy.stats import bootstrap

    interval = bootstrap(
        (totals, sizes),
        lambda sums, counts, axis: sums.sum(axis=axis) / counts.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, CELLS_AT_ONCE // len(totals)),
        confidence_level=confidence,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(float(interval.low), float(interval.high))


MOST_AT_RISK = 0.75
"""Maximum share of the capital that a bet may risk: c in Waudby-Smith and Ramdas, for a fixed sample size."""
BET_HALVINGS = 30  # Number of bisection steps; the result has nine correct digits.
FEWEST_AMOUNTS = 30
"""Minimum clusters. For lognormal amounts (sigma 1), the upper bound fails in 5% of samples of 20, in 3% of 30."""


def amount_interval(values: Values, *, clusters: Labels | None = None, confidence: float = 0.95) -> Interval:
    """Compute an interval of the mean of amounts, such as tokens, which are often skewed and have no upper limit.

    Student's t is transformed as in Hall, "On the removal of skewness by transformation" (Journal of the Royal
    Statistical Society B 54, 1992). For the upper bound, the cluster with the greatest mean counts twice, because the
    population may have greater amounts than the sample. `perf/statistical_promises.py` simulates how often the bound
    fails.

    Args:
        values: finite numbers, at least 0, one per case.
        clusters: the cluster of each value; see `mean_interval`.

    Returns:
        The interval, whose bounds are at least 0; [0, inf] for fewer than 30 clusters, or if all clusters have the same
        mean.

    Raises:
        ValueError: the list is empty, a value is negative or not finite, lists differ in length, or the confidence is
            outside of (0, 1).
    """
    import numpy as np

    tail = (1 - check_probability(confidence, "confidence")) / 2
    totals, sizes = sum_clusters(check_range(convert_to_floats(values), 0, math.inf, "amounts"), clusters)
    if len(totals) < FEWEST_AMOUNTS or compute_mean_of_clusters(totals, sizes).error == 0:
        return Interval(0.0, math.inf)
    low = _compute_skewed_bound(totals, sizes, 1 - tail)
    size, greatest = float(sizes.mean()), max((totals / sizes).tolist())
    high = _compute_skewed_bound(np.append(totals, size * greatest), np.append(sizes, size), tail)
    return Interval(max(0.0, low), high)


def _compute_skewed_bound(totals: Array, sizes: Array, level: float) -> float:
    """Compute the mean minus the standard error times the transformed t quantile; an upper bound needs a low level."""
    import numpy as np

    mean = compute_mean_of_clusters(totals, sizes)
    residuals = totals - sizes * mean.mean
    residuals = residuals / np.abs(residuals).max()  # Scale them, because cubes of tiny amounts would underflow.
    skewness = float((residuals**3).mean() / (residuals**2).mean() ** 1.5) / math.sqrt(len(totals))
    quantile = mean.quantile(level)
    if abs(skewness) > ROUNDING:
        quantile = 3 / skewness * (math.cbrt(1 + skewness * (quantile - skewness / 6)) - 1)
    return mean.mean - quantile * mean.error


def betting_interval(
    values: Values,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    clusters: Labels | None = None,
    confidence: float = 0.95,
) -> Interval:
    """Compute the hedged betting interval of the mean of bounded values.

    For each supposed mean m, a gambler bets against m on one cluster after another. The mean m is excluded if the
    gambler's capital ever reaches 2 / alpha times the initial capital, where alpha is 1 - confidence. The stake is
    multiplied by a value's distance from m. With n clusters and the regularised variance v of the earlier values, the
    stake is sqrt(2 log(2 / alpha) / (n v)), at most 0.75 / m. Waudby-Smith and Ramdas, "Estimating means of bounded
    random variables by betting" (JRSS B 86, 2024; arXiv 2010.09686, theorem 3 and section 4.4). The interval's error is
    at most alpha for any number of values and any distribution, if clusters are independent. A cluster's cases form one
    bet. It is the sum of their distances from m, divided by the size of the largest cluster, so that it never exceeds
    one distance. The clusters are shuffled with a fixed seed.

    Args:
        values: finite numbers within the bounds, one per case.
        bounds: the lowest and highest possible value.
        clusters: the cluster of each value; see `mean_interval`.

    Returns:
        An interval within the bounds that contains the mean, never a single point.

    Raises:
        ValueError: an argument is invalid for `mean_interval`, a value is out of bounds, or the bounds are not ordered.
    """
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"values need a range with low below high; got {low} and {high}")
    array = (check_range(convert_to_floats(values), low, high, "values") - low) / (high - low)
    target = math.log(2 / (1 - check_probability(confidence, "confidence")))
    totals, sizes = sum_clusters(array, clusters)
    order = random.Random(0).sample(range(len(totals)), len(totals))  # noqa: S311 - an order, no secret
    shares, means = (sizes / sizes.max())[order], (totals / sizes)[order]
    centre = math.fsum(totals) / math.fsum(sizes)
    below = _find_largest_excluded_mean(means, shares, target, centre)
    above = 1 - _find_largest_excluded_mean(1 - means, shares, target, 1 - centre)
    return Interval(low + (high - low) * below, low + (high - low) * above)


def _find_largest_excluded_mean(means: Array, shares: Array, target: float, centre: float) -> float:
    """Bisect for the largest mean below the observed mean that the bets exclude: at a higher mean, they win less."""
    import numpy as np

    if centre <= 0:
        return 0.0
    # The bets are sqrt(2 target / (n v)), where v is the regularised variance of the values before the bet.
    drawn, weight = np.cumsum(shares * means), np.cumsum(shares)
    squares = 0.25 + np.cumsum((shares * (means - (0.5 + drawn) / (1 + weight))) ** 2)
    variances = np.concatenate([[0.25], squares[:-1] / np.arange(2, len(means) + 1)])
    bets = np.sqrt(2 * target / (len(means) * variances))

    def compute_log_wealth(mean: float) -> float:
        stakes = np.minimum(bets, MOST_AT_RISK / mean)
        return float(np.max(np.log1p(stakes * shares * (means - mean)).cumsum()))

    return find_by_bisection(lambda mean: compute_log_wealth(mean) >= target, 0.0, centre, BET_HALVINGS)


def unpaired_difference(
    first: float, first_interval: Interval, second: float, second_interval: Interval
) -> tuple[float, float]:
    """Compute the bounds of `first - second` for independent estimates.

    The lower bound is the difference minus sqrt((first - first's lower bound)^2 + (second's upper bound - second)^2).
    The upper bound is computed in the same way, with lower and upper bounds exchanged. Newcombe, Statistics in Medicine
    17 (1998), pp. 873-890, method 10, for two shares; Donner and Zou, Statistical Methods in Medical Research 21
    (2012), for any estimates.

    Args:
        first: the first estimate.
        first_interval: the first estimate's interval; its confidence is that of the result.
        second: the second estimate.
        second_interval: the second estimate's interval, at the same confidence.

    Returns:
        The lower and the upper bound.
    """
    difference = first - second
    below = math.hypot(first - first_interval.low, second_interval.high - second)
    above = math.hypot(first_interval.high - first, second - second_interval.low)
    return difference - below, difference + above
