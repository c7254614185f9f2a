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


def alpha_without_each_cluster(
    things: Sequence[Sequence[Hashable]],
    clusters: Sequence[Hashable],
    *,
    level: Literal["nominal", "interval"],
) -> tuple[float, list[float]]:
    """Alpha of all things, and of all but each cluster's, in the order in which clusters appear: for a jackknife.

    Both disagreements are sums over things, so that a cluster is left out by a subtraction.

    Args:
        things: the ratings of each thing; one with fewer than two does not count.
        clusters: what each thing belongs to.
        level: as in `krippendorff_alpha`; ordinal distances would change with what is left out.

    Returns:
        nan wherever `krippendorff_alpha` has none.
    """
    import numpy as np

    distinct = {value: None for ratings in things for value in ratings}
    column = {value: at for at, value in enumerate(distinct)}
    number = {cluster: at for at, cluster in enumerate(dict.fromkeys(clusters))}
    distances = _distances(level, list(distinct), np.zeros(len(distinct)))
    observed, totals = np.zeros(len(number)), np.zeros((len(number), len(distinct)))
    for ratings, cluster in zip(things, clusters, strict=True):
        if len(ratings) > 1:
            at = [column[value] for value in ratings]
            observed[number[cluster]] += distances[np.ix_(at, at)].sum() / (len(at) - 1)
            np.add.at(totals[number[cluster]], at, 1.0)
    without = _alphas(observed.sum() - observed, totals.sum(axis=0) - totals, distances)
    return float(_alphas(observed.sum(), totals.sum(axis=0)[None], distances)[0]), without.tolist()


def _alphas(observed: Array | float, totals: Array, distances: Array) -> Array:
    import numpy as np

    expected = ((totals @ distances) * totals).sum(axis=1) / np.maximum(totals.sum(axis=1) - 1, 1)
    # Sums that are left after a subtraction may miss zero by a rounding error.
    undefined = expected < 1e-9
    return np.where(undefined, math.nan, 1 - observed / np.where(undefined, 1.0, expected))


def _counts(ratings: Sequence[Labels]) -> tuple[Array, list[Hashable]]:
    """How often each item got each value, and the values in their order."""
    import numpy as np

    lengths = {len(rater) for rater in ratings}
    if len(ratings) < 2 or len(lengths) != 1:
        raise ValueError(
            f"agreement needs at least two raters with one entry an item; got lengths {sorted(lengths)} "
            f"of {len(ratings)} raters"
        )
    rated = [[(at, value) for at, value in enumerate(rater) if not is_missing(value)] for rater in ratings]
    distinct = {value: None for rater in rated for _, value in rater}
    values = sorted(distinct) if _are_numbers(distinct) else list(distinct)
    column = {value: number for number, value in enumerate(values)}
    counts = np.zeros((lengths.pop(), len(values)))
    for rater in rated:
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
