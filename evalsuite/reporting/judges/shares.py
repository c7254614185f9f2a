"""Shares with intervals that allow for several votes on one case."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.results.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence


def share(values: Sequence[float], clusters: Sequence[str]) -> Estimate | None:
    """The mean of zeros and ones; None where there are none.

    Wilson's interval where each cluster has one value or all values are equal, the latter with as many
    cases as clusters; else the cluster-robust t interval, cut at 0 and 1.
    """
    from evalsuite import stats

    if not values:
        return None
    mean, independent = math.fsum(values) / len(values), len(set(clusters))
    if independent == len(values) or mean in (0.0, 1.0):
        interval = stats.wilson_interval(mean * independent, independent)
    else:
        interval = stats.mean_interval(values, clusters=clusters)
    return Estimate(mean, max(0.0, interval.low), min(1.0, interval.high), len(values))
