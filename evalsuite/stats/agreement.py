"""Agreement of two raters beyond chance."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from evalsuite.stats.inputs import is_missing, probability, rated, same_length
from evalsuite.stats.intervals import share_interval
from evalsuite.stats.jackknife import jackknife_interval
from evalsuite.stats.sameness import kappa_floor

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
    weighted kappa" (Psychological Bulletin 72, 1969). It is 0 for perfect agreement, of which a few items are no
    proof; the lower bound is then that of `kappa_floor`.

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
    low = _floor_of_sameness(a, b, categories, weights, confidence) if value == 1.0 else value - reach
    return Kappa(value, _clip(low), _clip(value + reach), len(a))


def _floor_of_sameness(
    a: Labels, b: Labels, categories: Sequence[Hashable] | None, weights: Weights, confidence: float
) -> float:
    if weights == "nominal":
        return kappa_floor(a, b, confidence=confidence)
    ordered = list(dict.fromkeys(categories or ()))
    steps = len(ordered) - 1
    return kappa_floor(
        a,
        b,
        cuts=[frozenset(ordered[:end]) for end in range(1, len(ordered))],
        cut_weight=1 / steps if weights == "linear" else 1 / steps**2,
        confidence=confidence,
    )


def clustered_kappa(
    a: Labels, b: Labels, *, clusters: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Kappa:
    """Plain kappa with the jackknife's interval by cluster, widened where few items disagree.

    The jackknife's interval shrinks to nothing where the raters agree on every item. So it is widened to what the
    interval of the raw agreement comes to as kappa at the same agreement by chance, and for perfect agreement to
    `kappa_floor`.

    Args:
        a: the first rater's label for each item.
        b: the second rater's labels of the same items in the same order.
        clusters: what items share; None where each stands for itself.
        confidence: of the interval.

    Returns:
        With nan for bounds where there are fewer than three clusters.

    Raises:
        ValueError: as `cohen_kappa`, or a confidence outside of (0, 1).
    """
    value, groups = cohen_kappa(a, b), list(range(len(a))) if clusters is None else list(clusters)
    if math.isnan(value) or len(set(groups)) < 3:
        return Kappa(value, math.nan, math.nan, len(a))
    if value == 1.0:
        return Kappa(value, kappa_floor(a, b, clusters=groups, confidence=confidence), 1.0, len(a))
    low, high = _jackknifed(list(zip(a, b, strict=True)), groups, confidence)
    raw = [float(x == y) for x, y in zip(a, b, strict=True)]
    agreement, mean = share_interval(raw, clusters=groups, confidence=confidence), math.fsum(raw) / len(raw)
    # At a fixed agreement by chance, kappa is a straight line in the raw agreement.
    slope = (1 - value) / (1 - mean)
    return Kappa(
        value,
        _clip(min(low, value + slope * (agreement.low - mean))),
        _clip(max(high, value + slope * (agreement.high - mean))),
        len(a),
    )


def _jackknifed(
    pairs: Sequence[tuple[Hashable, Hashable]], clusters: Sequence[Hashable], confidence: float
) -> tuple[float, float]:
    groups: dict[Hashable, list[tuple[Hashable, Hashable]]] = {}
    for pair, cluster in zip(pairs, clusters, strict=True):
        groups.setdefault(cluster, []).append(pair)
    interval = jackknife_interval(
        list(groups.values()),
        lambda some: cohen_kappa([x for x, _ in some], [y for _, y in some]) if some else math.nan,
        bounds=(-1.0, 1.0),
        confidence=confidence,
    )
    # Where one group alone makes the statistic, nothing is known without it.
    return (-1.0, 1.0) if math.isnan(interval.low) else (interval.low, interval.high)


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
