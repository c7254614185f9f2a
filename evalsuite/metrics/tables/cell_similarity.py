"""How alike two cells are, by their values."""

from __future__ import annotations

from collections import Counter


def value_similarity(one: str, other: str) -> float:
    """How alike two values of cells are, from 0 to 1; see `cell_value`.

    Equal values count 1, and a value where none should be, or none where one should be, counts 0. A number is
    right or wrong, so cells of numbers count by those they share (Dice). Other texts count by twice their
    longest common subsequence over their length, of which the first half counts nothing: unrelated words have
    about that much in common.
    """
    if one == other:
        return 1.0
    if not one or not other:
        return 0.0
    if _is_numeric(one) and _is_numeric(other):
        first, second = one.split(), other.split()
        return 2 * (Counter(first) & Counter(second)).total() / (len(first) + len(second))
    import Levenshtein

    return max(0.0, 2 * Levenshtein.ratio(one, other, score_cutoff=0.5) - 1)


def _is_numeric(value: str) -> bool:
    return not any(char.isalpha() for char in value)
