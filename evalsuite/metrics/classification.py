"""Compute metrics over all cases at once: F1 of labels, calibration, ranking."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence


def compute_label_f1(targets: Sequence[str], labels: Sequence[str]) -> dict[str, float]:
    """Compute the F1 of each label that occurs, sorted by label, each in [0, 1].

    An empty label means that an answer has no label. Such an answer counts as a miss of its target, and the empty label
    gets no F1.
    """
    right = Counter(target for target, label in zip(targets, labels, strict=True) if target == label)
    wanted, named = Counter(targets), Counter(labels)
    names = sorted((wanted.keys() | named.keys()) - {""})
    return {name: 2 * right[name] / (wanted[name] + named[name]) for name in names}


def compute_macro_f1(targets: Sequence[str], labels: Sequence[str]) -> float:
    """Return the unweighted mean of the labels' F1, in [0, 1]."""
    scores = compute_label_f1(targets, labels)
    if not scores:
        raise ValueError("macro F1 of no labels is not defined")
    return math.fsum(scores.values()) / len(scores)


def compute_micro_f1(targets: Sequence[str], labels: Sequence[str]) -> float:
    """Compute micro-averaged F1, in [0, 1]; if every answer names one label, micro F1 equals the accuracy."""
    named = sum(label != "" for label in labels)
    if not targets:
        raise ValueError("micro F1 of no cases is not defined")
    right = sum(target == label for target, label in zip(targets, labels, strict=True))
    return 2 * right / (len(targets) + named)


def compute_area_under_roc(scores: Sequence[float], positives: Sequence[bool]) -> float:
    """Return the probability that a positive case scores higher than a negative case; a tie counts half.

    Source: Hanley and McNeil, Radiology 143 (1982), computed by the Mann-Whitney statistic.
    """
    above = [score for score, positive in zip(scores, positives, strict=True) if positive]
    below = sorted(score for score, positive in zip(scores, positives, strict=True) if not positive)
    if not above or not below:
        raise ValueError("the area under the ROC curve needs a positive and a negative case")
    wins = math.fsum((bisect_left(below, score) + bisect_right(below, score)) / 2 for score in above)
    return wins / (len(above) * len(below))


def compute_reliability_bins(
    confidences: Sequence[float], right: Sequence[float], bins: int = 10
) -> list[tuple[float, float, int]]:
    """Divide [0, 1] into equal bins; return mean confidence, share of right cases and their number per nonempty bin."""
    members: dict[int, list[tuple[float, float]]] = {}
    for confidence, was_right in zip(confidences, right, strict=True):
        if not 0 <= confidence <= 1:
            raise ValueError(f"a confidence of {confidence} is not in [0, 1]")
        members.setdefault(min(int(confidence * bins), bins - 1), []).append((confidence, was_right))
    columns = [(list(zip(*pairs, strict=True)), len(pairs)) for _, pairs in sorted(members.items())]
    return [(math.fsum(stated) / n, math.fsum(was_right) / n, n) for (stated, was_right), n in columns]


def compute_calibration_error(confidences: Sequence[float], right: Sequence[float], bins: int = 10) -> float:
    """Average the distance between confidence and accuracy over bins of equal width, weighted by cases; 0 is best.

    Source: Naeini, Cooper and Hauskrecht, AAAI 2015; Guo et al., arXiv 1706.04599, equation 3.
    """
    rows = compute_reliability_bins(confidences, right, bins)
    if not rows:
        raise ValueError("the calibration error of no cases is not defined")
    return math.fsum(n * abs(confidence - share) for confidence, share, n in rows) / len(confidences)
