"""Align the rows and columns of two tables, alternating between the two dimensions.

Like GriTS (Smock et al., arXiv 2203.12555), this module pairs rows and columns in order, so that the paired cells are
as similar as possible. GriTS compares all pairs of cells by characters. This module first aligns rows by shared values.
Then, twice, it aligns columns by equal cells in aligned rows, and rows by equal cells in aligned columns. If no values
are equal, rows and columns are aligned by similar characters. The time grows with the number of cells times the number
of rows.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
_Table = Sequence[Sequence[str]]
Order = tuple[bool, bool]  # Whether the order of rows matters, and whether the order of columns matters.
Pairs = list[tuple[int, int]]  # Pairs of aligned lines: an index in the first table and one in the second, sorted.
LIKENESS = 0.5  # The weight of similar characters; equal cells have the weight 1.
PROFILE_SIZE = 64  # Length of the vectors in `_make_line_profiles`; a power of two.
MOST_PAIRS = 1_000
"""Values shared by more pairs of rows than this are ignored, because they do not show which rows correspond."""
MOST_LINES = 400
MOST_CELLS = 40_000  # Maximum cells for a full alignment; larger tables are aligned more coarsely, block by block.
MOST_ASSIGNED = 2_500
"""Maximum rows to pair by one assignment if order does not matter; in larger tables, equal rows are paired first."""
MOST_CHARACTERS = 64  # Maximum characters of a value that `_make_line_profiles` counts.


def are_fully_alignable(first: _Table, second: _Table) -> bool:
    """Tell whether two tables are small enough for a full alignment."""
    shapes = [(len(table), len(table[0])) for table in (first, second)]
    return all(max(shape) <= MOST_LINES and math.prod(shape) <= MOST_CELLS for shape in shapes)


def align_tables(first: _Table, second: _Table, order: Order) -> tuple[Pairs, Pairs]:
    """Return the pairs of aligned rows, and the pairs of aligned columns.

    Each table must have a cell, and its rows must have equal lengths.
    """
    if are_fully_alignable(first, second):
        return _align_all_lines(first, second, order)
    if max(len(first), len(second)) >= max(len(first[0]), len(second[0])):
        return _align_by_anchors(first, second, order)
    columns, rows = _align_by_anchors(_transpose(first), _transpose(second), (order[1], order[0]))
    return rows, columns


def _transpose(table: _Table) -> _Table:
    return list(zip(*table, strict=True))


def _align_all_lines(first: _Table, second: _Table, order: Order) -> tuple[Pairs, Pairs]:
    """Align all rows and columns at once, whatever the size of the tables."""
    row_order, column_order = order
    one, two = _encode_values(first, second)
    short = [[[value[:MOST_CHARACTERS] for value in row] for row in side] for side in (first, second)]
    likely_rows, likely_columns = _score_line_pairs(*short), _score_line_pairs(*map(_transpose, short))
    rows = _pair_lines(_count_shared_values(one, two) + likely_rows, ordered=row_order)
    columns: Pairs = []
    for _ in range(2):
        before = rows
        columns = _pair_lines(_count_equal_cells(one.T, two.T, rows) + likely_columns, ordered=column_order)
        rows = _pair_lines(_count_equal_cells(one, two, columns) + likely_rows, ordered=row_order)
        if rows == before:
            break
    return rows, columns


def _encode_values(first: _Table, second: _Table) -> tuple[Codes, Codes]:
    """Replace each distinct value by a number; a blank cell becomes -1 in the first table and -2 in the second."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(chain(*first, *second)))}
    sides = []
    for side, blank in ((first, -1), (second, -2)):
        numbers[""] = blank
        values = np.fromiter(map(numbers.__getitem__, chain(*side)), np.int64, len(side) * len(side[0]))
        sides.append(values.reshape(len(side), -1))
    return sides[0], sides[1]


def _count_shared_values(one: Codes, two: Codes) -> Floats:
    """Count the values that a row of the first table shares with a row of the second, for each pair of rows."""
    (values, rows), (others, beside) = _list_distinct_values(one), _list_distinct_values(two)
    order = np.argsort(others, kind="stable")
    others, beside = others[order], beside[order]
    starts, ends = (np.searchsorted(others, values, side) for side in ("left", "right"))
    counts = ends - starts
    own = np.unique(values, return_inverse=True)[1]
    counts[np.bincount(own)[own] * counts > MOST_PAIRS] = 0
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    pairs = np.repeat(rows, counts) * len(two) + beside[np.repeat(starts, counts) + within]
    return np.bincount(pairs, minlength=len(one) * len(two)).reshape(len(one), len(two)).astype(np.float64)


def _list_distinct_values(table: Codes) -> tuple[Codes, Codes]:
    """Return all rows' distinct values, sorted within each row, and the row index of each value."""
    # Shift all numbers by 2, because the smallest is -2 (a blank cell) and `divmod` needs numbers from 0.
    size = int(np.max(table)) + 3
    rows, values = np.divmod(np.unique(table + 2 + size * np.arange(len(table))[:, None]), size)
    return values - 2, rows


def _count_equal_cells(one: Codes, two: Codes, aligned: Pairs) -> Floats:
    """Count each row pair's equal cells in aligned columns; for column pairs, pass transposed tables and row pairs."""
    equal = np.zeros((len(one), len(two)), dtype=np.int32)
    for left, right in aligned:
        equal += one[:, left][:, None] == two[:, right]
    return equal.astype(np.float64)


def _score_line_pairs(first: _Table, second: _Table) -> Floats:
    """Score each pair of lines by how much its similarity exceeds the average; pairs below the average score 0."""
    one, two = _make_line_profiles(first), _make_line_profiles(second)
    # Use `einsum`, because the threads of a matrix product would wait for each other longer than they compute.
    alike = np.einsum("ik,jk->ij", one, two)
    above = np.maximum(alike - alike.mean(), 0.0)
    return np.asarray(above * (LIKENESS * min(len(first[0]), len(second[0]))))


def _make_line_profiles(table: _Table) -> Floats:
    """Describe each line by a unit vector of its counts of characters and character pairs; a blank line gives zeros."""
    lines = list(map(" ".join, table))
    data = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), "<u4")
    starts = np.repeat(np.arange(len(lines)), [len(line) for line in lines]) * PROFILE_SIZE
    # The product may overflow, but only its last bits (`& last`) are used, and these stay correct.
    pairs, last = data[:-1] * 31 + data[1:], PROFILE_SIZE - 1
    places = np.concatenate((starts + (data * 7919 & last), starts[:-1] + (pairs * 7919 & last)))
    counts = np.bincount(places, minlength=len(lines) * PROFILE_SIZE).reshape(len(lines), PROFILE_SIZE)
    lengths = np.sqrt((counts * counts).sum(1, keepdims=True, dtype=np.float64))
    return np.asarray(counts / np.maximum(lengths, 1.0))


def _pair_lines(similarity: Floats, *, ordered: bool) -> Pairs:
    """Pair lines, in order or in any order, so that the total similarity is greatest; no line is in two pairs."""
    if ordered:
        return pair_lines_in_order(similarity)
    from scipy.optimize import linear_sum_assignment

    ones, twos = linear_sum_assignment(-similarity)
    return list(zip(ones.tolist(), twos.tolist(), strict=True))


def pair_lines_in_order(similarity: Floats, *, prefers_pairs: bool = False) -> Pairs:
    """Pair lines in order, so that the total similarity is greatest; no similarity may be negative.

    Args:
        similarity: the similarity of each line of the first table to each line of the second.
        prefers_pairs: whether to pair two lines, from the last on, wherever this does not lower the total. By default,
            a line is left out there; of several lines that are equally similar to a line, the first is paired.
    """
    height, width = similarity.shape
    best = np.zeros((height + 1, width + 1))
    for row in range(height):
        np.maximum.accumulate(np.maximum(best[row, 1:], best[row, :-1] + similarity[row]), out=best[row + 1, 1:])
    pairs: Pairs = []
    row, column = height, width
    while row and column:
        cell = best[row, column]
        is_best_paired = prefers_pairs and cell == best[row - 1, column - 1] + similarity[row - 1, column - 1]
        if not is_best_paired and cell == best[row - 1, column]:
            row -= 1
        elif not is_best_paired and cell == best[row, column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            pairs.append((row, column))
    return pairs[::-1]


def _align_by_anchors(first: _Table, second: _Table, order: Order) -> tuple[Pairs, Pairs]:
    """Align coarsely: pairs of equal, unique rows are anchors; rows between two anchors are aligned in blocks."""
    width = max(len(first[0]), len(second[0]))
    row_order, _ = order
    size = max(1, min(MOST_LINES, MOST_CELLS // width)) if row_order else MOST_ASSIGNED

    def align_block(first_rows: _Table, second_rows: _Table) -> tuple[Pairs, Pairs]:
        if width > MOST_LINES:  # Pair lines by their positions.
            heights, widths = (len(first_rows), len(second_rows)), (len(first[0]), len(second[0]))
            return [(place, place) for place in range(min(heights))], [(place, place) for place in range(min(widths))]
        return _align_all_lines(first_rows, second_rows, order)

    rows = _find_anchors(first, second, ordered=row_order)
    heights = (len(first), len(second))
    gaps: list[tuple[Sequence[int], Sequence[int]]]
    if row_order:
        bounds = pairwise([(-1, -1), *rows, heights])
        gaps = [(range(one[0] + 1, two[0]), range(one[1] + 1, two[1])) for one, two in bounds]
    else:
        free = [set(range(height)).difference(pair[side] for pair in rows) for side, height in enumerate(heights)]
        gaps = [(sorted(free[0]), sorted(free[1]))]
    for ones, twos in gaps:
        if len(ones) == len(twos) == 1:
            rows.append((ones[0], twos[0]))
            continue
        for start in range(0, min(len(ones), len(twos)), size):
            a, b = ones[start : start + size], twos[start : start + size]
            within = align_block([first[place] for place in a], [second[place] for place in b])[0]
            rows += [(a[one], b[two]) for one, two in within]
    rows.sort()
    head = rows[:size]
    columns = align_block([first[one] for one, _ in head], [second[two] for _, two in head])[1] if head else []
    return rows, columns


def _find_anchors(first: _Table, second: _Table, *, ordered: bool) -> Pairs:
    """Pair equal rows that occur once in each table; if `ordered`, keep only the longest series in the same order."""
    rows, others = list(map(tuple, first)), list(map(tuple, second))
    counts, other_counts = Counter(rows), Counter(others)
    places = {row: place for place, row in enumerate(others)}
    unique = ((place, row) for place, row in enumerate(rows) if counts[row] == other_counts[row] == 1)
    pairs = [(place, places[row]) for place, row in unique]
    if not ordered:
        return pairs
    # Find the longest subsequence of pairs in which both indexes ascend.
    lasts: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(lasts, place)
        lasts[length : length + 1] = [place]
        ends[length : length + 1] = [index]
        before.append(ends[length - 1] if length else -1)
    series: Pairs = []
    index = ends[-1] if ends else -1
    while index >= 0:
        series.append(pairs[index])
        index = before[index]
    return series[::-1]
