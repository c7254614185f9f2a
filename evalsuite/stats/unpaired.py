"""Compares two results that have no cases in common."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalsuite.stats.clustering import Interval


def unpaired_difference(
    first: float, first_interval: Interval, second: float, second_interval: Interval
) -> tuple[float, float]:
    """The bounds of `first - second` for independent estimates.

    The distance of each bound from the difference is the root of the summed squares of the distances of the two
    estimates' own bounds on the relevant sides: Newcombe, Statistics in Medicine 17 (1998), pp. 873-890, method
    10 for two shares; Donner and Zou, Statistical Methods in Medical Research 21 (2012), for any estimates.

    Args:
        first: an estimate.
        first_interval: around it, at the confidence that the difference is to have.
        second: the other.
        second_interval: around it, at the same confidence.

    Returns:
        the lower and the upper bound.
    """
    difference = first - second
    below = math.hypot(first - first_interval.low, second_interval.high - second)
    above = math.hypot(first_interval.high - first, second - second_interval.low)
    return difference - below, difference + above
