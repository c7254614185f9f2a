"""Compare the content of predicted and wanted tables: align cells in two dimensions, compare their values."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import add
from typing import Self

from evalsuite.metrics.tables.alignment import Order, Pairs, align_tables, are_fully_alignable
from evalsuite.metrics.tables.cells import INCOMPLETE, measure_cell_similarity, normalise_cell
from evalsuite.metrics.tables.grid import CellGrid, Span

CellPlace = tuple[int, int]  # The indexes of a row and a column.
VERSION_OVERLAP = 0.5
"""An unused table is another version of a chosen one if it has at least this share of the chosen one's overlap."""


@dataclass(frozen=True, slots=True)
class TableOverlap:
    """The agreement of two tables, without cells that are blank in both and without blank lines of one table."""

    similarity: float = 0.0  # The sum of the similarities of aligned cells.
    equal: int = 0  # The number of aligned cells with equal values.
    predicted: int = 0  # The number of predicted cells.
    wanted: int = 0  # The number of wanted cells.

    def __add__(self, other: "TableOverlap") -> "TableOverlap":
        return TableOverlap(*map(add, astuple(self), astuple(other)))

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, in [0, 1]."""
        both = self.predicted + self.wanted
        return 2 * self.similarity / both if both else 0.0


class ValueGrid:
    """The values of a table's cells.

    Attributes:
        texts: the texts of the cells, with all rows filled up to the same length.
        rows: the values of the cells.
        width: the length of each row.
        head: the index of the row that names the columns. This is the last head row; without head rows, the first row
            with at least two values.
    """

    def __init__(self, rows: Sequence[Sequence[str]], spans: Sequence[Span] = (), head_rows: int = 0) -> None:
        self.width = max(map(len, rows), default=0)
        self.texts = [[*row, *[""] * (self.width - len(row))] for row in rows]
        self.rows = [list(map(normalise_cell, row)) for row in self.texts]
        self._spans = spans
        filled = (place for place, row in enumerate(self.rows) if len({*row} - {""}) > 1)
        self.head = min(head_rows, len(rows)) - 1 if head_rows else next(filled, 0)

    @cached_property
    def span_numbers(self) -> dict[tuple[int, int], int]:
        """For each position to which a span's text was copied: the number of this span."""
        places: dict[tuple[int, int], int] = {}
        for number, span in enumerate(self._spans):
            for row in range(span.row, min(span.row + span.rows, len(self.rows))):
                for column in range(span.column, min(span.column + span.columns, self.width)):
                    if (row, column) != (span.row, span.column) and self.texts[row][column] == span.text:
                        places.setdefault((row, column), number)
            if len(places) > len(self.rows) * self.width // 2:
                break
        return places

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of times that each value occurs in the table."""
        return Counter(value for row in self.rows for value in row if value)

    def get_value(self, place: CellPlace) -> str:
        """Return the value of a cell."""
        return self.rows[place[0]][place[1]]

    def transpose(self) -> "ValueGrid":
        """Return a table with rows and columns exchanged; spans are dropped."""
        return ValueGrid(list(zip(*self.texts, strict=True)))

    def is_transposed(self, other: "ValueGrid") -> bool:
        """Tell whether this table looks transposed: its column names are `other`'s row names, or vice versa."""
        top, side = set(self.rows[0]) - {""}, {row[0] for row in self.rows} - {""}
        head, names = set(other.rows[other.head]), {row[0] for row in other.rows}
        return len(top & names) + len(side & head) > len(top & head) + len(side & names)

    def compute_dice_coefficient(self, other: "ValueGrid") -> float:
        """Return the Dice coefficient of both tables' values, regardless of their positions."""
        total = self.counts.total() + other.counts.total()
        shared = sum(min(self.counts[value], other.counts[value]) for value in self.counts.keys() & other.counts)
        return 2 * shared / total if total else 0.0


@dataclass(frozen=True, slots=True)
class TablePair:
    """A wanted table, the predicted table for it, and the alignment of both tables."""

    predicted: int | None  # The index of the predicted table, or of the first of several joined tables.
    wanted: int  # The index of the wanted table.
    left: ValueGrid  # The predicted table.
    right: ValueGrid  # The wanted table.
    rows: Pairs  # Aligned pairs of rows.
    columns: Pairs  # Aligned pairs of columns.
    overlap: TableOverlap
    displaced: bool = False  # Whether rows or columns are in another order than in the wanted table.


@dataclass(frozen=True, slots=True)
class ContentComparison:
    """All wanted tables, each with its predicted table."""

    pairs: tuple[TablePair, ...]  # One pair per wanted table, in the reference's order.
    extra: tuple[ValueGrid, ...] = ()  # Predicted tables that are not a version of any wanted table.

    @property
    def overlap(self) -> TableOverlap:
        """The summed overlap of all pairs; unused predicted tables count as unwanted cells."""
        surplus = sum(table.counts.total() for table in self.extra)
        return sum((pair.overlap for pair in self.pairs), TableOverlap(predicted=surplus))

    def compare_regardless_of_order(self) -> Self | None:
        """Return the comparison with rows and columns in any order; return None if this improves no pair of tables."""
        pairs = tuple(map(_realign_in_any_order, self.pairs))
        return replace(self, pairs=pairs) if any(pair.displaced for pair in pairs) else None


def compare_content(
    predicted: Sequence[CellGrid], wanted: Sequence[CellGrid], order: Order = (True, True)
) -> ContentComparison:
    """Compare predicted tables with wanted tables.

    If an answer contains several versions of one table, such as a draft and its correction, the last version is
    compared. If the answer splits a wanted table into several tables, these are joined if joining increases the
    similarity.
    """
    sides = (predicted, wanted)
    left, right = ([ValueGrid(table.rows, table.spans, table.head_rows) for table in side] for side in sides)
    names, wanted_names = ([table.name for table in side] for side in sides)
    chosen, leftover = _choose_tables(left, right, names, wanted_names)
    pairs = [
        _align_and_compare_tables(left[one] if one is not None else ValueGrid([]), right[place], one, place, order)
        for place, one in enumerate(chosen)
    ]
    if len(wanted) == 1 < len(predicted):
        whole = ValueGrid([row for part in left for row in part.texts])
        joined = _align_and_compare_tables(whole, right[0], 0, 0, order)
        if joined.overlap.f1 > pairs[0].overlap.f1:
            return ContentComparison((joined,))
    return ContentComparison(tuple(pairs), tuple(left[place] for place in leftover))


def _choose_tables(
    left: Sequence[ValueGrid], right: Sequence[ValueGrid], names: Sequence[str], wanted_names: Sequence[str]
) -> tuple[list[int | None], list[int]]:
    """Choose a predicted table's index (or None) for each wanted table; return also the indexes of unused tables."""
    if len(left) == len(right) == 1:
        return [0], []
    from scipy.optimize import linear_sum_assignment

    shares = [[one.compute_dice_coefficient(other) for other in right] for one in left]
    # Pair tables so that their total similarity is greatest. Equal names raise a pair's similarity by 1; between
    # pairings with equal sums, tables in equal positions are paired.
    gains = [
        [
            share + bool(name and name.casefold() == wanted.casefold()) + (0.001 if place == there else 0.0)
            for there, (share, wanted) in enumerate(zip(row, wanted_names, strict=True))
        ]
        for place, (row, name) in enumerate(zip(shares, names, strict=True))
    ]
    chosen: list[int | None] = [None] * len(right)
    for one, other in zip(*linear_sum_assignment(gains, maximize=True), strict=True) if gains else ():
        chosen[int(other)] = int(one)
    leftover = [place for place in range(len(left)) if place not in chosen]
    surplus: list[int] = []
    for extra in leftover:
        versions = [
            place
            for place, one in enumerate(chosen)
            if one is not None and shares[extra][place] >= VERSION_OVERLAP * shares[one][place] > 0
        ]
        if not versions:
            surplus.append(extra)
            continue
        latest = max(versions, key=lambda place: shares[extra][place])
        if extra > (chosen[latest] or 0):
            chosen[latest] = extra
    return chosen, surplus


def _align_and_compare_tables(
    left: ValueGrid, right: ValueGrid, predicted: int | None, wanted: int, order: Order
) -> TablePair:
    """Align a predicted table with a wanted table, and measure their overlap; `predicted` and `wanted` are indexes."""
    if not left.width or not right.width:
        overlap = TableOverlap(predicted=left.counts.total(), wanted=right.counts.total())
        return TablePair(predicted, wanted, left, right, [], [], overlap)
    rows, columns = align_tables(left.rows, right.rows, order)
    rows = _pair_unaligned_lines(rows, len(left.rows), len(right.rows))
    columns = _pair_unaligned_lines(columns, left.width, right.width)
    return TablePair(predicted, wanted, left, right, rows, columns, _measure_overlap(left, right, rows, columns))


def _pair_unaligned_lines(pairs: Pairs, height: int, other_height: int) -> Pairs:
    """Pair the unaligned lines of both tables in order, as if each replaced the other; surplus lines stay unpaired."""
    taken, others = ({pair[side] for pair in pairs} for side in (0, 1))
    if len(taken) in {height, other_height}:
        return pairs
    filled, start = list(pairs), 0
    free = [place for place in range(other_height) if place not in others]
    # If the aligned lines are in the same order in both tables, pair only lines in the same gap between aligned lines.
    ordered = all(one[1] < two[1] for one, two in pairwise(pairs))
    bounds = [*pairs, (height, other_height)] if ordered else [(height, other_height)]
    for one, two in bounds:
        here = [place for place in range(start, one) if place not in taken]
        there = [place for place in free if place < two]
        free = free[len(there) :]
        filled += zip(here, there, strict=False)
        start = one
    return sorted(filled)


def _realign_in_any_order(pair: TablePair) -> TablePair:
    """Align a pair again, with rows and columns in any order or transposed; return the pair with the larger overlap."""
    left, right, overlap = pair.left, pair.right, pair.overlap
    if overlap.f1 == 1.0 or not (left.width and are_fully_alignable(left.rows, right.rows)):
        return pair
    if left.compute_dice_coefficient(right) <= 2 * overlap.equal / (overlap.predicted + overlap.wanted):
        return pair  # Another order cannot help, because every shared value is already at its wanted position.
    best = pair
    for side in (left, left.transpose()) if left.is_transposed(right) else (left,):
        rows, columns = align_tables(side.rows, right.rows, (False, False))
        found = _measure_overlap(side, right, rows, columns)
        if found.f1 > best.overlap.f1:
            best = replace(pair, left=side, rows=rows, columns=columns, overlap=found, displaced=True)
    return best


def _measure_overlap(left: ValueGrid, right: ValueGrid, rows: Pairs, columns: Pairs) -> TableOverlap:
    similarity, equal, blank = 0.0, 0, 0
    spans: set[tuple[bool, int]] = set()
    head = next((one for one, two in rows if two == right.head), None)
    first = next((one for one, two in columns if two == 0), None)
    row_names = _rate_names(left, right, [(None if first is None else (one, first), (two, 0)) for one, two in rows])
    column_names = _rate_names(
        left, right, [(None if head is None else (head, one), (right.head, two)) for one, two in columns]
    )
    named = list(zip(columns, column_names, strict=True))
    for (one, two), row_name in zip(rows, row_names, strict=True):
        here, there = left.rows[one], right.rows[two]
        texts, wanted_texts = left.texts[one], right.texts[two]
        # A data cell's score is the sum of three thirds: its value, its row's name and its column's name.
        is_below_head = two > right.head
        shares = [(1 + row_name + name) / 3 if is_below_head and at else 1.0 for (_, at), name in named]
        for (column, beside), share in zip(columns, shares, strict=True):
            value, wanted = here[column], there[beside]
            if not value and not wanted:
                blank += 1
                continue
            if texts[column] == wanted_texts[beside]:
                equal += 1
                similarity += share
            elif not (value and wanted) and (span := _find_span(left, right, (one, column), (two, beside))):
                similarity += INCOMPLETE if span not in spans else 0.0
                blank += span in spans
                spans.add(span)
            else:
                alike = measure_cell_similarity(texts[column], wanted_texts[beside])
                similarity += alike * share
                equal += alike == 1.0
    sizes = (_count_cells(side, rows, columns, place) - blank for place, side in enumerate((left, right)))
    return TableOverlap(similarity, equal, *sizes)


def _rate_names(left: ValueGrid, right: ValueGrid, places: Iterable[tuple[CellPlace | None, CellPlace]]) -> list[float]:
    """Rate whether aligned rows or columns have the right names, from 0 to 1; `places` has each name's positions.

    The name of another row counts 0.0, because the row's values are then wrong statements; likewise for columns. A name
    with a typo counts 1.0, because the name's own cell already counts as wrong. A name that is blank on one side counts
    1.0 if a span covers its position.
    """
    known = [
        (place, beside, "" if place is None else left.get_value(place), right.get_value(beside))
        for place, beside in places
    ]
    names, others = ({line[side] for line in known} for side in (2, 3))
    rates = []
    for place, beside, name, wanted in known:
        if name == wanted or (place and not (name and wanted) and _find_span(left, right, place, beside)):
            rates.append(1.0)
        elif not name or not wanted:
            rates.append(INCOMPLETE)
        else:
            rates.append(0.0 if name in others or wanted in names else 1.0)
    return rates


def _find_span(
    left: ValueGrid, right: ValueGrid, left_place: CellPlace, right_place: CellPlace
) -> tuple[bool, int] | None:
    """Find the span that covers either position; return whether the left table has the span, and the span's number."""
    is_left = bool(left.get_value(left_place))
    number = left.span_numbers.get(left_place) if is_left else right.span_numbers.get(right_place)
    return None if number is None else (is_left, number)


def _count_cells(table: ValueGrid, rows: Pairs, columns: Pairs, side: int) -> int:
    """Count a table's cells, without unpaired blank lines; an unpaired row with a single value counts as one cell."""
    count = len(table.rows) * table.width
    paired = {pair[side] for pair in rows}
    for place in set(range(len(table.rows))) - paired:
        values = set(table.rows[place]) - {""}
        # A row with a single value is a title of the table or of a section, so its blank cells are not counted.
        count -= table.width - len(values) if len(values) < 2 else 0
    for column in set(range(table.width)) - {pair[side] for pair in columns}:
        if not any(row[column] for row in table.rows):
            count -= len(paired)
    return count
