"""Compares two runs on the same cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.stats.clustering import clustered_mean
from evalsuite.stats.inputs import binary, numbers, probability, same_length
from evalsuite.stats.paired_shares import tango_interval
from evalsuite.stats.sameness import interval_within

if TYPE_CHECKING:
    from evalsuite.stats.inputs import Labels, Values


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean difference of paired scores.

    Attributes:
        difference: candidate minus baseline.
        low: lower bound of its interval.
        high: upper bound.
        pvalue: two-sided, of no difference.
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
    """The paired t test and interval of candidate minus baseline, cluster-robust where clusters are given.

    See `clustered_mean` for the standard error. Where all differences are equal and not zero the t test
    would claim certainty; the p-value is then that of the exact sign test over clusters.

    Args:
        baseline: finite numbers, one a case.
        candidate: the same cases in the same order.
        clusters: what cases share; see `mean_interval`.
        scale: the largest difference that two scores can have, where it is known: the interval stays within it,
            is that of `interval_of_sameness` where all clusters differ by the same amount, and outcomes 0 and 1
            without clusters have Tango's score interval, as in `compare_paired`.
        confidence: of the interval.

    Returns:
        For a single cluster the interval is the whole line, or the whole scale, and p is 1.

    Raises:
        ValueError: no cases, numbers that are not finite, lists of different length, a confidence
            outside of (0, 1).
    """
    probability(confidence, "confidence")
    same_length(baseline, candidate, "baseline and candidate")
    before, after = numbers(baseline, "baseline"), numbers(candidate, "candidate")
    mean = clustered_mean(after - before, clusters)
    interval = mean.interval(confidence)
    if scale == 1 and clusters is None and all(((each == 0) | (each == 1)).all() for each in (before, after)):
        interval = tango_interval(*discordant(before, after), len(before), confidence)
    elif scale is not None:
        interval = interval_within(mean, mean.clusters, confidence, scale)
    return PairedDifference(mean.mean, interval.low, interval.high, mean.pvalue_two_sided())


def discordant(baseline: Values, candidate: Values) -> tuple[int, int]:
    """How many cases were lost (1 to 0) and won (0 to 1).

    Raises:
        ValueError: no cases, a value that is neither 0 nor 1, lists of different length.
    """
    same_length(baseline, candidate, "baseline and candidate")
    before, after = binary(baseline, "baseline"), binary(candidate, "candidate")
    return int((before > after).sum()), int((before < after).sum())


def mcnemar(baseline: Values, candidate: Values) -> float:
    """The two-sided p-value of McNemar's exact test: are as many cases lost as won?

    The binomial test of the discordant pairs at one half (McNemar, Psychometrika 12, 1947).

    Args:
        baseline: 0 or 1, one a case.
        candidate: the same cases in the same order.

    Returns:
        1.0 where no case changed.

    Raises:
        ValueError: as `discordant`.
    """
    from scipy.special import bdtr

    lost, won = discordant(baseline, candidate)
    if lost == won:
        return 1.0
    return min(1.0, float(2 * bdtr(min(lost, won), lost + won, 0.5)))
