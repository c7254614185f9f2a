"""Which loss can be shown of a metric that is not a mean over cases (a kappa, a correlation)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.decisions.jackknifed import MOST_GROUPS
from evalsuite.decisions.pairing import common_questions

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.decisions.pairing import Common
    from evalsuite.results.tally import Estimate, Tally
    from evalsuite.stats.planning import DifferenceVariance

    Compute = Callable[[Tally], Estimate | None]


def derived_variance(
    compute: Compute, tally: Tally, earlier: Tally | None
) -> tuple[DifferenceVariance, str] | None:
    """The variance that one question contributes to the difference between two runs, and its source in words.

    This is the squared jackknife error of the difference between two earlier runs (without such a pair: of two runs
    that have nothing in common) times the number of questions, since the error of such a metric also falls with
    their square root. The effect of more epochs is not estimated.

    Args:
        compute: the metric.
        tally: the baseline's cases.
        earlier: the same benchmark in another run, which shows how far two runs differ.

    Returns:
        None where the metric is undefined on these cases or without some of them.
    """
    from evalsuite.stats.planning import DifferenceVariance

    pair = common_questions(earlier, tally) if earlier is not None else None
    if pair is not None and len(pair.shared) > 1:
        common, alone = pair, False
        source = f"{len(pair.shared)} questions of two earlier runs"
    else:
        common, alone = common_questions(tally, tally), True
        source = "the baseline's cases, as if two runs had nothing in common: too cautious"
    error = _squared_error(compute, common, alone=alone)
    if error is None:
        return None
    return DifferenceVariance(error * len(common.shared) * (2 if alone else 1), 0.0), source


def _squared_error(compute: Compute, common: Common, *, alone: bool) -> float | None:
    """The jackknife's squared error of the metric, or of its difference between the two runs."""
    names = common.clusters()
    count = min(MOST_GROUPS, len(names))
    values = []
    for start in range(count):
        before, after = (compute(tally) for tally in common.tallies(frozenset(names[start::count])))
        if before is None or after is None or math.isnan(after.value - before.value):
            return None
        values.append(after.value if alone else after.value - before.value)
    if count < 2:
        return None
    centre = math.fsum(values) / count
    return math.fsum((value - centre) ** 2 for value in values) * (count - 1) / count
