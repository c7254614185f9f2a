"""Agreement of two raters beyond chance."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from evalsuite.stats.inputs import is_missing, probability, rated, same_length

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from evalsuite.stats.inputs import Array, Labels

Weights = Literal["nominal", "linear", "quadratic"]


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's kappa with its interval.

    Attributes:
        value: at most 1; 0 is chance; nan where it is undefined.
        low: lower bound, not below -1; nan where kappa is.
        high: upper bound, not above 1; nan where kappa is.
        n: items that both rated.
    """

    value: float
    low: float
    high: float
    n: int


def cohen_kappa(a: Labels, b: Labels) -> float:
    """Cohen's kappa: the agreement of two raters beyond what their label frequencies give by chance.

    Cohen, "A coefficient of agreement for nominal scales" (Educational and Psychological Measurement 20,
    1960).

    Args:
        a: the first rater's label for each item; any hashable values.
        b: the second rater's labels of the same items in the same order.

    Returns:
        At most 1; 0 is chance. nan where both raters use one and the same single label: chance alone
        explains it all, and kappa is 0 / 0.

    Raises:
        ValueError: no items, a missing label (None or nan), or lists of different length.
    """
    same_length(a, b, "the two raters' labels")
    first, second = rated(a, "a"), rated(b, "b")
    of_first, of_second, n = Counter(first), Counter(second), len(first)
    chance = sum(of_first[label] * of_second[label] for label in of_first)
    if chance == n * n:
        return math.nan
    agreed = sum(x == y for x, y in zip(first, second, strict=True))
    return (agreed * n - chance) / (n * n - chance)


def kappa_interval(
    a: Labels,
    b: Labels,
    *,
    categories: Sequence[Hashable] | None = None,
    weights: Weights = "nominal",
    confidence: float = 0.95,
) -> Kappa:
    """Plain or weighted kappa with its normal interval.

    The standard error is that of Fleiss, Cohen and Everitt, "Large sample standard errors of kappa and
    weighted kappa" (Psychological Bulletin 72, 1969). It is 0 for perfect agreement, whose interval is
    therefore one point.

    Args:
        a: the first rater's label for each item.
        b: the second rater's labels of the same items in the same order.
        categories: all possible labels in their order; weights go by position in it. None: the labels found,
            which will do for `nominal` only.
        weights: disagreements count the same (`nominal`), by their distance (`linear`), or by its square
            (`quadratic`).
        confidence: of the interval.

    Raises:
        ValueError: as `cohen_kappa`; weights without categories, a label outside of them, or a
            confidence outside of (0, 1).
    """
    same_length(a, b, "the two raters' labels")
    z = NormalDist().inv_cdf((1 + probability(confidence, "confidence")) / 2)
    table = _table(rated(a, "a"), rated(b, "b"), categories, weights)
    value, error = _kappa(table / table.sum(), _credit(len(table), weights))
    reach = z * error / math.sqrt(len(a))
    return Kappa(value, _clip(value - reach), _clip(value + reach), len(a))


def _clip(bound: float) -> float:
    return bound if math.isnan(bound) else min(1.0, max(-1.0, bound))


def _table(
    first: list[Hashable], second: list[Hashable], categories: Sequence[Hashable] | None, weights: Weights
) -> Array:
    import numpy as np

    if categories is None and weights != "nominal":
        raise ValueError(
            f"{weights} weights need the categories in their order, as in categories=range(1, 11)"
        )
    labels = dict.fromkeys(first + second) if categories is None else dict.fromkeys(categories)
    at = {label: number for number, label in enumerate(labels)}
    stranger = next((label for label in first + second if label not in at), None)
    if stranger is not None:
        raise ValueError(f"label {stranger!r} is none of the categories {list(labels)[:10]}")
    table = np.zeros((len(at), len(at)))
    for x, y in zip(first, second, strict=True):
        table[at[x], at[y]] += 1
    return table


def _credit(size: int, weights: Weights) -> Array:
    """The agreement that each pair of categories counts for: 1 for the same, down to 0 for the farthest."""
    import numpy as np

    if weights == "nominal" or size == 1:
        return np.eye(size)
    distance = abs(np.subtract.outer(np.arange(size), np.arange(size))) / (size - 1)
    return np.asarray(1 - distance ** (2 if weights == "quadratic" else 1))


def _kappa(shares: Array, credit: Array) -> tuple[float, float]:
    """Kappa and its standard error times the root of the number of items."""
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    chance = float(rows @ credit @ columns)
    if math.isclose(chance, 1.0, rel_tol=1e-12):
        return math.nan, math.nan
    kappa = (float((shares * credit).sum()) - chance) / (1 - chance)
    habits = (credit @ columns)[:, None] + (rows @ credit)[None, :]
    spread = float((shares * (credit - habits * (1 - kappa)) ** 2).sum())
    variance = spread - (kappa - chance * (1 - kappa)) ** 2
    return kappa, math.sqrt(max(variance, 0.0)) / (1 - chance)


def pairwise_kappas(
    raters: Mapping[str, Labels],
    *,
    categories: Sequence[Hashable] | None = None,
    weights: Weights = "nominal",
    confidence: float = 0.95,
) -> dict[tuple[str, str], Kappa]:
    """Kappa of each pair of raters over the items that both rated.

    Args:
        raters: one list a rater, one entry an item, in the same order for all; None or nan where the rater
            did not rate it.
        categories: as `kappa_interval`.
        weights: as `kappa_interval`.
        confidence: as `kappa_interval`.

    Returns:
        By the two names, in the order given. Pairs without a common item have nan and n 0.

    Raises:
        ValueError: as `kappa_interval`, but for missing labels.
    """
    kappas = {}
    for (one, a), (other, b) in combinations(raters.items(), 2):
        same_length(a, b, f"the labels of {one} and {other}")
        both = [(x, y) for x, y in zip(a, b, strict=True) if not (is_missing(x) or is_missing(y))]
        kappas[one, other] = (
            kappa_interval(
                [x for x, _ in both],
                [y for _, y in both],
                categories=categories,
                weights=weights,
                confidence=confidence,
            )
            if both
            else Kappa(math.nan, math.nan, math.nan, 0)
        )
    return kappas
