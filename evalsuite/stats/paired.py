"""Compare two runs on the same cases: McNemar's test, paired t test, Tango's score test and interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from evalsuite.stats.clustering import Interval, clustered_mean, make_bounded_interval
from evalsuite.stats.inputs import (
    Labels,
    Values,
    are_binary,
    check_probability,
    check_same_length,
    convert_to_binary,
    convert_to_floats,
    find_by_bisection,
)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean difference of paired scores.

    Attributes:
        difference: candidate minus baseline.
        low: lower bound of the difference's interval.
        high: upper bound of the difference's interval.
        pvalue: two-sided p-value of no difference.
    """

    difference: float
    low: float
    high: float
    pvalue: float


def paired_difference(
    baseline: Values,
    candidate: Values,
    *,
    clusters: Labels | None = None,
    scale: float | None = None,
    confidence: float = 0.95,
) -> PairedDifference:
    """Compute the paired t test and interval of candidate minus baseline, cluster-robust if clusters are given.

    `clustered_mean` describes the standard error. If all differences are equal and not zero, the t test's p-value would
    be 0, so an exact sign test over clusters gives the p-value.

    Args:
        baseline: finite numbers, one per case.
        candidate: finite numbers for the same cases, in the same order.
        clusters: the cluster of each case; see `mean_interval`.
        scale: the largest difference that two scores can have; the interval is clipped to it. None means unknown. With
            a scale, Tango's interval is used for scores of 0 and 1 without clusters. If all clusters differ by the same
            amount, `make_constant_statistic_interval` is used.

    Returns:
        For a single cluster, the interval is (-inf, inf) or, if `scale` is known, the whole scale, and p is 1.

    Raises:
        ValueError: the list is empty, a number is not finite, lists differ in length, or the confidence is outside of
            (0, 1).
    """
    check_probability(confidence, "confidence")
    check_same_length(baseline, candidate, "baseline and candidate")
    before, after = convert_to_floats(baseline, "baseline"), convert_to_floats(candidate, "candidate")
    mean = clustered_mean(after - before, clusters)
    interval = mean.interval(confidence)
    if scale == 1 and clusters is None and are_binary(before, after):
        interval = tango_interval(*count_discordant_cases(before, after), len(before), confidence)
    elif scale is not None:
        interval = make_bounded_interval(mean, confidence, scale)
    return PairedDifference(mean.mean, interval.low, interval.high, mean.pvalue_two_sided())


def count_discordant_cases(baseline: Values, candidate: Values) -> tuple[int, int]:
    """Count the cases that were lost (from 1 to 0) and the cases that were won (from 0 to 1)."""
    check_same_length(baseline, candidate, "baseline and candidate")
    before, after = convert_to_binary(baseline, "baseline"), convert_to_binary(candidate, "candidate")
    return int((before > after).sum()), int((before < after).sum())


def mcnemar(baseline: Values, candidate: Values) -> float:
    """Compute the two-sided p-value of McNemar's exact test of the hypothesis that as many cases are lost as won.

    The test is binomial: under the hypothesis, each discordant pair is lost or won with probability 1/2 (McNemar,
    Psychometrika 12, 1947).

    Args:
        baseline: the baseline's scores (0 or 1), one per case.
        candidate: the candidate's scores (0 or 1) for the same cases in the same order.

    Returns:
        The p-value; 1.0 if as many cases are lost as won.

    Raises:
        ValueError: a value is neither 0 nor 1, or the lists differ in length.
    """
    return compute_mcnemar_pvalue(*count_discordant_cases(baseline, candidate))


def compute_paired_pvalue(before: Values, after: Values, clusters: Labels | None = None) -> float:
    """Test whether two paired values differ: McNemar's exact test of independent pairs of 0 and 1, else the t test."""
    independent = clusters is None or len(set(clusters)) == len(before)
    if independent and {*before, *after} <= {0.0, 1.0}:
        return mcnemar(before, after)
    return paired_difference(before, after, clusters=clusters).pvalue


def compute_mcnemar_pvalue(lost: int, won: int) -> float:
    """Compute the same as `mcnemar`, from the number of lost and won cases."""
    from scipy.special import bdtr

    if lost == won:
        return 1.0
    return min(1.0, float(2 * bdtr(min(lost, won), lost + won, 0.5)))


def compute_tango_statistic(lost: int, won: int, n: int, difference: float) -> float:
    """Compute Tango's score statistic, whose formula `tango_interval` states."""
    b = (2 * n - won + lost) * difference - (lost + won)
    c = -lost * difference * (1 - difference)
    loss = (math.sqrt(max(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
    variance = n * (2 * loss + difference * (1 - difference))
    distance = won - lost - n * difference
    if variance <= 0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)


def tango_pvalue(lost: int, won: int, n: int, margin: float) -> float:
    """Compute the one-sided p-value of a drop of `margin` or more; see `tango_interval`."""
    return NormalDist().cdf(-compute_tango_statistic(lost, won, n, -margin))


def tango_interval(lost: int, won: int, n: int, confidence: float = 0.95) -> Interval:
    """Compute the interval of all differences d that Tango's two-sided score test would not reject.

    The statistic is (won - lost - n d) / sqrt(n (2 q + d (1 - d))), where q is the maximum-likelihood probability of a
    loss if the true difference is d. The probability q is the root of 2n q^2 + B q + C = 0 with B = -(lost + won) + (2n
    - won + lost) d and C = -lost d (1 - d). Tango, "Equivalence test and confidence interval for the difference in
    proportions for the paired-sample design" (Statistics in Medicine 17, 1998, p. 891). For example, the 95% interval
    for 100 cases without any change still contains a drop of 0.037.

    Args:
        lost: the number of cases that went from 1 to 0.
        won: the number of cases that went from 0 to 1.
        n: the number of all cases, changed or not.

    Raises:
        ValueError: n is not above 0, lost + won exceeds n, or the confidence is not in (0, 1).
    """
    if not n > 0 or min(lost, won) < 0 or lost + won > n:
        raise ValueError(f"lost + won ({lost + won}) must lie between 0 and n={n}, and neither may be negative")
    z = NormalDist().inv_cdf((1 + check_probability(confidence, "confidence")) / 2)
    centre = (won - lost) / n
    low = find_by_bisection(lambda d: compute_tango_statistic(lost, won, n, d) > z, -1.0, centre)
    if compute_tango_statistic(lost, won, n, 1.0) >= -z:
        return Interval(low, 1.0)
    return Interval(low, find_by_bisection(lambda d: compute_tango_statistic(lost, won, n, d) >= -z, centre, 1.0))
