"""Several tests at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.stats.inputs import numbers, within

if TYPE_CHECKING:
    from evalsuite.stats.inputs import Array, Values

DRAWS = 4999
"""Random sign changes, besides the signs as they are."""

CELLS_AT_ONCE = 2_000_000
"""Signs held at a time."""


def holm(pvalues: Values) -> list[float]:
    """Holm's adjusted p-values, in the order given: reject where one is at most the level.

    The chance that any true hypothesis is rejected is then at most the level, however the tests depend on
    each other. Holm, "A simple sequentially rejective multiple test procedure" (Scandinavian Journal of
    Statistics 6, 1979).

    Raises:
        ValueError: no p-values, or one is not in [0, 1].
    """
    array = within(numbers(pvalues, "pvalues"), 0, 1, "pvalues")
    adjusted, worst = [0.0] * len(array), 0.0
    for done, at in enumerate(array.argsort(kind="stable")):
        worst = max(worst, min(1.0, (len(array) - done) * float(array[at])))
        adjusted[at] = worst
    return adjusted


def joint(pvalues: Values, contributions: Array, *, sides: int, seed: int = 0) -> list[float]:
    """Adjusted p-values of tests on the same clusters, by the distribution of the smallest of them.

    Westfall and Young, "Resampling-Based Multiple Testing" (1993), the step-down method by the smallest p (for
    statistics of one kind, the greatest T): the signs of each cluster's differences are changed at
    random, for all metrics together, and a p-value is adjusted to the share of draws in which any metric that
    is left has one as small. What metrics have in common is thus counted once: eight copies of a metric get the
    p-value of one. Independent metrics get what Holm's method gives them.

    Args:
        pvalues: of the tests, each valid by itself. No adjusted one is smaller.
        contributions: one row per cluster, one column per test: the cluster's part of the difference that is
            tested, with mean 0 under the hypothesis (0 where the cluster does not count).
        sides: 2 where both directions count, 1 where only large sums do.
        seed: of the draws.

    Raises:
        ValueError: no p-values, one is not in [0, 1], or there is not a column for each.
    """
    import numpy as np

    array = within(numbers(pvalues, "pvalues"), 0, 1, "pvalues")
    if contributions.ndim != 2 or contributions.shape[1] != len(array):
        raise ValueError(f"{len(array)} tests need as many columns; got an array of {contributions.shape}")
    drawn = _drawn_pvalues(contributions, sides, np.random.default_rng(seed))
    adjusted, worst = [0.0] * len(array), 0.0
    order = array.argsort(kind="stable")
    for done, at in enumerate(order):
        smallest = drawn[:, order[done:]].min(axis=1)
        share = (1 + int(np.count_nonzero(smallest <= array[at] * (1 + 1e-9)))) / (len(drawn) + 1)
        # One test that is left has a p-value of its own, and needs no draws.
        worst = max(worst, float(array[at]), share if done < len(array) - 1 else 0.0)
        adjusted[at] = worst
    return adjusted


def _drawn_pvalues(contributions: Array, sides: int, rng: Any) -> Array:
    """For every draw of signs and every test, the normal p-value of the signed sum over its standard error."""
    import numpy as np
    from scipy.special import ndtr

    scale = np.sqrt((contributions**2).sum(axis=0))
    units = contributions / np.where(scale > 0, scale, 1.0)
    size = max(1, CELLS_AT_ONCE // len(units))
    parts = [
        (rng.integers(0, 2, (min(size, DRAWS - start), len(units)), dtype=np.int8) * 2.0 - 1.0) @ units
        for start in range(0, DRAWS, size)
    ]
    sums = np.concatenate(parts)
    return np.asarray(2 * ndtr(-abs(sums)) if sides == 2 else ndtr(-sums))
