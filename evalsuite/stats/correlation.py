"""Correlation of two scores, and differences between groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.stats.inputs import numbers, same_length

if TYPE_CHECKING:
    from evalsuite.stats.inputs import Array, Values


@dataclass(frozen=True, slots=True)
class Significance:
    """A test's statistic and its two-sided p-value; both are nan where the statistic is undefined."""

    statistic: float
    pvalue: float


UNDEFINED = Significance(math.nan, math.nan)


def _pairs(x: Values, y: Values) -> tuple[Array, Array] | None:
    """Both lists, or None if correlation is undefined: fewer than three pairs, or one list is constant."""
    same_length(x, y, "x and y")
    first, second = numbers(x, "x"), numbers(y, "y")
    if len(first) < 3 or first.min() == first.max() or second.min() == second.max():
        return None
    return first, second


def pearson(x: Values, y: Values) -> Significance:
    """Pearson's r with the p-value of the t distribution, by `scipy.stats.pearsonr`.

    Returns:
        r in [-1, 1]; nan where a list is constant or there are fewer than three pairs.

    Raises:
        ValueError: no pairs, numbers that are not finite, lists of different length.
    """
    from scipy.stats import pearsonr

    pairs = _pairs(x, y)
    if pairs is None:
        return UNDEFINED
    result = pearsonr(*pairs)
    return Significance(float(result.statistic), float(result.pvalue))


def spearman(x: Values, y: Values) -> Significance:
    """Spearman's rho, ties by mean rank, by `scipy.stats.spearmanr`. Returns and raises as `pearson`."""
    from scipy.stats import spearmanr

    pairs = _pairs(x, y)
    if pairs is None:
        return UNDEFINED
    result = spearmanr(*pairs)
    return Significance(float(result.statistic), float(result.pvalue))


def kendall(x: Values, y: Values) -> Significance:
    """Kendall's tau-b, which allows for ties, by `scipy.stats.kendalltau`.

    Returns and raises as `pearson`.
    """
    from scipy.stats import kendalltau

    pairs = _pairs(x, y)
    if pairs is None:
        return UNDEFINED
    result = kendalltau(*pairs)
    return Significance(float(result.statistic), float(result.pvalue))


def welch_anova(*groups: Values) -> Significance:
    """Welch's test that several groups have one mean, whatever their variances.

    Welch, "On the comparison of several mean values" (Biometrika 38, 1951), by `scipy.stats.f_oneway`
    with `equal_var=False`.

    Returns:
        F and p; nan where a group has fewer than two values or does not vary, as its weight would be
        infinite.

    Raises:
        ValueError: fewer than two groups, an empty group, numbers that are not finite.
    """
    from scipy.stats import f_oneway

    if len(groups) < 2:
        raise ValueError(f"an analysis of variance compares at least two groups; got {len(groups)}")
    arrays = [numbers(group, f"group {at}") for at, group in enumerate(groups, 1)]
    if any(len(array) < 2 or array.min() == array.max() for array in arrays):
        return UNDEFINED
    result = f_oneway(*arrays, equal_var=False)
    return Significance(float(result.statistic), float(result.pvalue))
