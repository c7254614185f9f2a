"""The ratio of `difflib.SequenceMatcher`, exactly, without its quadratic worst case.

Python's own matcher looks for the longest common run of a rectangle (a range of each sequence), the
leftmost among equals, and goes on left and right of it. Each search starts over: 20,000 cells of which
every second one differs take half a minute.

Where few pairs of elements are equal, all maximal runs are listed, and those longer than half the longest
are taken from a heap, longest first; one that reaches into what is already matched is cut and put back.
Each round at least halves what is the longest in the rectangles that remain. Where elements repeat so
often that their pairs are too many, the greatest length is found by the names of substrings (Karp, Miller
and Rosenberg 1972), and all runs of that length are taken in one sweep: the part left of the leftmost one
can hold no run as long, so the next one is to be found on its right.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.common_runs import NOT_INDEXED, CommonRun, CommonRuns, Rectangle
from evalsuite.metrics.tables.substrings import Substrings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray


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
    return 2.0 * Matching(prediction, reference, autojunk=autojunk).size() / total


class Matching:
    """The matching blocks of two sequences.

    Args:
        a: the first sequence.
        b: the second one.
        autojunk: whether frequent elements of `b` start no match.
    """

    def __init__(self, a: Sequence[str], b: Sequence[str], *, autojunk: bool) -> None:
        self.a, self.b = a, b
        self.codes = _codes(a, b, len(b) // 100 + 1 if autojunk and len(b) >= 200 else len(b))
        self.common_runs = CommonRuns(*self.codes)

    def size(self) -> int:
        """The number of matched elements."""
        matched = 0
        unmatched: list[Rectangle] = [(0, len(self.a), 0, len(self.b))]
        while unmatched:
            rectangle = unmatched.pop()
            by_pairs = self.common_runs.can_list(rectangle)
            taken, rest = self._match_long(rectangle) if by_pairs else self._match_longest(rectangle)
            matched += taken
            unmatched += rest
        return matched

    def _match_long(self, rectangle: Rectangle) -> tuple[int, list[Rectangle]]:
        """Takes all runs longer than half the longest one, by a heap; what lies between them is left."""
        runs = self.common_runs.long_runs(rectangle)
        if not runs:
            return self._common_start(rectangle), []
        heapify(runs)
        half = runs[0][0] / 2
        matched, free, starts = 0, [rectangle], [rectangle[0]]
        while runs and free:
            run = heappop(runs)
            place = max(bisect_right(starts, run[1]) - 1, 0)
            if not _holds(free[place], run):
                for part in _parts(run, free, place):
                    if part[0] < half:
                        heappush(runs, part)
                continue
            taken, rest = self._take(free[place], -run[0], run[1], run[2])
            matched += taken
            free[place : place + 1], starts[place : place + 1] = rest, [left[0] for left in rest]
        return matched, free

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

    @cached_property
    def _substrings(self) -> Substrings:
        return Substrings(*self.codes)


def _codes(a: Sequence[str], b: Sequence[str], frequent: int) -> list[NDArray[np.int64]]:
    """A number for each element; `NOT_INDEXED` where it stands in `b` more often than that, or never."""
    import numpy as np

    if isinstance(a, str) and isinstance(b, str):
        codes = [np.frombuffer(one.encode("utf-32-le"), dtype="<u4").astype(np.int64) for one in (a, b)]
    else:
        numbers = {element: number for number, element in enumerate(dict.fromkeys((*a, *b)))}
        codes = [np.fromiter(map(numbers.__getitem__, one), np.int64, len(one)) for one in (a, b)]
    counts = np.bincount(codes[1], minlength=max(int(one.max(initial=0)) for one in codes) + 1)
    counts[counts > frequent] = 0
    for one in codes:
        one[counts[one] == 0] = NOT_INDEXED
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


def _holds(rectangle: Rectangle, run: CommonRun) -> bool:
    a_low, a_high, b_low, b_high = rectangle
    negative, a_start, b_start = run
    return a_low <= a_start <= a_high + negative and b_low <= b_start <= b_high + negative


def _parts(run: CommonRun, free: Sequence[Rectangle], place: int) -> Iterator[CommonRun]:
    """What is left of a run within the rectangles from this place on."""
    negative, a_start, b_start = run
    for index in range(place, len(free)):
        a_low, a_high, b_low, b_high = free[index]
        if a_low >= a_start - negative:
            return
        start = max(0, a_low - a_start, b_low - b_start)
        end = min(-negative, a_high - a_start, b_high - b_start)
        if start < end:
            yield start - end, a_start + start, b_start + start


def _has_area(rectangle: Rectangle) -> bool:
    return rectangle[0] < rectangle[1] and rectangle[2] < rectangle[3]
