"""Compute the two similarities of sequences (of cells or tags) on which every part of the H-Score is based."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def compute_levenshtein_similarity(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Return one minus the edit distance divided by twice the reference's length; 0.0 if the reference is empty.

    Source: the scripts released with Struc-Bench (arXiv 2309.08963). The measure is not symmetrical: an empty
    prediction scores 0.5, and a prediction more than twice as long as the reference may score below 0.
    """
    import Levenshtein

    if not reference:
        return 0.0
    # `score_hint` is a guess of the distance; it can save time and never changes the result.
    distance = Levenshtein.distance(prediction, reference, score_hint=len(reference) // 32)
    return 1.0 - distance / (2 * len(reference))


def compute_matching_ratio(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Return difflib's ratio: twice the number of matched elements over both lengths' sum; 1.0 if both are empty."""
    if list(prediction) == list(reference):
        return 1.0  # For equal sequences, difflib would compute the same more slowly.
    return SequenceMatcher(None, prediction, reference).ratio()
