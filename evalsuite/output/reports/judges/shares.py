"""Shares with intervals that allow for several votes on one case."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence


def share(values: Sequence[float], clusters: Sequence[str]) -> Estimate | None:
    """The mean of zeros and ones; None where there are none.

    Where all values are the same, there are as many cases as clusters.
    """
    from evalsuite import stats

    if not values:
        return None
    mean, independent = math.fsum(values) / len(values), len(set(clusters))
    if mean in (0.0, 1.0):
        interval = stats.count_interval(mean * independent, independent)
    else:
        interval = stats.share_interval(values, clusters=clusters)
    return Estimate(mean, interval.low, interval.high, len(values))


def mean_of_scores(values: Sequence[float]) -> Estimate:
    """The mean of any scores, at least one; without an interval where they are too few, or all the same."""
    from evalsuite import stats

    interval = stats.mean_interval(values)
    low, high = (interval.low, interval.high) if math.isfinite(interval.high) else (None, None)
    return Estimate(math.fsum(values) / len(values), low, high, len(values))
