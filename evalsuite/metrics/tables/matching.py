"""The ratio of `difflib.SequenceMatcher`, exactly, without its cubic worst case.

Short sequences with few equal elements are compared by difflib. It looks for the longest common run of a rectangle
(a range of each sequence), the leftmost among equals, continues left and right of it, and starts over each time. So
300 cells of two values that alternate take a second. Beyond a bound, all runs of the greatest length are taken in
one sweep instead: the part left of the leftmost run can hold no run as long, so the next one is on its right. The
greatest length is found by the names of substrings (Karp, Miller and Rosenberg 1972).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.substrings import NOT_INDEXED, Substrings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evalsuite.metrics.tables.substrings import Rectangle

LONGEST = 640_000
MOST_PAIRS = 2_000
"""Two lengths, multiplied, and pairs of equal elements up to which difflib takes a few hundredths of a second."""


def matching_ratio(prediction: Sequence[str], reference: Sequence[str], *, autojunk: bool = True) -> float:
    """Twice the number of matched elements over the number of all, as `SequenceMatcher(None, ...).ratio()`.

    Two empty sequences are alike: 1.0.

    Args:
        prediction: the first sequence.
        reference: the second one.
        autojunk: whether elements that make up more than one percent of a reference of at least 200 start
            no match, which is difflib's default.

    Returns:
        A number in [0, 1]; equal to difflib's to the last bit.
    """
    total = len(prediction) + len(reference)
    if list(prediction) == list(reference):
        return 1.0
    if _suits_difflib(prediction, reference, _frequent(reference, autojunk=autojunk)):
        return SequenceMatcher(None, prediction, reference, autojunk=autojunk).ratio()
    return 2.0 * Matching(prediction, reference, autojunk=autojunk).size() / total


def _suits_difflib(a: Sequence[str], b: Sequence[str], frequent: int) -> bool:
    if len(a) * len(b) <= MOST_PAIRS:
        return True
    if len(a) * len(b) > LONGEST:
        return False
    in_b = Counter(b)
    return sum(in_b[element] for element in a if in_b[element] <= frequent) <= MOST_PAIRS


def _frequent(b: Sequence[str], *, autojunk: bool) -> int:
    """The number of times an element may stand in `b` and still start a match."""
    return len(b) // 100 + 1 if autojunk and len(b) >= 200 else len(b)


class Matching:
    """The matching blocks of two sequences.

    Args:
        a: the first sequence.
        b: the second one.
        autojunk: whether frequent elements of `b` start no match.
    """

    def __init__(self, a: Sequence[str], b: Sequence[str], *, autojunk: bool) -> None:
        self.a, self.b = a, b
        self._substrings = Substrings(*_codes(a, b, _frequent(b, autojunk=autojunk)))

    def size(self) -> int:
        """The number of matched elements."""
        matched = 0
        unmatched: list[Rectangle] = [(0, len(self.a), 0, len(self.b))]
        while unmatched:
            taken, rest = self._match_longest(unmatched.pop())
            matched += taken
            unmatched += rest
        return matched

    def _match_longest(self, rectangle: Rectangle) -> tuple[int, list[Rectangle]]:
        """Takes all runs of the greatest length, from left to right; what lies between them is left."""
        length, candidates = self._substrings.longest_runs(rectangle)
        if not length:
            return self._common_start(rectangle), []
        matched, rest = 0, [rectangle]
        for a_start, b_starts in candidates:
            right = rest[-1] if rest else (0, 0, 0, 0)
            nearest = bisect_left(b_starts, right[2])
            if right[0] <= a_start < right[1] and nearest < len(b_starts):
                taken, around = self._take(rest.pop(), length, a_start, b_starts[nearest])
                matched += taken
                rest += around
        return matched, rest

    def _take(
        self, rectangle: Rectangle, length: int, a_start: int, b_start: int
    ) -> tuple[int, list[Rectangle]]:
        """Takes a run and the equal elements around it, frequent ones too; gives their number and the rest."""
        a_low, a_high, b_low, b_high = rectangle
        before = self._common_end((a_low, a_start, b_low, b_start))
        after = self._common_start((a_start + length, a_high, b_start + length, b_high))
        left = (a_low, a_start - before, b_low, b_start - before)
        right = (a_start + length + after, a_high, b_start + length + after, b_high)
        return before + length + after, [part for part in (left, right) if _has_area(part)]

    def _common_start(self, rectangle: Rectangle) -> int:
        """The number of equal elements from the rectangle's first corner on."""
        a_low, a_high, b_low, b_high = rectangle
        return _gallop(
            min(a_high - a_low, b_high - b_low),
            lambda start, end: self.a[a_low + start : a_low + end] == self.b[b_low + start : b_low + end],
        )

    def _common_end(self, rectangle: Rectangle) -> int:
        """The number of equal elements from the rectangle's last corner back."""
        a_low, a_high, b_low, b_high = rectangle
        return _gallop(
            min(a_high - a_low, b_high - b_low),
            lambda start, end: self.a[a_high - end : a_high - start] == self.b[b_high - end : b_high - start],
        )


def _codes(a: Sequence[str], b: Sequence[str], frequent: int) -> list[NDArray[np.int64]]:
    """A number for each element; `NOT_INDEXED` where it stands in `b` more often than that, or never."""
    import numpy as np

    if isinstance(a, str) and isinstance(b, str):
        codes = [
            np.frombuffer(sequence.encode("utf-32-le"), dtype="<u4").astype(np.int64) for sequence in (a, b)
        ]
    else:
        numbers = {element: number for number, element in enumerate(dict.fromkeys((*a, *b)))}
        codes = [
            np.fromiter(map(numbers.__getitem__, sequence), np.int64, len(sequence)) for sequence in (a, b)
        ]
    counts = np.bincount(codes[1], minlength=max(int(np.max(code, initial=0)) for code in codes) + 1)
    counts[counts > frequent] = 0
    for code in codes:
        code[counts[code] == 0] = NOT_INDEXED
    return codes


def _gallop(limit: int, equal: Callable[[int, int], bool]) -> int:
    """How far equality reaches: steps twice as long while it holds, then half as long.

    Slices are compared without Python's help, so few long ones are quickest.
    """
    size, step = 0, 1
    while step:
        end = min(size + step, limit)
        if equal(size, end):
            size, step = end, step * 2 if end < limit else 0
        else:
            step, limit = step // 2, end - 1
    return size


def _has_area(rectangle: Rectangle) -> bool:
    return rectangle[0] < rectangle[1] and rectangle[2] < rectangle[3]
