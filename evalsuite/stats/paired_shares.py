"""The difference of two shares on the same cases: Tango's score test and interval."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from evalsuite.stats.clustering import Interval
from evalsuite.stats.inputs import probability

if TYPE_CHECKING:
    from collections.abc import Callable

HALVINGS = 60
"""Bisections of [-1, 1]: past the last digit of a float."""


def tango_z(lost: int, won: int, n: int, difference: float) -> float:
    """Tango's score statistic: how far the data lie above a supposed difference, in standard errors.

    (won - lost - n d) / sqrt(n (2 q + d (1 - d))), where q is the probability of a loss that is most likely
    if the true difference is d: the root of 2n q^2 + B q + C = 0 with B = -(lost + won) + (2n - won + lost) d
    and C = -lost d (1 - d). Tango, "Equivalence test and confidence interval for the difference in
    proportions for the paired-sample design" (Statistics in Medicine 17, 1998, p. 891).

    Args:
        lost: cases that went from 1 to 0.
        won: cases that went from 0 to 1.
        n: all cases.
        difference: the supposed true difference, in [-1, 1].
    """
    b = (2 * n - won + lost) * difference - (lost + won)
    c = -lost * difference * (1 - difference)
    loss = (math.sqrt(max(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
    variance = n * (2 * loss + difference * (1 - difference))
    distance = won - lost - n * difference
    if variance <= 0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)


def tango_pvalue(lost: int, won: int, n: int, margin: float) -> float:
    """One-sided p-value of a drop of `margin` or more. Arguments as `tango_z`."""
    return NormalDist().cdf(-tango_z(lost, won, n, -margin))


def tango_interval(lost: int, won: int, n: int, confidence: float = 0.95) -> Interval:
    """All differences that the two-sided score test would not reject. Arguments as `tango_z`.

    Raises:
        ValueError: n is not above 0, more cases changed than there are, or confidence is not in (0, 1).
    """
    if not n > 0 or min(lost, won) < 0 or lost + won > n:
        raise ValueError(f"{lost} lost and {won} won of n={n} cases cannot be")
    z = NormalDist().inv_cdf((1 + probability(confidence, "confidence")) / 2)
    centre = (won - lost) / n
    low = _boundary(lambda d: tango_z(lost, won, n, d) > z, -1.0, centre)
    high = _boundary(lambda d: tango_z(lost, won, n, d) >= -z, centre, 1.0)
    return Interval(low, high)


def _boundary(holds: Callable[[float], bool], left: float, right: float) -> float:
    """Where a condition that holds to the left ceases to hold."""
    if holds(right):
        return right
    for _ in range(HALVINGS):
        middle = (left + right) / 2
        left, right = (middle, right) if holds(middle) else (left, middle)
    return left
