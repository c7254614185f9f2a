"""Agreement of any number of raters, some of whom may have rated only some items."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Literal

from evalsuite.stats.inputs import is_missing

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from evalsuite.stats.inputs import Array, Labels

Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: Sequence[Labels], *, level: Level) -> float:
    """Krippendorff's alpha: one minus observed over expected disagreement.

    Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), by the coincidence matrix; items
    with fewer than two ratings do not count.

    Args:
        ratings: one list a rater, one entry an item, in the same order for all; None or nan where the rater
            did not rate it.
        level: `nominal` for labels, `ordinal` for ranks, `interval` for numbers whose distances mean
            something.

    Returns:
        At most 1; 0 is chance. nan where all ratings are one and the same value: chance explains it all.

    Raises:
        ValueError: fewer than two raters, lists of different length, no item with two ratings, or labels
            where the level needs numbers.
    """
    counts, values = _counts(ratings)
    if level != "nominal" and not _are_numbers(values):
        raise ValueError(f"{level} ratings must be numbers; found {values[:5]}")
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        raise ValueError("no item has two ratings: there is no agreement to measure")
    coincidences = _coincidences(counts)
    totals = coincidences.sum(axis=0)
    distances = _distances(level, values, totals)
    expected = float(totals @ distances @ totals) / (totals.sum() - 1)
    return 1 - float((coincidences * distances).sum()) / expected if expected > 0 else math.nan


def _counts(ratings: Sequence[Labels]) -> tuple[Array, list[Hashable]]:
    """How often each item got each value, and the values in their order."""
    import numpy as np

    lengths = {len(rater) for rater in ratings}
    if len(ratings) < 2 or len(lengths) != 1:
        raise ValueError(
            f"agreement needs at least two raters with one entry an item; got lengths {sorted(lengths)} "
            f"of {len(ratings)} raters"
        )
    given = [[(at, value) for at, value in enumerate(rater) if not is_missing(value)] for rater in ratings]
    distinct = {value: None for rater in given for _, value in rater}
    values = sorted(distinct) if _are_numbers(distinct) else list(distinct)
    column = {value: number for number, value in enumerate(values)}
    counts = np.zeros((lengths.pop(), len(values)))
    for rater in given:
        for at, value in rater:
            counts[at, column[value]] += 1
    return counts, values


def _are_numbers(values: Iterable[Hashable]) -> bool:
    return all(isinstance(value, Real) for value in values)


def _coincidences(counts: Array) -> Array:
    """Ordered pairs of values within an item, each item weighted by 1 / (its ratings - 1)."""
    import numpy as np

    weights = 1 / (counts.sum(axis=1) - 1)
    return np.asarray(
        (counts * weights[:, None]).T @ counts - np.diag((counts * weights[:, None]).sum(axis=0))
    )


def _distances(level: Level, values: Sequence[Hashable], totals: Array) -> Array:
    """Squared differences between values."""
    import numpy as np

    if level == "nominal":
        return np.asarray(1 - np.eye(len(values)))
    # The ordinal difference is the number of ratings between the middles of two values.
    scale = np.array(values, dtype=float) if level == "interval" else np.cumsum(totals) - totals / 2
    return np.asarray((scale[:, None] - scale[None, :]) ** 2)
