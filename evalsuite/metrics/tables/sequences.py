"""Compute the two similarities of sequences (of cells or tags) on which every part of the H-Score is based."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray


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


LONGEST = 640_000
MOST_PAIRS = 2_000
"""Product of the two lengths, and number of equal pairs, up to which difflib takes a few hundredths of a second."""


def compute_matching_ratio(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Return `SequenceMatcher(None, ...).ratio()`: twice the number of matched elements over both lengths' sum.

    The result equals difflib's to the last bit, in less time for long sequences. Two empty sequences give 1.0.
    """
    if list(prediction) == list(reference):
        return 1.0
    # difflib never starts a match at an element that occurs in the reference more often than this limit.
    frequency_limit = len(reference) // 100 + 1 if len(reference) >= 200 else len(reference)
    if _is_fast_with_difflib(prediction, reference, frequency_limit):
        return SequenceMatcher(None, prediction, reference).ratio()
    matched = BlockMatcher(prediction, reference, frequency_limit).count_matched_elements()
    return 2.0 * matched / (len(prediction) + len(reference))


def _is_fast_with_difflib(a: Sequence[str], b: Sequence[str], frequency_limit: int) -> bool:
    if len(a) * len(b) <= MOST_PAIRS:
        return True
    if len(a) * len(b) > LONGEST:
        return False
    in_b = Counter(b)
    return sum(in_b[element] for element in a if in_b[element] <= frequency_limit) <= MOST_PAIRS


class BlockMatcher:
    """Computes how many elements difflib's matching blocks of two sequences contain."""

    def __init__(self, a: Sequence[str], b: Sequence[str], frequency_limit: int) -> None:
        self.a, self.b = a, b
        self._substrings = SubstringNumbers(*_number_elements(a, b, frequency_limit))

    def count_matched_elements(self) -> int:
        matched = 0
        unmatched: list[Rectangle] = [(0, len(self.a), 0, len(self.b))]
        while unmatched:
            taken, rest = self._match_longest_runs(unmatched.pop())
            matched += taken
            unmatched += rest
        return matched

    def _match_longest_runs(self, rectangle: Rectangle) -> tuple[int, list[Rectangle]]:
        """Match runs of the greatest length in both sequences, from left to right; return the unmatched ranges."""
        length, candidates = self._substrings.find_longest_runs(rectangle)
        if not length:
            return self._count_common_start(rectangle), []
        matched, rest = 0, [rectangle]
        for a_start, b_starts in candidates:
            right = rest[-1] if rest else (0, 0, 0, 0)
            nearest = bisect_left(b_starts, right[2])
            if right[0] <= a_start < right[1] and nearest < len(b_starts):
                taken, around = self._extend_run(rest.pop(), length, a_start, b_starts[nearest])
                matched += taken
                rest += around
        return matched, rest

    def _extend_run(self, rectangle: Rectangle, length: int, a_start: int, b_start: int) -> tuple[int, list[Rectangle]]:
        """Extend a run by adjacent equal elements, even frequent ones; return its length and the unmatched ranges."""
        a_low, a_high, b_low, b_high = rectangle
        before = self._count_common_end((a_low, a_start, b_low, b_start))
        after = self._count_common_start((a_start + length, a_high, b_start + length, b_high))
        left = (a_low, a_start - before, b_low, b_start - before)
        right = (a_start + length + after, a_high, b_start + length + after, b_high)
        rest = [part for part in (left, right) if part[0] < part[1] and part[2] < part[3]]
        return before + length + after, rest

    def _count_common_start(self, rectangle: Rectangle) -> int:
        a_low, a_high, b_low, b_high = rectangle
        return _count_equal_start(
            min(a_high - a_low, b_high - b_low),
            lambda start, end: self.a[a_low + start : a_low + end] == self.b[b_low + start : b_low + end],
        )

    def _count_common_end(self, rectangle: Rectangle) -> int:
        a_low, a_high, b_low, b_high = rectangle
        return _count_equal_start(
            min(a_high - a_low, b_high - b_low),
            lambda start, end: self.a[a_high - end : a_high - start] == self.b[b_high - end : b_high - start],
        )


def _number_elements(a: Sequence[str], b: Sequence[str], frequency_limit: int) -> list[NDArray[np.int64]]:
    """Replace the elements by numbers; an element that `b` lacks or contains too often becomes `NOT_INDEXED`."""
    import numpy as np

    numbers = {element: number for number, element in enumerate(dict.fromkeys((*a, *b)))}
    codes = [np.fromiter(map(numbers.__getitem__, sequence), np.int64, len(sequence)) for sequence in (a, b)]
    counts = np.bincount(codes[1], minlength=max(int(np.max(code, initial=0)) for code in codes) + 1)
    counts[counts > frequency_limit] = 0
    for code in codes:
        code[counts[code] == 0] = NOT_INDEXED
    return codes


def _count_equal_start(limit: int, equal: Callable[[int, int], bool]) -> int:
    """Count equal elements from the start; for speed, compare slices whose length first doubles and then halves."""
    size, step = 0, 1
    while step:
        end = min(size + step, limit)
        if equal(size, end):
            size, step = end, step * 2 if end < limit else 0
        else:
            step, limit = step // 2, end - 1
    return size


Rectangle = tuple[int, int, int, int]  # Start and end of a range in the first sequence, then in the second.
NOT_INDEXED = -1


class SubstringNumbers:
    """Gives numbers to all substrings whose length is a power of two; equal substrings have equal numbers.

    Source: Karp, Miller and Rosenberg, Rapid identification of repeated patterns (1972). An element with the number
    `NOT_INDEXED` equals no other element.
    """

    def __init__(self, codes_a: NDArray[np.int64], codes_b: NDArray[np.int64]) -> None:
        import numpy as np

        self.start_b = len(codes_a)
        both = np.concatenate((codes_a, codes_b))
        apart = both == NOT_INDEXED
        both[apart] = len(both) + np.arange(apart.sum())
        self.numbers: list[NDArray[np.int64]] = [both]

    def find_longest_runs(self, rectangle: Rectangle) -> tuple[int, Iterator[tuple[int, Sequence[int]]]]:
        """Find the longest runs that both sequences share within index ranges; return their length and their starts.

        For each start in the first sequence, all starts of the same run in the second sequence are returned, in
        ascending order. Without equal items, the length is 0.
        """
        import numpy as np

        a_low, a_high, b_low, b_high = rectangle
        low, high = 0, min(a_high - a_low, b_high - b_low) + 1
        while high - low > 1:
            # Runs are usually short, so doubling reaches their length fastest.
            middle = min(2 * low or 1, (low + high) // 2)
            is_shared = np.isin(*self._number_both_ranges(rectangle, middle)).any()
            low, high = (middle, high) if is_shared else (low, middle)
        return low, self._list_run_starts(rectangle, low)

    def _list_run_starts(self, rectangle: Rectangle, length: int) -> Iterator[tuple[int, Sequence[int]]]:
        import numpy as np

        numbers_a, numbers_b = self._number_both_ranges(rectangle, length)
        starts: dict[int, list[int]] = {}
        for place in np.flatnonzero(np.isin(numbers_b, numbers_a)).tolist():
            starts.setdefault(int(numbers_b[place]), []).append(rectangle[2] + place)
        for place in np.flatnonzero(np.isin(numbers_a, numbers_b)).tolist():
            yield rectangle[0] + place, starts[int(numbers_a[place])]

    def _number_both_ranges(self, rectangle: Rectangle, length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number the substrings of a length within both sequences' ranges."""
        a_low, a_high, b_low, b_high = rectangle
        return (
            self._number_substrings(a_low, a_high - length + 1, length),
            self._number_substrings(self.start_b + b_low, self.start_b + b_high - length + 1, length),
        )

    def _number_substrings(self, start: int, end: int, length: int) -> NDArray[np.int64]:
        """Number the substrings that start in a range; two overlapping shorter substrings determine each number."""
        power = length.bit_length() - 1
        numbers, shift = self._number_substrings_of_power(power), length - (1 << power)
        return numbers[start:end] * len(self.numbers[0]) * 2 + numbers[start + shift : end + shift]

    def _number_substrings_of_power(self, power: int) -> NDArray[np.int64]:
        """Number all substrings of the length 2 ** power."""
        import numpy as np

        while len(self.numbers) <= power:
            shorter, half = self.numbers[-1], 1 << (len(self.numbers) - 1)
            pairs = shorter[:-half] * len(self.numbers[0]) * 2 + shorter[half:]
            self.numbers.append(np.unique(pairs, return_inverse=True)[1].astype(np.int64))
        return self.numbers[power]
