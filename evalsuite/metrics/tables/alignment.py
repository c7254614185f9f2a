"""Which rows and columns of two tables belong together, found from both dimensions by turns.

Like GriTS (Smock et al., arXiv 2203.12555) this looks for the two most alike parts of the tables that keep
the order of rows and columns. GriTS compares each cell with each other; here cells are profiles, short vectors
of what they hold, so that a product of matrices compares whole rows, and time grows with the number of cells
times that of rows. Rows are aligned by what they hold, then columns by the cells in aligned rows, then rows
again by the cells in aligned columns, and columns once more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

Table = Sequence[Sequence[str]]
Pairs = list[tuple[int, int]]
"""Places in the first and the second sequence, ascending in the first."""
VALUES, CHARACTERS = 192, 64
"""Dimensions of a profile: for whole values, and for the characters and pairs of characters within them."""
SHARE_OF_CHARACTERS = 0.3
"""Weight of the characters; the rest is for equal values."""
MOST_LINES = 400
MOST_CELLS = 40_000
"""Tables of more rows, columns or cells are aligned in a coarser way, block by block."""
MOST_CHARACTERS = 64
"""Of a value, that enter its profile."""


def align(
    first: Table, second: Table, *, row_order: bool = True, column_order: bool = True
) -> tuple[Pairs, Pairs]:
    """Aligns rows and columns of two tables of cell values; in each table all rows are equally long.

    Args:
        first: one table, with at least one cell.
        second: the other one, likewise.
        row_order: whether aligned rows must stand in the same order.
        column_order: whether columns must.

    Returns:
        The pairs of rows, and those of columns.
    """
    if _fits(first) and _fits(second):
        return _align_profiles(first, second, row_order=row_order, column_order=column_order)
    if max(len(first), len(second)) >= max(len(first[0]), len(second[0])):
        return _align_long(first, second, row_order=row_order, column_order=column_order)
    sides = (list(zip(*side, strict=True)) for side in (first, second))
    columns, rows = _align_long(*sides, row_order=column_order, column_order=row_order)
    return rows, columns


def _fits(table: Table) -> bool:
    return max(len(table), len(table[0])) <= MOST_LINES and len(table) * len(table[0]) <= MOST_CELLS


def _align_profiles(
    first: Table, second: Table, *, row_order: bool, column_order: bool
) -> tuple[Pairs, Pairs]:
    one, two = _profiles(first), _profiles(second)
    rows = _pairs(one.sum(1) @ two.sum(1).T, ordered=row_order)
    columns: Pairs = []
    for _ in range(2):
        columns = _pairs(_similar_lines(one, two, rows), ordered=column_order)
        if not columns:
            break
        rows = _pairs(
            _similar_lines(one.swapaxes(0, 1), two.swapaxes(0, 1), columns), ordered=row_order
        )
    return rows, columns


def _similar_lines(one: Floats, two: Floats, across: Pairs) -> Floats:
    """How alike each line of one table is to each of the other, over the cells in aligned lines across."""
    import numpy as np

    if not across:
        return np.zeros((one.shape[1], two.shape[1]), np.float32)
    taken = np.array(across)
    sides = (side[places].swapaxes(0, 1) for side, places in zip((one, two), taken.T, strict=True))
    left, right = (np.ascontiguousarray(side).reshape(len(side), -1) for side in sides)
    return left @ right.T


def _profiles(table: Table) -> Floats:
    """A profile of length 1 for each cell, of length 0 for blank ones: rows, columns, dimensions."""
    import numpy as np

    numbers = {value: number for number, value in enumerate(dict.fromkeys(cell for row in table for cell in row))}
    profiles = np.stack([_profile(value) for value in numbers])
    codes = np.array([[numbers[cell] for cell in row] for row in table])
    return profiles[codes]


def _profile(value: str) -> Floats:
    import numpy as np

    profile = np.zeros(VALUES + CHARACTERS, np.float32)
    if value:
        data = np.frombuffer(value[:MOST_CHARACTERS].encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
        pairs = data[:-1] * 31 + data[1:]
        counts = np.bincount(np.concatenate((data, pairs)) * 7919 % CHARACTERS, minlength=CHARACTERS)
        profile[VALUES:] = np.sqrt(SHARE_OF_CHARACTERS) * counts / np.linalg.norm(counts)
        profile[crc32(value.encode("utf-8", "surrogatepass")) % VALUES] = np.sqrt(1 - SHARE_OF_CHARACTERS)
    return profile


def _pairs(similarity: Floats, *, ordered: bool) -> Pairs:
    """The pairs of lines that are together most alike; each line is in one pair at most."""
    if ordered:
        return _ordered_pairs(similarity)
    from scipy.optimize import linear_sum_assignment

    return [(int(one), int(two)) for one, two in zip(*linear_sum_assignment(-similarity), strict=True)]


def _ordered_pairs(similarity: Floats) -> Pairs:
    """The same among the pairs that keep the order: the longest common subsequence, with weights."""
    import numpy as np

    height, width = similarity.shape
    # The nearer pair wins among equals.
    best = np.zeros((height + 1, width + 1))
    for row in range(height):
        reached = np.maximum(best[row, 1:], best[row, :-1] + similarity[row])
        np.maximum.accumulate(reached, out=best[row + 1, 1:])
    table = best.tolist()
    pairs: Pairs = []
    row, column = height, width
    while row and column:
        here = table[row][column]
        if here == table[row - 1][column]:
            row -= 1
        elif here == table[row][column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            pairs.append((row, column))
    return pairs[::-1]


def _align_long(
    first: Table, second: Table, *, row_order: bool, column_order: bool
) -> tuple[Pairs, Pairs]:
    """The coarser way: rows that are equal and unique are anchors, what lies between is aligned by blocks."""
    width = max(len(first[0]), len(second[0]))
    size = max(1, min(MOST_LINES, MOST_CELLS // width))

    def align_block(one: Table, two: Table) -> tuple[Pairs, Pairs]:
        if width > MOST_LINES:
            return _diagonal(len(one), len(two)), _diagonal(len(first[0]), len(second[0]))
        return _align_profiles(one, two, row_order=row_order, column_order=column_order)

    rows = _anchors(first, second, ordered=row_order)
    for ones, twos in list(_gaps(rows, len(first), len(second), ordered=row_order)):
        for start in range(0, min(len(ones), len(twos)), size):
            a, b = ones[start : start + size], twos[start : start + size]
            within = align_block([first[place] for place in a], [second[place] for place in b])[0]
            rows += [(a[one], b[two]) for one, two in within]
    rows.sort()
    head = rows[:size]
    columns = align_block([first[one] for one, _ in head], [second[two] for _, two in head])[1] if head else []
    return rows, columns


def _anchors(first: Table, second: Table, *, ordered: bool) -> Pairs:
    """Rows that stand once in either table and are equal; the longest series of them that keeps the order."""
    places: tuple[dict[tuple[str, ...], list[int]], ...] = ({}, {})
    for side, by_row in zip((first, second), places, strict=True):
        for place, row in enumerate(side):
            by_row.setdefault(tuple(row), []).append(place)
    pairs = [
        (here[0], there[0])
        for row, here in places[0].items()
        if len(here) == 1 and len(there := places[1].get(row, [])) == 1
    ]
    return _longest_series(pairs) if ordered else pairs


def _longest_series(pairs: Pairs) -> Pairs:
    """The longest part of pairs, ascending in the first place, that ascends in the second one too."""
    lasts: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(lasts, place)
        lasts[length:length + 1] = [place]
        ends[length:length + 1] = [index]
        before.append(ends[length - 1] if length else -1)
    series: Pairs = []
    index = ends[-1] if ends else -1
    while index >= 0:
        series.append(pairs[index])
        index = before[index]
    return series[::-1]


def _gaps(anchors: Pairs, height: int, other: int, *, ordered: bool) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """What is not anchored: between neighbouring anchors where order counts, else all of it."""
    if not ordered:
        taken, others = ({pair[side] for pair in anchors} for side in (0, 1))
        yield (
            [place for place in range(height) if place not in taken],
            [place for place in range(other) if place not in others],
        )
        return
    one = two = -1
    for place, beside in [*anchors, (height, other)]:
        yield range(one + 1, place), range(two + 1, beside)
        one, two = place, beside


def _diagonal(one: int, two: int) -> Pairs:
    return [(place, place) for place in range(min(one, two))]
