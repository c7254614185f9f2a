"""Estimate a mean from few labels by people and many scores by a judge, with a valid interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from evalsuite.stats.clustering import sum_clusters
from evalsuite.stats.inputs import (
    Array,
    Labels,
    Values,
    check_probability,
    check_range,
    check_same_length,
    convert_to_floats,
)


@dataclass(frozen=True, slots=True)
class PredictionPowered:
    """A prediction-powered mean.

    Attributes:
        estimate: the estimated mean of people's scores.
        low: lower bound of the estimate's interval.
        high: upper bound of the estimate's interval.
        tuning: the weight of the judge's scores in the estimate, from 0 (they are ignored) to 1.
    """

    estimate: float
    low: float
    high: float
    tuning: float


def ppi_mean(
    labels: Values,
    judged: Values,
    judged_only: Values,
    *,
    bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
    weights: Values | None = None,
    clusters: tuple[Labels, Labels] | None = None,
) -> PredictionPowered:
    """Estimate the mean of people's scores by prediction-powered inference with power tuning (PPI++).

    The estimate is tuning * mean(judged_only) + mean(labels - tuning * judged). With n labelled and N unlabelled cases,
    the estimate's variance is tuning^2 var(judged_only) / N + var(labels - tuning * judged) / n. The tuning is
    cov(labels, judged) / ((1 + n / N) var(all judged)), clipped to [0, 1]. Angelopoulos, Duchi and Zrnic, "PPI++:
    Efficient Prediction-Powered Inference" (arXiv 2311.01453). The cases that people labelled must be a random sample
    of all cases, or the interval is not valid.

    If cases were drawn with unequal probabilities, the rectified labels (labels - tuning * judged) are weighted by the
    inverse probabilities: Zrnic and Candes, "Active Statistical Inference" (arXiv 2403.03208). These weights are scaled
    to a sum of one (Hajek), and the judge's mean score is taken over all cases instead of those without labels.

    With 30 labels and rare failures, the paper's normal interval covers the truth in only 22 to 93% of samples, because
    judge and people rarely differ on a labelled case. To reach the nominal coverage, each bound uses Student's quantile
    and one more labelled case, on which the judge was as wrong as possible. If the rectified labels are skewed towards
    one bound of the interval, this bound moves outwards by a term of the Cornish-Fisher expansion (Johnson, "Modified t
    tests", JASA 73, 1978). If the rectified labels do not vary, Clopper and Pearson's interval determines the width.
    This combination of corrections is not from the paper; `perf/statistical_promises.py` simulates the coverage of the
    resulting interval.

    If cases share clusters, the rectified labels and the judge's other scores are summed by cluster and scaled to their
    old means. Then n and N count clusters.

    Args:
        labels: people's scores of the labelled cases.
        judged: the judge's scores of the same cases in the same order.
        judged_only: the judge's scores of the cases without labels.
        bounds: the lowest and highest possible score, to which the interval is clipped. None means [0, 1], widened to
            include all scores.
        weights: a weight per labelled case, proportional to 1 / (probability of being drawn); None means equal weights.
        clusters: the cluster of each labelled case, then of each case without a label; None if all are independent.

    Returns:
        The estimate and its interval; for a single label or cluster of labels, the interval is the whole range.

    Raises:
        ValueError: a list is empty; a value is not finite or is out of bounds; `labels`, `judged`, `weights` and
            `clusters` differ in length; a weight is not above 0; or the confidence is not in (0, 1).
    """
    level = (1 + check_probability(confidence, "confidence")) / 2
    check_same_length(labels, judged, "labels and judged")
    human, machine = convert_to_floats(labels, "labels"), convert_to_floats(judged, "judged")
    rest = convert_to_floats(judged_only, "judged_only")
    scores = np.concatenate([human, machine, rest])
    low, high = bounds or (min(0.0, float(scores.min())), max(1.0, float(scores.max())))
    for values, name in ((human, "labels"), (machine, "judged"), (rest, "judged_only")):
        check_range(values, low, high, name)
    if weights is None:
        tuning = _compute_tuning(human, machine, rest)
        rectified = human - tuning * machine
    else:
        check_same_length(labels, weights, "labels and weights")
        shares = convert_to_floats(weights, "weights")
        if shares.min() <= 0:
            raise ValueError(f"weights must be above 0, got {shares.min():g}")
        shares, rest = shares / shares.mean(), np.concatenate([machine, rest])
        tuning = _compute_weighted_tuning(human, machine, rest, shares)
        plain = human - tuning * machine
        middle = float((shares * plain).mean())
        rectified = middle + shares * (plain - middle)
    estimate = tuning * float(rest.mean()) + float(rectified.mean())
    if clusters is not None:
        labelled, others = clusters
        rectified = _sum_by_cluster(rectified, labelled)
        rest = _sum_by_cluster(rest, others if weights is None else [*labelled, *others])
    if len(rectified) == 1:
        return PredictionPowered(estimate, low, high, tuning)
    left = _compute_bound(rectified, low - tuning * high, rest, tuning, -level)
    right = _compute_bound(rectified, high - tuning * low, rest, tuning, level)
    return PredictionPowered(estimate, max(low, min(left, estimate)), min(high, max(right, estimate)), tuning)


def _sum_by_cluster(values: Array, clusters: Labels) -> Array:
    """Sum values by cluster, scaled so that the sums' mean and its standard error are those of the clustered mean."""
    mean = float(values.mean())
    sums, _ = sum_clusters(values - mean, clusters)
    return mean + sums * len(sums) / len(values)


def _compute_bound(rectified: Array, worst: float, rest: Array, tuning: float, level: float) -> float:
    """Compute a bound of the mean, with one added label of value `worst`; the lower bound if `level` is negative."""
    n, side, mean = len(rectified), math.copysign(1, level), float(rectified.mean())
    quantile, of_rest = float(stdtrit(n, abs(level))), tuning * float(rest.mean())
    error = tuning**2 * float(rest.var()) / len(rest)
    own = float(rectified.var(ddof=1))
    if own <= 1e-12 * (worst - mean) ** 2:
        reach = math.hypot(quantile * math.sqrt(error), abs(worst - mean) * (1 - (1 - abs(level)) ** (1 / n)))
        return of_rest + mean + side * reach
    guarded = np.append(rectified, worst)
    skew = (1 + 2 * quantile**2) / 6 * float(((rectified - mean) ** 3).mean()) / (own * n)
    reach = quantile * math.sqrt(error + float(guarded.var(ddof=1)) / len(guarded)) + max(0.0, side * skew)
    return of_rest + float(guarded.mean()) + side * reach


def _compute_weighted_tuning(human: Array, machine: Array, all_machine: Array, label_weights: Array) -> float:
    """Compute the judge's weight in [0, 1] that gives the shortest interval for weighted labels."""
    labels, scores = (label_weights * (values - float((label_weights * values).mean())) for values in (human, machine))
    variance = float((scores**2).mean()) + len(human) / len(all_machine) * float(all_machine.var())
    return min(1.0, max(0.0, float((labels * scores).mean()) / variance)) if variance else 0.0


def _compute_tuning(human: Array, machine: Array, rest: Array) -> float:
    """Compute the weight of the judge's scores that gives the shortest interval, by the formula in `ppi_mean`."""
    variance = float(np.concatenate([machine, rest]).var(ddof=1))
    if variance == 0:
        return 0.0
    together = float(((human - human.mean()) * (machine - machine.mean())).mean())
    return min(1.0, max(0.0, together / ((1 + len(human) / len(rest)) * variance)))
