"""The two similarities of sequences of cells or tags that every part of the H-Score is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.metrics.tables.matching import matching_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["levenshtein_similarity", "matching_ratio"]


def levenshtein_similarity(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """One minus the edit distance in units of twice the reference's length.

    Source: the scripts released with Struc-Bench (arXiv 2309.08963). Not symmetrical: an empty prediction
    scores 0.5, and one more than twice as long as the reference may score below 0.

    Returns:
        At most 1.0; 0.0 where the reference is empty.
    """
    import Levenshtein

    if not reference:
        return 0.0
    # The hint changes the time, not the result: what is compared here is mostly alike.
    distance = Levenshtein.distance(prediction, reference, score_hint=len(reference) // 32)
    return 1.0 - distance / (2 * len(reference))
