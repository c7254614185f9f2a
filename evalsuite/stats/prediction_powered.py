"""A mean from few labels by people and many by a judge, with an interval that holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from evalsuite.stats.inputs import numbers, probability, same_length

if TYPE_CHECKING:
    from evalsuite.stats.inputs import Array, Values


@dataclass(frozen=True, slots=True)
class PredictionPowered:
    """A prediction-powered mean.

    Attributes:
        estimate: of the mean that people would have given.
        low: lower bound of its interval.
        high: upper bound.
        tuning: weight of the judge's scores, from 0 (of no use, people's labels alone) to 1.
    """

    estimate: float
    low: float
    high: float
    tuning: float


def ppi_mean(
    labels: Values, judged: Values, judged_only: Values, *, confidence: float = 0.95
) -> PredictionPowered:
    """The mean by prediction-powered inference with power tuning (PPI++).

    Estimate: tuning * mean(judged_only) + mean(labels - tuning * judged), with a normal interval from the two
    variances. Angelopoulos, Duchi and Zrnic, "PPI++: Efficient Prediction-Powered Inference" (arXiv
    2311.01453). The cases that people labelled must be a random
    part of all, or the interval does not hold. As it is a normal interval, some 30 labels are the least.

    Args:
        labels: people's scores of the labelled cases.
        judged: the judge's scores of the same cases in the same order.
        judged_only: the judge's scores of the cases without labels.
        confidence: of the interval.

    Returns:
        With a single label the interval is the whole line.

    Raises:
        ValueError: a list is empty or holds what is not finite, labels and judged differ in length, or
            confidence is not in (0, 1).
    """
    z = NormalDist().inv_cdf((1 + probability(confidence, "confidence")) / 2)
    same_length(labels, judged, "labels and judged")
    human, machine = numbers(labels, "labels"), numbers(judged, "judged")
    rest = numbers(judged_only, "judged_only")
    tuning = _tuning(human, machine, rest)
    rectified = human - tuning * machine
    estimate = tuning * float(rest.mean()) + float(rectified.mean())
    if len(human) == 1:
        return PredictionPowered(estimate, -math.inf, math.inf, tuning)
    reach = z * math.sqrt(tuning**2 * float(rest.var()) / len(rest) + float(rectified.var()) / len(human))
    return PredictionPowered(estimate, estimate - reach, estimate + reach, tuning)


def _tuning(human: Array, machine: Array, rest: Array) -> float:
    """The weight that makes the interval shortest, clipped to [0, 1]: cov(Y, f) / ((1 + n/N) var(f))."""
    import numpy as np

    variance = float(np.concatenate([machine, rest]).var(ddof=1))
    if variance == 0:
        return 0.0
    together = float(((human - human.mean()) * (machine - machine.mean())).mean())
    return min(1.0, max(0.0, together / ((1 + len(human) / len(rest)) * variance)))
