"""Non-inferiority of a candidate to a baseline within a margin, over several metrics."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from evalsuite.stats.clustering import ClusteredMean, cluster_totals, interval_within, mean_of_clusters
from evalsuite.stats.inputs import numbers, probability, same_length, within
from evalsuite.stats.paired import discordant, mcnemar, tango_interval, tango_pvalue
from evalsuite.stats.power import detectable_mean, detectable_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.stats.inputs import Array, Labels, Values

NonInferiorityVerdict = Literal["no worse", "worse", "undecided"]


@dataclass(frozen=True, slots=True)
class NonInferiority:
    """The comparison of two runs on the same cases by one metric.

    Attributes:
        n: cases.
        baseline: the baseline's mean.
        candidate: the candidate's mean.
        difference: candidate minus baseline.
        low: lower bound of its interval.
        high: upper bound.
        pvalue: two-sided, of no difference.
        pvalue_no_worse: one-sided, of a deterioration by the margin or more; small means non-inferior.
        deteriorated: whether the difference goes the bad way.
        detectable: the smallest deterioration that this many cases would have shown with a power of 80%,
            each metric by itself; infinity where none would.
        method: the test and the interval, in words.
    """

    n: int
    baseline: float
    candidate: float
    difference: float
    low: float
    high: float
    pvalue: float
    pvalue_no_worse: float
    deteriorated: bool
    detectable: float
    method: str


def compare_paired(
    baseline: Values,
    candidate: Values,
    *,
    margin: float,
    clusters: Labels | None = None,
    confidence: float = 0.95,
    scale: float = 1.0,
    lower_is_better: bool = False,
) -> NonInferiority:
    """Compares two runs case by case.

    0/1 scores of independent cases: McNemar's exact test, Tango's score interval and his one-sided score test
    of the margin. Other scores, and clustered ones: the cluster-robust paired t test and interval, guarded
    against the sparse differences of two runs that mostly say the same (see `docs/statistics.md`).

    Args:
        baseline: finite scores, one per case.
        candidate: the same cases in the same order.
        margin: the deterioration that would matter, on the score's own scale, above 0 and below `scale`.
        clusters: what cases share; see `mean_interval`.
        confidence: the interval's confidence, and 1 minus the level of the test of no difference.
        scale: the largest difference that two scores can have (9 for marks from 1 to 10).
        lower_is_better: whether a rise is the deterioration.

    Raises:
        ValueError: no cases, numbers that are not finite, lists of different length, a difference that
            exceeds the scale, or a margin, confidence out of range.
    """
    if not 0 < margin < scale:
        raise ValueError(f"the margin must lie between 0 and the score's range of {scale:g}; got {margin}")
    same_length(baseline, candidate, "baseline and candidate")
    before, after = numbers(baseline, "baseline"), numbers(candidate, "candidate")
    within(after - before, -scale, scale, "differences")
    if lower_is_better:
        before, after = after, before
    if scale == 1 and _are_independent_outcomes(before, after, clusters):
        result = _compare_shares(before, after, margin, confidence)
    else:
        result = _compare_means(before, after, clusters, margin, confidence, scale)
    return _swap_back(result) if lower_is_better else result


def _are_independent_outcomes(before: Array, after: Array, clusters: Labels | None) -> bool:
    binary = all(((array == 0) | (array == 1)).all() for array in (before, after))
    return binary and (clusters is None or len(set(clusters)) == len(clusters))


def _swap_back(result: NonInferiority) -> NonInferiority:
    """Swap the roles of the two runs back."""
    return replace(
        result,
        baseline=result.candidate,
        candidate=result.baseline,
        difference=-result.difference,
        low=-result.high,
        high=-result.low,
    )


def _compare_shares(before: Array, after: Array, margin: float, confidence: float) -> NonInferiority:
    lost, won = discordant(before, after)
    n = len(before)
    interval = tango_interval(lost, won, n, confidence)
    return NonInferiority(
        n=n,
        baseline=float(before.mean()),
        candidate=float(after.mean()),
        difference=(won - lost) / n,
        low=interval.low,
        high=interval.high,
        pvalue=mcnemar(before, after),
        pvalue_no_worse=tango_pvalue(lost, won, n, margin),
        deteriorated=lost > won,
        detectable=detectable_share(n, (lost + won) / n, confidence=confidence),
        method="exact McNemar test, Tango's score interval",
    )


def _compare_means(
    before: Array,
    after: Array,
    clusters: Labels | None,
    margin: float,
    confidence: float,
    scale: float,
) -> NonInferiority:
    totals, sizes = cluster_totals(after - before, clusters)
    mean = mean_of_clusters(totals, sizes)
    interval = interval_within(mean, mean.clusters, confidence, scale)
    return NonInferiority(
        n=len(before),
        baseline=float(before.mean()),
        candidate=float(after.mean()),
        difference=mean.mean,
        low=interval.low,
        high=interval.high,
        pvalue=max(mean.pvalue_two_sided(), _sign_bound(totals)),
        pvalue_no_worse=_pvalue_no_worse(totals, sizes, margin, scale),
        deteriorated=mean.mean < 0,
        detectable=_detectable(mean, confidence, scale),
        method="paired t test" if clusters is None else "paired t test, cluster-robust",
    )


def _sign_bound(totals: Array) -> float:
    """Compute the least two-sided p-value of any sign-flip test: 2^(1 - k) for k clusters that changed.

    Two runs that mostly say the same differ in a few cases only; the t test would find four losses and no
    gain among a hundred cases significant, which equal models bring about one time in eight.
    """
    return min(1.0, math.ldexp(1.0, 1 - int((totals != 0).sum())))


def _pvalue_no_worse(totals: Array, sizes: Array, margin: float, scale: float) -> float:
    """Compute the one-sided p-value of a drop by the margin or more, by the t test with two guards.

    A rare heavy loss may not be among the cases drawn, and the t test, which knows the drawn ones only, would
    not reckon with it. So one more cluster is counted that lost the whole scale, as the Clopper-Pearson bound
    counts one more success; and p is not below that of the binomial test in which every loss is a whole one:
    the chance of so small a net loss among so many clusters.
    """
    import numpy as np

    size, count = float(sizes.mean()), len(totals)
    guarded = mean_of_clusters(np.append(totals, -scale * size), np.append(sizes, size))
    net = math.fsum(totals) / (size * scale)
    return max(guarded.pvalue_above(-margin), _rare_losses(net, count, margin / scale))


def _rare_losses(net: float, count: int, share: float) -> float:
    """Compute the chance of so small a net loss in `count` clusters if whole-scale losses make up the margin."""
    from scipy.special import betainc

    lost, share = max(0.0, -net), min(1.0, share + max(0.0, net) / count)
    return float(betainc(count - lost, lost + 1, 1 - share)) if lost < count else 1.0


def _detectable(mean: ClusteredMean, confidence: float, scale: float) -> float:
    """Compute the smallest loss that would be shown; if nothing varies, the share of cases that must lose all."""
    if mean.clusters == 1:
        return math.inf
    if mean.error == 0:
        return scale * detectable_share(mean.clusters, 0.0, confidence=confidence)
    deviation = mean.error * math.sqrt(mean.clusters)
    drop = detectable_mean(mean.clusters, deviation, confidence=confidence)
    return drop if drop <= scale else math.inf


def compare_statistic(  # noqa: PLR0913 - what one comparison consists of, by name
    values: tuple[float, float],
    without: Sequence[tuple[float, float]],
    *,
    n: int,
    clusters: int,
    margin: float,
    scale: float = 1.0,
    lower_is_better: bool = False,
    confidence: float = 0.95,
) -> NonInferiority:
    """Compares a statistic that is not a mean over cases (a kappa, a correlation) by the jackknife of its difference.

    The standard error is that of `jackknife_interval`, the test and the interval Student's with one degree of
    freedom less than there are groups. The test of the margin has the two guards of `compare_paired`: one more
    cluster that lost the whole scale, and the chance that rare losses stayed unseen.

    Args:
        values: the statistic in the baseline and in the candidate, on the same cases.
        without: both again, without each group of clusters in turn; at least two.
        n: cases.
        clusters: independent clusters of cases, at least as many as there are groups.
        margin: see `compare_paired`.
        scale: see `compare_paired`.
        lower_is_better: see `compare_paired`.
        confidence: see `compare_paired`.

    Raises:
        ValueError: the margin or the confidence is out of range, or there are fewer than two groups.
    """
    if not 0 < margin < scale:
        raise ValueError(f"the margin must lie between 0 and the score's range of {scale:g}; got {margin}")
    count = len(without)
    if count < 2:
        raise ValueError(f"a jackknife needs two groups; got {count}")
    left_out = [after - before for before, after in without]
    centre = math.fsum(left_out) / count
    error = math.sqrt(math.fsum((value - centre) ** 2 for value in left_out) * (count - 1) / count)
    difference = values[1] - values[0]
    gain = -difference if lower_is_better else difference
    gained = ClusteredMean(gain, error, count, count - 1.0)
    one = scale / (clusters + 1)
    guarded = replace(gained, mean=gain - one, error=math.hypot(error, one))
    interval = interval_within(
        replace(gained, mean=difference), clusters, probability(confidence, "confidence"), scale
    )
    return NonInferiority(
        n=n,
        baseline=values[0],
        candidate=values[1],
        difference=difference,
        low=interval.low,
        high=interval.high,
        pvalue=gained.pvalue_two_sided(),
        pvalue_no_worse=max(
            guarded.pvalue_above(-margin), _rare_losses(gain * clusters / scale, clusters, margin / scale)
        ),
        deteriorated=gain < 0,
        detectable=_detectable(gained, confidence, scale),
        method="jackknife of the difference, clusters left out whole",
    )


def verdicts(
    comparisons: Sequence[NonInferiority], parts: Array | None = None, *, confidence: float = 0.95
) -> list[NonInferiorityVerdict]:
    """Decide on each of several metrics, corrected for their number.

    - `no worse`: a deterioration by the margin or more is excluded, one-sided at (1 - confidence) / 2, as a
      two-sided interval of that confidence would exclude it.
    - `worse`: it is not excluded, and a deterioration is shown, two-sided at 1 - confidence.
    - `undecided`: neither; see `NonInferiority.detectable`.

    The chance that any metric of two equal models is called worse, and the chance that any metric is called
    no worse that did lose the margin, are each at most (1 - confidence) / 2 up to the tests' approximations.

    Args:
        comparisons: one per metric.
        parts: one row per cluster, one column per metric: the cluster's part of the gain. With it, what metrics
            have in common counts once (`joint`); without it, the correction is Holm's.
        confidence: 1 minus the chance that any of the verdicts is wrong.

    Raises:
        ValueError: no comparisons, parts of another shape, or a confidence outside of (0, 1).
    """
    level = 1 - probability(confidence, "confidence")
    excluded = [comparison.pvalue_no_worse for comparison in comparisons]
    differing = [comparison.pvalue for comparison in comparisons]
    no_worse = holm(excluded) if parts is None else joint(excluded, parts, sides=1)
    changed = holm(differing) if parts is None else joint(differing, parts, sides=2)
    return [
        "no worse"
        if excluded <= level / 2
        else "worse"
        if comparison.deteriorated and p <= level
        else "undecided"
        for comparison, excluded, p in zip(comparisons, no_worse, changed, strict=True)
    ]


DRAWS = 4999
"""Random sign changes, besides the signs as they are."""

CELLS_AT_ONCE = 2_000_000
"""Signs held at a time."""


def holm(pvalues: Values) -> list[float]:
    """Holm's adjusted p-values, in the order given: reject where one is at most the level.

    The chance that any true hypothesis is rejected is then at most the level, however the tests depend on
    each other. Holm, "A simple sequentially rejective multiple test procedure" (Scandinavian Journal of
    Statistics 6, 1979).

    Raises:
        ValueError: no p-values, or one is not in [0, 1].
    """
    array = within(numbers(pvalues, "pvalues"), 0, 1, "pvalues")
    adjusted, worst = [0.0] * len(array), 0.0
    for done, at in enumerate(array.argsort(kind="stable")):
        worst = max(worst, min(1.0, (len(array) - done) * float(array[at])))
        adjusted[at] = worst
    return adjusted


def joint(pvalues: Values, contributions: Array, *, sides: int, seed: int = 0) -> list[float]:
    """Adjusted p-values of tests on the same clusters, by the distribution of the smallest of them.

    Westfall and Young, "Resampling-Based Multiple Testing" (1993), the step-down method by the smallest p (for
    statistics of one kind, the greatest T): the signs of each cluster's differences are changed at
    random, for all metrics together, and a p-value is adjusted to the share of draws in which any metric that
    is left has one as small. What metrics have in common is thus counted once: eight copies of a metric get the
    p-value of one. Independent metrics get what Holm's method gives them.

    Args:
        pvalues: one per test, each valid by itself. No adjusted one is smaller.
        contributions: one row per cluster, one column per test: the cluster's part of the difference that is
            tested, with mean 0 under the hypothesis (0 where the cluster does not count).
        sides: 2 where both directions count, 1 where only large sums do.
        seed: the random generator's seed.

    Raises:
        ValueError: no p-values, one is not in [0, 1], or there is not a column for each.
    """
    import numpy as np

    array = within(numbers(pvalues, "pvalues"), 0, 1, "pvalues")
    if contributions.ndim != 2 or contributions.shape[1] != len(array):
        raise ValueError(f"{len(array)} tests need as many columns; got an array of {contributions.shape}")
    drawn = _drawn_pvalues(contributions, sides, np.random.default_rng(seed))
    adjusted, worst = [0.0] * len(array), 0.0
    order = array.argsort(kind="stable")
    for done, at in enumerate(order):
        smallest = drawn[:, order[done:]].min(axis=1)
        share = (1 + int(np.count_nonzero(smallest <= array[at] * (1 + 1e-9)))) / (len(drawn) + 1)
        # One test that is left has a p-value of its own, and needs no draws.
        worst = max(worst, float(array[at]), share if done < len(array) - 1 else 0.0)
        adjusted[at] = worst
    return adjusted


def _drawn_pvalues(contributions: Array, sides: int, rng: Any) -> Array:
    """Compute, per draw of signs and test, the normal p-value of the signed sum over its standard error."""
    import numpy as np
    from scipy.special import ndtr

    scale = np.sqrt((contributions**2).sum(axis=0))
    units = contributions / np.where(scale > 0, scale, 1.0)
    size = max(1, CELLS_AT_ONCE // len(units))
    parts = [
        (rng.integers(0, 2, (min(size, DRAWS - start), len(units)), dtype=np.int8) * 2.0 - 1.0) @ units
        for start in range(0, DRAWS, size)
    ]
    sums = np.concatenate(parts)
    return np.asarray(2 * ndtr(-abs(sums)) if sides == 2 else ndtr(-sums))
