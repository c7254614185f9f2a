"""What one judge gains over another on the same cases, in kappa and in rank correlation: paired tests of both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    Gain = tuple[Estimate | None, float | None]
    """The gain with its interval, and the p-value of no gain; None where they are undefined."""


def gain(value: float, without: Sequence[float], n: int) -> Gain:
    """A gain by the jackknife.

    Args:
        value: the gain over all cases.
        without: the gain without each cluster of cases.
        n: the number of cases.
    """
    from evalsuite.stats.jackknife import interval_of_replicates, pvalue_of_replicates

    if math.isnan(value):
        return None, None
    interval, pvalue = interval_of_replicates(value, without), pvalue_of_replicates(value, without)
    if math.isnan(interval.low):
        return Estimate(value, n=n), None
    return Estimate(value, interval.low, interval.high, n), None if math.isnan(pvalue) else pvalue


def kappa_gain(people: Sequence[Hashable], one: Sequence[Hashable], other: Sequence[Hashable]) -> Gain:
    """What the other judge gains over the one in Cohen's kappa with people; each case stands for itself."""
    answers = list(zip(people, one, other, strict=True))
    without = [_kappas_apart([*answers[:at], *answers[at + 1 :]]) for at in range(len(answers))]
    return gain(_kappas_apart(answers), without, len(answers))


def _kappas_apart(answers: Sequence[tuple[Hashable, Hashable, Hashable]]) -> float:
    from evalsuite.stats import cohen_kappa

    if not answers:
        return math.nan
    people, one, other = zip(*answers, strict=True)
    return cohen_kappa(people, other) - cohen_kappa(people, one)


def rho_gain(people: Sequence[float], one: Sequence[float], other: Sequence[float]) -> Gain:
    """What the other judge gains over the one in Spearman's rho with people; each case stands for itself."""
    from evalsuite.stats.rank_tables import without_each_cluster

    if len(people) < 3:
        return None, None
    (before, least), (after, most) = (
        without_each_cluster(people, scores, range(len(people)), "spearman") for scores in (one, other)
    )
    return gain(after - before, [two - first for first, two in zip(least, most, strict=True)], len(people))
