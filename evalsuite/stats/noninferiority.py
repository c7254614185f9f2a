"""Test the non-inferiority of a candidate to a baseline within a margin, over several metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Literal

import numpy as np
from scipy.special import betainc, gammaincinv, ndtri, stdtrit

from evalsuite.stats.clustering import (
    ClusteredMean,
    compute_mean_of_clusters,
    estimate_by_jackknife,
    make_bounded_interval,
    sum_clusters,
)
from evalsuite.stats.inputs import (
    Array,
    Labels,
    Values,
    are_binary,
    check_probability,
    check_range,
    check_same_length,
    convert_to_floats,
)
from evalsuite.stats.paired import compute_mcnemar_pvalue, count_discordant_cases, tango_interval, tango_pvalue
from evalsuite.stats.power import compute_dispersion, detectable_mean, detectable_share

NonInferiorityVerdict = Literal["no worse", "worse", "undecided"]
EQUAL_PASSES = 0.95  # The probability that an equal model is `no worse`; 5% may stay undecided.
# Maximum draws of `calibrate`; with this number, the error of an estimated share of 2.5% is at most 0.7 percentage
# points. With many clusters, fewer draws (at least 200) are made, to keep the time below a second.
DRAWS = 2000
MOST_SUMS = 2_000_000  # Maximum product of draws and clusters in `calibrate`, to limit its time.
FEWEST_DRAWN = 10  # Minimum clusters; with fewer, nearly all verdicts would be `undecided`.


@dataclass(frozen=True, slots=True, kw_only=True)
class LossTest:
    """P-values of one metric's comparison; `verdicts` decides by them whether the candidate is worse."""

    n: int  # The number of cases.
    pvalue: float  # Two-sided p-value of no difference.
    # One-sided p-value of a deterioration by the margin or more; a small value shows non-inferiority.
    pvalue_no_worse: float
    deteriorated: bool  # Whether the candidate's value is worse.
    margin: float  # The smallest deterioration that matters.
    # Standard deviation of the differences: the standard error times the square root of `n`. The deviation has a
    # minimum, because the cases may lack rare losses: its value if rare losses of the whole scale make up the margin.
    deviation: float
    freedom: float = math.inf  # The degrees of freedom of the standard error; infinity for shares.

    def count_needed(self, confidence: float = 0.95) -> int:
        """Compute how many cases are needed to show with a power of 95% that an equal candidate is `no worse`.

        The number of cases is an approximation by Student's t distribution; it assumes that new cases vary like the
        observed ones (Cohen, "Statistical Power Analysis for the Behavioral Sciences", 1988, chapter 2). The power is
        only 90% if the sum of the observed cases' nonzero differences just reaches the margin.

        Args:
            confidence: 1 minus the level of the two-sided test of no difference; the one-sided test of the margin has
                half this level.
        """
        chances = ((1 + check_probability(confidence, "confidence")) / 2, EQUAL_PASSES)
        quantiles = [ndtri(p) if math.isinf(self.freedom) else stdtrit(self.freedom, p) for p in chances]
        return math.ceil((float(sum(quantiles)) * self.deviation / self.margin) ** 2)

    def is_failing(self, confidence: float) -> bool:
        """Tell whether the metric fails a session: it is `worse`, or `undecided` although there are enough cases."""
        (verdict,) = verdicts([self], confidence=confidence)
        return verdict == "worse" or (verdict == "undecided" and self.n >= self.count_needed(confidence))


@dataclass(frozen=True, slots=True)
class Calibration:
    """How often simulated candidates with a known true loss fail the comparison.

    Attributes:
        equal_fails: the share, in [0, 1], of failures among simulated candidates that are as good as the baseline.
        loss_fails: the share of failures among simulated candidates whose true loss is the margin, in [0, 1].
        draws: the number of simulated candidates of each kind (equal, or with a loss of the margin).
    """

    equal_fails: float
    loss_fails: float
    draws: int


@dataclass(frozen=True, slots=True)
class PairedClusterSums:
    """Paired scores as sums over clusters; a higher score is better."""

    # Each cluster's sum of the baseline's scores; from each score, the lowest score of both runs is subtracted first.
    before: Array
    after: Array  # Each cluster's sum of the candidate's scores, computed in the same way.
    sizes: Array  # The number of cases of each cluster.
    margin: float  # The smallest loss that matters.
    scale: float  # The largest difference that two scores can have.
    shares: bool  # Whether all scores are 0 or 1 and each cluster has one case.

    def test_loss(self, totals: Array, sizes: Array) -> LossTest:
        """Test the loss, given each cluster's sum of differences and its number of cases."""
        n, margin = int(sizes.sum()), self.margin
        if self.shares:
            lost, won = int((totals < 0).sum()), int((totals > 0).sum())
            return LossTest(
                n=n,
                pvalue=compute_mcnemar_pvalue(lost, won),
                pvalue_no_worse=tango_pvalue(lost, won, n, margin),
                deteriorated=lost > won,
                margin=margin,
                deviation=math.sqrt(max((lost + won) / n - ((won - lost) / n) ** 2, margin)),
            )
        mean = compute_mean_of_clusters(totals, sizes)
        # For k clusters that changed, the lowest possible p-value of a two-sided sign-flip test is 2^(1 - k). The t
        # test's p-value is raised to this bound if it is lower, because similar runs differ in few cases. The t test
        # alone would call four losses and no gain among a hundred cases significant. Between equal models, however,
        # four changes all have the same sign with a probability of 1/8.
        sign_flip_bound = min(1.0, math.ldexp(1.0, 1 - int((totals != 0).sum())))
        # A t test cannot take into account a rare heavy loss that the sample lacks. To allow for such a loss, one
        # cluster with the greatest possible loss is added, as the Clopper-Pearson bound adds one success.
        size = float(sizes.mean())
        guarded = compute_mean_of_clusters(np.append(totals, -self.scale * size), np.append(sizes, size))
        net = math.fsum(totals) / (size * self.scale)
        rare = _compute_rare_loss_pvalue(net, len(totals), margin / self.scale)
        return LossTest(
            n=n,
            pvalue=max(mean.pvalue_two_sided(), sign_flip_bound),
            pvalue_no_worse=max(guarded.pvalue_above(-margin), rare),
            deteriorated=mean.mean < 0,
            margin=margin,
            deviation=_compute_guarded_deviation(mean, n, margin, self.scale),
            freedom=mean.freedom,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NonInferiority(LossTest):
    """The comparison of two runs on the same cases by one metric.

    Attributes:
        baseline: the baseline's mean.
        candidate: the candidate's mean.
        difference: candidate minus baseline.
        low: lower bound of the difference's interval.
        high: upper bound of the difference's interval.
        detectable: the smallest deterioration that these cases would show with a power of 80%, if this were the only
            metric. Infinity if they cannot show any.
        method: a description of the test and the interval.
        pairs: both runs' scores, summed by cluster; None if the statistic is not a mean over cases.
    """

    baseline: float
    candidate: float
    difference: float
    low: float
    high: float
    detectable: float
    method: str
    pairs: PairedClusterSums | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, float | str]:
        """Return the attributes as a dictionary, without `pairs`."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "pairs"}

    def calibrate(self, confidence: float = 0.95, cases: int | None = None, seed: int = 0) -> Calibration | None:
        """Simulate candidates with a known true loss from `pairs`; return how often these candidates fail.

        To simulate an equal candidate, the two runs' scores are exchanged in each cluster with probability 1/2 (the
        sign-flip test; Fisher, "The Design of Experiments", 1935, section 21). To simulate a loss of the margin, the
        lowest score is also given to random clusters. Their number makes the mean loss equal to the margin. Each
        simulated candidate is tested like the real candidate.

        Args:
            confidence: 1 minus the level of the two-sided test of this metric.
            cases: the approximate number of cases of each simulated candidate; its clusters are drawn with replacement.
                None uses every cluster once.
            seed: the seed of the random draws; the same seed gives the same result.

        Returns:
            None if there are fewer than 10 clusters, or if the metric is not a mean over cases.
        """
        pairs = self.pairs
        if pairs is None or len(pairs.sizes) < FEWEST_DRAWN:
            return None
        count = len(pairs.sizes)
        planned = count if cases is None else max(1, round(cases * count / self.n))
        draws = max(200, min(DRAWS, MOST_SUMS // planned))
        height = math.fsum(pairs.before + pairs.after) / 2
        chance = min(1.0, pairs.margin * self.n / height) if height > 0 else 0.0
        random = np.random.default_rng(seed)
        fails = [0, 0]
        for _ in range(draws):
            drawn = slice(None) if cases is None else random.integers(count, size=planned)
            before, after, sizes = pairs.before[drawn], pairs.after[drawn], pairs.sizes[drawn]
            exchanged = random.random(planned) < 0.5
            first, second = np.where(exchanged, after, before), np.where(exchanged, before, after)
            fallen = np.where(random.random(planned) < chance, 0.0, second)
            for kind, candidate in enumerate((second, fallen)):
                fails[kind] += pairs.test_loss(candidate - first, sizes).is_failing(confidence)
        return Calibration(fails[0] / draws, fails[1] / draws, draws)


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
    """Compare two runs case by case.

    Scores of 0 and 1 on independent cases use McNemar's exact test, Tango's score interval, and Tango's one-sided score
    test of the margin. All other scores use the cluster-robust paired t test and interval, with guards for runs that
    differ in few cases only (see `docs/statistics.md`).

    Args:
        baseline: finite scores, one per case.
        candidate: finite scores of the same cases, in the same order.
        margin: the smallest deterioration that matters, on the score's own scale, above 0 and below `scale`.
        clusters: the cluster of each case; see `mean_interval`.
        confidence: the interval's confidence, and 1 minus the level of the test of no difference.
        scale: the largest difference that two scores can have (9 for marks from 1 to 10).
        lower_is_better: whether a higher score is a deterioration.

    Raises:
        ValueError: a list is empty, a number is not finite, lists differ in length, a difference exceeds the scale,
            or the margin or confidence is out of range.
    """
    if not 0 < margin < scale:
        raise ValueError(f"the margin must lie between 0 and the score's range of {scale:g}; got {margin}")
    check_same_length(baseline, candidate, "baseline and candidate")
    before, after = convert_to_floats(baseline, "baseline"), convert_to_floats(candidate, "candidate")
    check_range(after - before, -scale, scale, "differences")
    means = float(before.mean()), float(after.mean())
    if lower_is_better:
        highest = max(before.max(), after.max())
        before, after = highest - before, highest - after
    lowest = min(before.min(), after.min())
    pairs = PairedClusterSums(
        sum_clusters(before - lowest, clusters)[0],
        *sum_clusters(after - lowest, clusters),
        margin=margin,
        scale=scale,
        shares=scale == 1 and are_binary(before, after) and (clusters is None or len(set(clusters)) == len(clusters)),
    )
    totals, sizes = sum_clusters(after - before, clusters)
    mean, n = compute_mean_of_clusters(totals, sizes), len(before)
    if pairs.shares:
        lost, won = count_discordant_cases(before, after)
        interval = tango_interval(lost, won, n, confidence)
        detectable = detectable_share(n, (lost + won) / n, confidence=confidence)
        method = "exact McNemar test, Tango's score interval"
    else:
        interval = make_bounded_interval(mean, confidence, scale)
        widening = compute_dispersion(np.append(before, after), scale) / n
        detectable = _compute_detectable_loss(mean, confidence, scale, widening)
        method = "paired t test" if clusters is None else "paired t test, cluster-robust"
    # If a lower score is better, the scores were mirrored above; undo this.
    difference, *bounds = (
        (-mean.mean, -interval.high, -interval.low) if lower_is_better else (mean.mean, interval.low, interval.high)
    )
    return NonInferiority(
        **asdict(pairs.test_loss(totals, sizes)),
        baseline=means[0],
        candidate=means[1],
        difference=difference,
        low=bounds[0],
        high=bounds[1],
        detectable=detectable,
        method=method,
        pairs=pairs,
    )


def _compute_guarded_deviation(mean: ClusteredMean, n: int, margin: float, scale: float) -> float:
    """Compute the deviation per case, raised to the minimum that `LossTest` explains."""
    return math.sqrt(max(mean.error**2 * n, margin * scale * n / mean.clusters))


def _compute_rare_loss_pvalue(net: float, count: int, share: float) -> float:
    """Compute a binomial p-value: the probability of at most this net loss if the true loss is the margin.

    Each loss counts as the greatest possible, so the margin is a lost `share` of clusters, plus any net gain.
    """
    lost, share = max(0.0, -net), min(1.0, share + max(0.0, net) / count)
    return float(betainc(count - lost, lost + 1, 1 - share)) if lost < count else 1.0


def _compute_detectable_loss(mean: ClusteredMean, confidence: float, scale: float, widening: float = 0.0) -> float:
    """Compute the smallest loss that the cases would show; if all differences are equal, use McNemar's test."""
    if mean.clusters == 1:
        return math.inf
    if mean.error == 0:
        return scale * detectable_share(mean.clusters, 0.0, confidence=confidence)
    # Correct the standard error: with few degrees of freedom, it is usually too small, because the median of the
    # chi-square distribution is below its mean.
    median = 2 * float(gammaincinv(mean.freedom / 2, 0.5)) / mean.freedom
    deviation = mean.error * math.sqrt(mean.clusters / median)
    drop = detectable_mean(
        mean.clusters, deviation, freedom=mean.freedom, confidence=confidence, scale=scale, widening=widening
    )
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
    """Compare two runs by a statistic that is not a mean over cases (a kappa, a correlation), with the jackknife.

    The standard error is computed as in `jackknife_interval`. The test and the interval use Student's t; its degrees of
    freedom are the length of `without` minus 1. As in `compare_paired`, the test of the margin adds a cluster with the
    largest possible loss, because the cases may lack rare losses.

    Args:
        values: the statistic in the baseline, then in the candidate, on the same cases.
        without: both values without each group of clusters in turn; at least two groups.
        n: the number of cases.
        clusters: the number of independent clusters of cases, at least the number of groups in `without`.

    `compare_paired` describes the other arguments.

    Raises:
        ValueError: the margin or the confidence is out of range, or there are fewer than two groups.
    """
    if not 0 < margin < scale:
        raise ValueError(f"the margin must lie between 0 and the score's range of {scale:g}; got {margin}")
    if len(without) < 2:
        raise ValueError(f"a jackknife needs two groups; got {len(without)}")
    check_probability(confidence, "confidence")
    difference = values[1] - values[0]
    gain = -difference if lower_is_better else difference
    gained = estimate_by_jackknife(gain, [after - before for before, after in without])
    one = scale / (clusters + 1)
    guarded = replace(gained, mean=gain - one, error=math.hypot(gained.error, one))
    interval = make_bounded_interval(replace(gained, mean=difference, clusters=clusters), confidence, scale)
    return NonInferiority(
        n=n,
        baseline=values[0],
        candidate=values[1],
        difference=difference,
        low=interval.low,
        high=interval.high,
        pvalue=gained.pvalue_two_sided(),
        pvalue_no_worse=max(
            guarded.pvalue_above(-margin), _compute_rare_loss_pvalue(gain * clusters / scale, clusters, margin / scale)
        ),
        deteriorated=gain < 0,
        detectable=_compute_detectable_loss(gained, confidence, scale),
        method="jackknife of the difference, clusters left out whole",
        margin=margin,
        deviation=_compute_guarded_deviation(replace(gained, clusters=clusters), n, margin, scale),
        freedom=gained.freedom,
    )


def verdicts(comparisons: Sequence[LossTest], *, confidence: float = 0.95) -> list[NonInferiorityVerdict]:
    """Return each metric's verdict on noninferiority, with Holm's correction for multiple comparisons.

    - `no worse`: a one-sided test at the level (1 - confidence) / 2 excludes a deterioration by the margin or more.
    - `worse`: a two-sided test at the level 1 - confidence shows a deterioration, and the verdict is not `no worse`.
    - `undecided`: anything else; `NonInferiority.detectable` states the smallest loss that the cases would show.

    If the models are equal, the probability that any metric is called worse is at most (1 - confidence) / 2, apart from
    the tests' approximations. If a metric lost the margin, the probability that it is called no worse has the same
    limit.

    Args:
        comparisons: one comparison per metric.
        confidence: 1 minus the probability that any of the verdicts is wrong.

    Raises:
        ValueError: the list is empty, or the confidence is outside of (0, 1).
    """
    level = 1 - check_probability(confidence, "confidence")
    no_worse = holm([comparison.pvalue_no_worse for comparison in comparisons])
    changed = holm([comparison.pvalue for comparison in comparisons])
    return [
        "no worse" if excluded <= level / 2 else "worse" if comparison.deteriorated and p <= level else "undecided"
        for comparison, excluded, p in zip(comparisons, no_worse, changed, strict=True)
    ]


def holm(pvalues: Values) -> list[float]:
    """Compute Holm's adjusted p-values, in the given order.

    Suppose that all hypotheses with adjusted p-values up to a level are rejected. The probability of rejecting any true
    one is then at most this level, even if the tests depend on each other. Holm, "A simple sequentially rejective
    multiple test procedure" (Scandinavian Journal of Statistics 6, 1979).

    Raises:
        ValueError: the list is empty, or a p-value is not in [0, 1].
    """
    array = check_range(convert_to_floats(pvalues, "pvalues"), 0, 1, "pvalues")
    adjusted, worst = [0.0] * len(array), 0.0
    for done, at in enumerate(array.argsort(kind="stable")):
        worst = max(worst, min(1.0, (len(array) - done) * float(array[at])))
        adjusted[at] = worst
    return adjusted
