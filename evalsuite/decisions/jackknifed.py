"""An interval for a derived metric that brings none: whole clusters of cases are left out in turn."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.results.tally import Estimate, Tally

MOST_GROUPS = 60
"""Times that a derived metric is computed again; with more clusters, some are left out together."""


def jackknifed(
    compute: Callable[[Tally], Estimate | None],
    estimate: Estimate,
    cases: Tally,
    bounds: tuple[float, float] | None,
    confidence: float,
) -> Estimate:
    """A derived metric with the jackknife's interval, or that of `stats.interval_of_sameness` if nothing varies.

    Args:
        compute: the metric.
        estimate: its value over the cases; its own interval is dropped.
        cases: all of them.
        bounds: the metric's declared range; None if nobody declared one.
        confidence: of the interval.

    Returns:
        Without an interval if the metric is undefined without some clusters, or nothing varies and either no range is
        declared or the metric has an interval of its own, which knows better.
    """
    from evalsuite.stats.jackknife import interval_of_replicates
    from evalsuite.stats.sameness import interval_of_sameness

    value, bare = estimate.value, replace(estimate, low=None, high=None)
    names = list(dict.fromkeys(row.cluster for row in cases))
    without = _without_each_group(compute, cases, names)
    interval = interval_of_replicates(
        value, without, bounds=bounds or (-math.inf, math.inf), confidence=confidence
    )
    if not math.isnan(interval.low):
        return replace(bare, low=interval.low, high=interval.high)
    varies = len(without) < 2 or any(math.isnan(left) or not math.isclose(left, value) for left in without)
    if varies or bounds is None or estimate.low is not None:
        return bare
    interval = interval_of_sameness(value, len(names), bounds, confidence)
    return replace(bare, low=interval.low, high=interval.high)


def _without_each_group(
    compute: Callable[[Tally], Estimate | None], cases: Tally, clusters: list[str]
) -> list[float]:
    count = min(MOST_GROUPS, len(clusters))
    group = {name: number % count for number, name in enumerate(clusters)}
    left = (
        compute(cases.where(lambda row, out=number: group[row.cluster] != out))  # type: ignore[misc] # its own loop
        for number in range(count)
    )
    return [estimate.value if estimate else math.nan for estimate in left]
