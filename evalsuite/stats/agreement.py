"""Agreement beyond chance: kappa and Gwet's AC1 for two raters, Krippendorff's alpha for any number of raters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from evalsuite.stats.clustering import Replicates, compute_jackknife_interval, group_by_cluster, jackknife_interval
from evalsuite.stats.inputs import Array, Labels, check_probability, check_same_length, convert_labels, is_missing
from evalsuite.stats.intervals import share_interval

LabelPairs = Sequence[tuple[Hashable, Hashable]]  # For each item, the labels of both raters.


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's kappa with its interval.

    Attributes:
        value: kappa, at most 1; 0 means agreement by chance, and nan means that kappa is undefined.
        low: lower bound, at least -1; nan if kappa is undefined.
        high: upper bound, at most 1; nan if kappa is undefined.
        n: the number of items that both raters rated.
    """

    value: float
    low: float
    high: float
    n: int


def cohen_kappa(a: Labels, b: Labels) -> float:
    """Compute Cohen's kappa: the agreement of two raters beyond what their label frequencies give by chance.

    Cohen, "A coefficient of agreement for nominal scales" (Educational and Psychological Measurement 20, 1960).

    Args:
        a: the first rater's label for each item; any hashable values.
        b: the second rater's labels of the same items in the same order.

    Returns:
        A number up to 1 (full agreement), where 0 is agreement by chance. If both raters use only one and the same
        label, kappa is 0 / 0, and the result is nan.

    Raises:
        ValueError: the lists are empty, a label is missing (None or nan), or the lists differ in length.
    """
    return _compute_kappa(_count_label_pairs(a, b))


def _count_label_pairs(a: Labels, b: Labels) -> Counter[tuple[Hashable, Hashable]]:
    check_same_length(a, b, "the two raters' labels")
    return Counter(zip(convert_labels(a, "a"), convert_labels(b, "b"), strict=True))


def compute_kappa_replicates(a: Labels, b: Labels, clusters: Sequence[Hashable]) -> tuple[float, list[float]]:
    """Compute Cohen's kappa, and its values when one cluster after another is left out.

    Values are nan where kappa is undefined. Clusters come in the order of their first items.
    """
    counts = _count_label_pairs(a, b)
    # Counts less those of a cluster take the same time for any number of items.
    groups = group_by_cluster(list(zip(a, b, strict=True)), clusters)
    return _compute_kappa(counts), [_compute_kappa(counts - Counter(group)) for group in groups]


def _compute_kappa(counts: Counter[tuple[Hashable, Hashable]]) -> float:
    """Compute kappa from the number of items with each pair of labels."""
    of_first, of_second, n = Counter[Hashable](), Counter[Hashable](), counts.total()
    for (x, y), count in counts.items():
        of_first[x] += count
        of_second[y] += count
    chance = sum(of_first[label] * of_second[label] for label in of_first)
    if chance == n * n:
        return math.nan
    agreed = sum(count for (x, y), count in counts.items() if x == y)
    return (agreed * n - chance) / (n * n - chance)


def clustered_kappa(a: Labels, b: Labels, *, clusters: Labels | None = None, confidence: float = 0.95) -> Kappa:
    """Compute plain kappa with the jackknife's interval over clusters, widened if the raters disagree on few items.

    The jackknife's interval is too narrow if the raters disagree on few items. The interval is therefore extended to
    include a second one: that of the raw agreement, converted to kappa with a fixed agreement by chance. For perfect
    agreement, `kappa_lower_bound` computes the lower bound.

    Args:
        clusters: the cluster of each item; None if items are independent.

    Returns:
        Kappa with its interval, whose bounds are nan if there are fewer than three clusters.

    Raises:
        ValueError: an argument is invalid for `cohen_kappa`, or the confidence is outside of (0, 1).
    """
    groups = list(range(len(a))) if clusters is None else list(clusters)
    value, replicates = compute_kappa_replicates(a, b, groups)
    if math.isnan(value) or len(set(groups)) < 3:
        return Kappa(value, math.nan, math.nan, len(a))
    if value == 1.0:
        return Kappa(value, kappa_lower_bound(a, b, clusters=groups, confidence=confidence), 1.0, len(a))
    found = compute_jackknife_interval(value, replicates, confidence=confidence)
    # Without a jackknife interval (for example if all replicates are equal), start from kappa's whole range.
    low, high = (-1.0, 1.0) if math.isnan(found.low) else (found.low, found.high)
    raw = [float(x == y) for x, y in zip(a, b, strict=True)]
    agreement, mean = share_interval(raw, clusters=groups, confidence=confidence), math.fsum(raw) / len(raw)
    # For a fixed agreement by chance, kappa is a linear function of the raw agreement.
    slope = (1 - value) / (1 - mean)
    return Kappa(
        value,
        _clip_coefficient(min(low, value + slope * (agreement.low - mean))),
        _clip_coefficient(max(high, value + slope * (agreement.high - mean))),
        len(a),
    )


def gwet_ac1(a: Labels, b: Labels, *, categories: Sequence[Hashable] | None = None) -> float:
    """Compute Gwet's AC1: agreement beyond chance that stays meaningful if one label is rare.

    AC1 is (p_o - p_e) / (1 - p_e), where p_o is the share of items on which the raters agree, and p_e is the sum of s
    (1 - s) / (q - 1) over the q labels. For each label, s is the share of items with this label, averaged over both
    raters. Gwet, "Computing inter-rater reliability and its variance in the presence of high agreement" (British
    Journal of Mathematical and Statistical Psychology 61, 2008).

    Args:
        categories: all possible labels; None uses the labels found, or two labels if only one was found.

    Returns:
        A number up to 1 (full agreement), where 0 is agreement by chance.
    """
    check_same_length(a, b, "the two raters' labels")
    pairs = list(zip(convert_labels(a, "a"), convert_labels(b, "b"), strict=True))
    chance = _compute_ac1_chance_agreement(pairs, _count_categories(pairs, categories))
    return (sum(x == y for x, y in pairs) / len(pairs) - chance) / (1 - chance)


def ac1_interval(
    a: Labels,
    b: Labels,
    *,
    categories: Sequence[Hashable] | None = None,
    clusters: Labels | None = None,
    confidence: float = 0.95,
) -> Kappa:
    """Compute Gwet's AC1 with the jackknife's interval over clusters, widened if the raters disagree on few items.

    Each bound is the wider of two. One is from a jackknife of log(1 - AC1). The other is from the interval of the raw
    agreement, converted to AC1 with a fixed agreement by chance.

    Args:
        categories: see `gwet_ac1`.
        clusters: the cluster of each item; None if items are independent.

    Returns:
        AC1 with its interval, whose bounds are nan if there are fewer than three clusters.
    """
    value, groups = (gwet_ac1(a, b, categories=categories), list(range(len(a)) if clusters is None else clusters))
    if len(set(groups)) < 3:
        return Kappa(value, math.nan, math.nan, len(a))
    pairs = list(zip(a, b, strict=True))
    number = _count_categories(pairs, categories)
    # The logarithm of 1 - AC1 is nearly normal, while AC1 itself is skewed.
    by_cluster = group_by_cluster(pairs, groups)

    def compute_log_disagreement(some: LabelPairs) -> float:
        apart = sum(x != y for x, y in some)
        by_chance = 1 - _compute_ac1_chance_agreement(some, number)
        return math.log(apart / len(some) / by_chance) if apart else math.nan

    found = jackknife_interval(by_cluster, compute_log_disagreement, confidence=confidence)
    agreement = share_interval([float(x == y) for x, y in pairs], clusters=groups, confidence=confidence)
    room = 1 - _compute_ac1_chance_agreement(pairs, number)
    low, high = (1 - (1 - bound) / room for bound in (agreement.low, agreement.high))
    if not math.isnan(found.low):
        low, high = min(low, 1 - math.exp(found.high)), max(high, 1 - math.exp(found.low))
    return Kappa(value, _clip_coefficient(low), _clip_coefficient(high), len(a))


def _count_categories(pairs: LabelPairs, categories: Sequence[Hashable] | None) -> int:
    """Count the distinct labels, both in the pairs and among the given categories; return at least 2."""
    found = {label for pair in pairs for label in pair}
    return max(2, len(found if categories is None else found.union(categories)))


def _compute_ac1_chance_agreement(pairs: LabelPairs, category_count: int) -> float:
    counts, total = Counter(label for pair in pairs for label in pair), 2 * len(pairs)
    return math.fsum(count / total * (1 - count / total) for count in counts.values()) / (category_count - 1)


def _clip_coefficient(bound: float) -> float:
    """Clip a bound to [-1, 1]; nan stays nan."""
    return bound if math.isnan(bound) else min(1.0, max(-1.0, bound))


def kappa_lower_bound(a: Labels, b: Labels, *, clusters: Labels | None = None, confidence: float = 0.95) -> float:
    """Compute a lower bound of Cohen's kappa that is exact for independent items, even if few items disagree.

    The value 1 - kappa is the observed disagreement divided by the disagreement by chance. Kappa is at least 1 - u / l.
    Here u is an exact upper bound of the observed disagreement, and l a lower bound of that by chance.

    The disagreement by chance is at least 2 s (1 - s), where s is the share of the most frequent label, averaged over
    both raters. An item to which both give that label counts fully in s, and an item to which one of them does counts
    half. Exact lower bounds are used for the share of items to which both raters give the label, and for the share of
    items to which neither rater gives it.

    One half of the error probability is spent on the observed disagreement; the other half is divided among both shares
    (Bonferroni). Rare labels lower the result, because their shares have low lower bounds.
    """
    groups: list[Hashable] = list(range(len(a)) if clusters is None else clusters)
    error = (1 - check_probability(confidence, "confidence")) / 2
    pairs = list(zip(a, b, strict=True))
    label = Counter([*a, *b]).most_common(1)[0][0]
    most = _compute_share_bound([x != y for x, y in pairs], groups, error / 2, upper=True)
    shares = [
        _compute_share_bound([(x == label) + (y == label) == number for x, y in pairs], groups, error / 4, upper=False)
        + most / 2
        for number in (2, 0)
    ]
    chance = min(2 * share * (1 - share) for share in shares)
    return max(-1.0, 1 - most / chance) if chance > 0 else -1.0


def _compute_share_bound(outcomes: list[bool], clusters: list[Hashable], error: float, *, upper: bool) -> float:
    """Compute one bound of a share; the bound is wrong with a probability of at most `error`."""
    interval = share_interval([float(each) for each in outcomes], clusters=clusters, confidence=1 - 2 * error)
    return interval.high if upper else interval.low


Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: Sequence[Labels], *, level: Level) -> float:
    """Compute Krippendorff's alpha: one minus the ratio of observed to expected disagreement.

    Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), using the coincidence matrix; items with fewer
    than two ratings do not count.

    Args:
        ratings: one list per rater, with the items in the same order in all lists; None or nan marks an item that the
            rater did not rate.
        level: `nominal` for labels, `ordinal` for ranks, `interval` for numbers with meaningful distances.

    Returns:
        A number up to 1 (full agreement), where 0 is agreement by chance; nan if all ratings are equal.

    Raises:
        ValueError: there are fewer than two raters, the lists differ in length, or no item has two ratings; or the
            level is `ordinal` or `interval` and a rating is not a number, or at `interval` infinite.
    """
    lengths = {len(rater) for rater in ratings}
    if len(ratings) < 2 or len(lengths) != 1:
        raise ValueError(
            f"agreement needs at least two raters with one entry per item; got lengths {sorted(lengths)} "
            f"of {len(ratings)} raters"
        )
    values = list(dict.fromkeys(value for rater in ratings for value in rater if not is_missing(value)))
    if level != "nominal" and not all(isinstance(value, Real) for value in values):
        raise ValueError(f"{level} ratings must be numbers; found {values[:5]}")
    if level == "interval" and (
        infinite := [value for value in values if isinstance(value, Real) and math.isinf(value)]
    ):
        raise ValueError(f"interval ratings must be finite; found {infinite[0]}")
    items = [[value for value in item if not is_missing(value)] for item in zip(*ratings, strict=True)]
    if all(len(item) < 2 for item in items):
        raise ValueError("no item has two ratings: no agreement can be measured")
    return compute_alpha_replicates(items, [0] * len(items), level=level)[0]


def compute_alpha_replicates(items: Sequence[Sequence[Hashable]], clusters: Labels, *, level: Level) -> Replicates:
    """Compute alpha of all items, and alpha without each cluster's items, in order of the clusters' first appearance.

    Each entry of `items` is the list of one item's ratings. Alpha depends only on sums over items, so the sums without
    a cluster are computed by subtraction. For the level `ordinal`, the values without a cluster are approximate,
    because distances depend on all items.
    """
    import numpy as np

    counted = [(ratings, cluster) for ratings, cluster in zip(items, clusters, strict=True) if len(ratings) > 1]
    distinct = dict.fromkeys(value for ratings, _ in counted for value in ratings)
    values = list(distinct) if level == "nominal" else sorted(distinct)  # type: ignore[type-var]  # these are numbers
    column = {value: at for at, value in enumerate(values)}
    number = {cluster: at for at, cluster in enumerate(dict.fromkeys(clusters))}
    observed, totals = np.zeros(len(number)), np.zeros((len(number), len(values)))
    for ratings, cluster in counted:
        np.add.at(totals[number[cluster]], [column[value] for value in ratings], 1.0)
    # An ordinal difference is the number of ratings between two values, plus half of the ratings equal to either.
    counts = totals.sum(axis=0)
    scale = np.array(values, dtype=float) if level == "interval" else np.cumsum(counts) - counts / 2
    distances = 1 - np.eye(len(values)) if level == "nominal" else (scale[:, None] - scale[None, :]) ** 2
    for ratings, cluster in counted:
        at = [column[value] for value in ratings]
        # An item's observed disagreement is the sum of its pairs' squared differences, divided by its number of ratings
        # minus 1.
        observed[number[cluster]] += distances[np.ix_(at, at)].sum() / (len(at) - 1)
    without = _compute_alphas(observed.sum() - observed, counts - totals, distances)
    return float(_compute_alphas(observed.sum(), counts[None], distances)[0]), without.tolist()


def _compute_alphas(observed: Array | float, totals: Array, distances: Array) -> Array:
    """Compute Krippendorff's alpha for each row of totals; nan if the expected disagreement is 0."""
    import numpy as np

    expected = ((totals @ distances) * totals).sum(axis=1) / np.maximum(totals.sum(axis=1) - 1, 1)
    # Do not compare with 0, because subtracting a cluster's sums leaves rounding errors.
    undefined = expected <= 1e-9 * np.max(distances, initial=0.0)
    return np.where(undefined, math.nan, 1 - observed / np.where(undefined, 1.0, expected))
