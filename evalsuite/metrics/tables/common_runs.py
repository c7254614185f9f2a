"""The maximal runs that two sequences share within a rectangle, listed from their equal pairs."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

Rectangle = tuple[int, int, int, int]
"""A range of the first sequence and one of the second: start, end, start, end."""
CommonRun = tuple[int, int, int]
"""Its length, negative so that a heap gives the longest first, and its start in either sequence."""
NOT_INDEXED = -1
MANY_PAIRS = 300_000
SMALL_AREA = 20_000


class CommonRuns:
    """Runs of equal codes.

    Args:
        codes_a: the first sequence, as numbers from 0; `NOT_INDEXED` is equal to nothing.
        codes_b: the second one.
    """

    def __init__(self, codes_a: NDArray[np.int64], codes_b: NDArray[np.int64]) -> None:
        import numpy as np

        self.arrays = codes_a, codes_b
        self.codes_a: list[int] = codes_a.tolist()
        self.codes_b: list[int] = codes_b.tolist()
        self.places: dict[int, list[int]] = {}
        for place in np.flatnonzero(codes_b != NOT_INDEXED).tolist():
            self.places.setdefault(self.codes_b[place], []).append(place)
        self.most_places = max(map(len, self.places.values()), default=0)

    def can_list(self, rectangle: Rectangle) -> bool:
        """Whether the equal pairs within a rectangle are few enough to list."""
        a_low, a_high, b_low, b_high = rectangle
        if (a_high - a_low) * min(b_high - b_low, self.most_places) <= MANY_PAIRS:
            return True
        in_a, in_b = Counter(self.codes_a[a_low:a_high]), Counter(self.codes_b[b_low:b_high])
        pairs = sum(count * in_b[code] for code, count in in_a.items() if code != NOT_INDEXED)
        return pairs <= MANY_PAIRS

    def long_runs(self, rectangle: Rectangle) -> list[CommonRun]:
        """The maximal runs, cut at the rectangle's edges, that are longer than half the longest one."""
        a_low, a_high, b_low, b_high = rectangle
        if (a_high - a_low) * (b_high - b_low) > SMALL_AREA:
            return self._long_runs_of_many(rectangle)
        runs = list(self._runs(rectangle))
        half = min(runs, default=(0,))[0] / 2
        return [run for run in runs if run[0] < half]

    def _runs(self, rectangle: Rectangle) -> Iterator[CommonRun]:
        a_low, a_high, b_low, b_high = rectangle
        running: dict[int, int] = {}
        for a_place in range(a_low, a_high + 1):
            code = self.codes_a[a_place] if a_place < a_high else NOT_INDEXED
            if code == NOT_INDEXED and not running:
                continue
            before, running = running, {}
            places = self.places.get(code, [])
            for index in range(bisect_left(places, b_low), bisect_left(places, b_high)):
                running[places[index]] = before.pop(places[index] - 1, a_place)
            for b_last, a_start in before.items():
                length = a_place - a_start
                yield -length, a_start, b_last + 1 - length

    def _long_runs_of_many(self, rectangle: Rectangle) -> list[CommonRun]:
        """The same by arrays, which pays for more than a few pairs."""
        import numpy as np

        rows, columns = self._pairs(rectangle)
        if not len(rows):
            return []
        a_low, a_high, b_low, b_high = rectangle
        codes_a, codes_b = self.arrays
        inner = (rows > a_low) & (columns > b_low)
        starts = ~(inner & (codes_a[rows - 1] == codes_b[columns - 1]) & (codes_a[rows - 1] != NOT_INDEXED))
        inner = (rows < a_high - 1) & (columns < b_high - 1)
        after = codes_a[np.minimum(rows + 1, a_high - 1)]
        ends = ~(inner & (after == codes_b[np.minimum(columns + 1, b_high - 1)]) & (after != NOT_INDEXED))
        # Along each diagonal starts and ends alternate: sorted alike, they come in pairs.
        diagonals = (columns - rows + len(codes_a)) * len(codes_a) + rows
        # Half as wide, they sort in half the time, which is most of all.
        fits = (len(codes_a) + len(codes_b)) * len(codes_a) < 2**31
        diagonals = diagonals.astype(np.int32) if fits else diagonals
        first, last = np.sort(diagonals[starts]), np.sort(diagonals[ends])
        lengths, a_starts = last - first + 1, first % len(codes_a)
        b_starts = first // len(codes_a) + a_starts - len(codes_a)
        long = 2 * lengths > lengths.max()
        return list(
            zip((-lengths[long]).tolist(), a_starts[long].tolist(), b_starts[long].tolist(), strict=True)
        )

    def _pairs(self, rectangle: Rectangle) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The places of all equal elements within a rectangle."""
        import numpy as np

        a_low, a_high, b_low, b_high = rectangle
        size = len(self.codes_b)
        codes = self.arrays[0][a_low:a_high]
        rows = np.flatnonzero(codes != NOT_INDEXED)
        first = np.searchsorted(self._sorted_places, codes[rows] * size + b_low)
        counts = np.searchsorted(self._sorted_places, codes[rows] * size + b_high) - first
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        columns = self._sorted_places[np.repeat(first, counts) + within] % max(size, 1)
        return np.repeat(rows + a_low, counts), columns

    @cached_property
    def _sorted_places(self) -> NDArray[np.int64]:
        """Places in the second sequence in order of their codes: code times length, plus place."""
        import numpy as np

        codes = self.arrays[1]
        indexed = np.flatnonzero(codes != NOT_INDEXED)
        return np.sort(codes[indexed] * len(codes) + indexed)
