"""Where two long sequences share runs, found by names for their substrings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

Rectangle = tuple[int, int, int, int]
"""A range of the first sequence and one of the second: start, end, start, end."""
NOT_INDEXED = -1


class Substrings:
    """Names for all substrings of two sequences whose length is a power of two; equal names, equal text.

    Source: Karp, Miller and Rosenberg, Rapid identification of repeated patterns (1972).

    Args:
        codes_a: the first sequence; `NOT_INDEXED` is equal to nothing.
        codes_b: the second one.
    """

    def __init__(self, codes_a: NDArray[np.int64], codes_b: NDArray[np.int64]) -> None:
        import numpy as np

        self.start_b = len(codes_a)
        both = np.concatenate((codes_a, codes_b))
        apart = both == NOT_INDEXED
        both[apart] = len(both) + np.arange(apart.sum())
        self.names: list[NDArray[np.int64]] = [both]

    def longest_runs(self, rectangle: Rectangle) -> tuple[int, Iterator[tuple[int, Sequence[int]]]]:
        """The greatest length of a run within the rectangle, and where runs of that length start.

        Returns:
            The length, 0 if there is no run; the starts in the first sequence, ascending, each with its
            starts in the second one, ascending.
        """
        a_low, a_high, b_low, b_high = rectangle
        low, high = 0, min(a_high - a_low, b_high - b_low) + 1
        while high - low > 1:
            # Runs are short as a rule: doubling from below reaches their length soonest.
            middle = min(2 * low or 1, (low + high) // 2)
            low, high = (middle, high) if self._is_shared(rectangle, middle) else (low, middle)
        return low, self._runs(rectangle, low)

    def _is_shared(self, rectangle: Rectangle, length: int) -> bool:
        import numpy as np

        return bool(np.isin(*self._within(rectangle, length)).any())

    def _runs(self, rectangle: Rectangle, length: int) -> Iterator[tuple[int, Sequence[int]]]:
        import numpy as np

        names_a, names_b = self._within(rectangle, length)
        starts: dict[int, list[int]] = {}
        for place in np.flatnonzero(np.isin(names_b, names_a)).tolist():
            starts.setdefault(int(names_b[place]), []).append(rectangle[2] + place)
        for place in np.flatnonzero(np.isin(names_a, names_b)).tolist():
            yield rectangle[0] + place, starts[int(names_a[place])]

    def _within(self, rectangle: Rectangle, length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        a_low, a_high, b_low, b_high = rectangle
        return (
            self._named(a_low, a_high - length + 1, length),
            self._named(self.start_b + b_low, self.start_b + b_high - length + 1, length),
        )

    def _named(self, start: int, end: int, length: int) -> NDArray[np.int64]:
        """Names for the substrings of any length that start in a range: two that overlap cover each."""
        power = length.bit_length() - 1
        names, shift = self._powers(power), length - (1 << power)
        return names[start:end] * len(self.names[0]) * 2 + names[start + shift : end + shift]

    def _powers(self, power: int) -> NDArray[np.int64]:
        import numpy as np

        while len(self.names) <= power:
            shorter, half = self.names[-1], 1 << (len(self.names) - 1)
            pairs = shorter[:-half] * len(self.names[0]) * 2 + shorter[half:]
            self.names.append(np.unique(pairs, return_inverse=True)[1].astype(np.int64))
        return self.names[power]
