"""A predicted table against the wanted one, cell by cell: names first, then positions."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from evalsuite.benchmarks.struc_bench.sums import sums_held
from evalsuite.metrics.tables.cell_values import is_blank, same_form, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.metrics.tables import CellGrid

    Pair = tuple[CellGrid | None, CellGrid | None]

CellVerdict = Literal["same", "other form", "differs", "missing", "unwanted", "blank"]
"""`missing`: blank though a value was wanted. `unwanted`: a value though blank was wanted. `blank`: rightly so."""


@dataclass(frozen=True, slots=True)
class CellPair:
    """A wanted data cell and what stands in its place."""

    predicted: str
    wanted: str
    verdict: CellVerdict


@dataclass(slots=True)
class TableComparison:
    """The differences between all tables of two texts.

    A table's head rows (its first row, where the markup marks none) hold the names of its columns and, in tables
    of two columns or more, its first column those of its rows; the other cells are data.

    Attributes:
        tables: how many tables were wanted. Of a reference without any, a list say, no cell is compared.
        structure: tables, rows and columns that are missing, too many or out of order, by `missing rows` and so on.
        names: row and column names that differ from the wanted ones, as (predicted, wanted); the name of the
            column of row names is one of them.
        cells: every data cell that both sides have.
        lost: data cells of wanted rows, columns and tables that the prediction lacks.
        predicted: all data cells of the prediction.
        sums: for each sum in the wanted tables, see `sums_held`, whether the prediction has it too.
    """

    tables: int = 0
    structure: Counter[str] = field(default_factory=Counter)
    names: list[tuple[str, str]] = field(default_factory=list)
    cells: list[CellPair] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    predicted: list[str] = field(default_factory=list)
    sums: list[bool] = field(default_factory=list)

    @property
    def wanted(self) -> list[str]:
        """All data cells of the reference."""
        return [*(pair.wanted for pair in self.cells), *self.lost]


def compare(prediction: Sequence[CellGrid], reference: Sequence[CellGrid]) -> TableComparison:
    """Compares all tables; see `pair_tables` for which is compared with which."""
    comparison = TableComparison(tables=len(reference))
    for predicted, wanted in pair_tables(prediction, reference):
        if predicted and wanted:
            _compare_pair(_Named(predicted, wanted.head_rows), _Named(wanted), comparison)
        elif wanted:
            comparison.structure["missing tables"] += 1
            comparison.lost += _Named(wanted).data()
            comparison.sums += sums_held([], _Named(wanted).cells)
        elif predicted:
            comparison.structure["extra tables"] += 1
            comparison.predicted += _Named(predicted).data()
    return comparison


class _Named:
    """A table with names for its rows and columns.

    Args:
        table: as it was read.
        head_rows: how many rows are its head where its own markup does not say.

    Attributes:
        corner: the name of the column of row names.
        columns: the names of the others; in a head of several rows the texts above one another.
        rows: the names of the rows below the head.
        cells: the data, all rows of one length.
    """

    def __init__(self, table: CellGrid, head_rows: int = 1) -> None:
        head = table.head_rows or head_rows
        # A table that is head throughout has its names in the first row all the same.
        head = head if 0 < head < len(table.rows) else 1
        filled = [[*row, *[""] * (table.width - len(row))] for row in table.rows]
        names = [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*filled[:head], strict=True)]
        self.has_row_names = table.width > 1
        first = int(self.has_row_names)
        self.corner = next(iter(names[:first]), "")
        self.columns = names[first:]
        self.rows = [row[0] if self.has_row_names else "" for row in filled[head:]]
        self.cells = [row[first:] for row in filled[head:]]

    def data(self) -> list[str]:
        return [cell for row in self.cells for cell in row]


def _compare_pair(predicted: _Named, wanted: _Named, comparison: TableComparison) -> None:
    rows, columns = align(predicted.rows, wanted.rows), align(predicted.columns, wanted.columns)
    for dimension, pairs, names in (
        ("rows", rows, (predicted.rows, wanted.rows)),
        ("columns", columns, (predicted.columns, wanted.columns)),
    ):
        comparison.structure[f"missing {dimension}"] += sum(one is None for one, _ in pairs)
        comparison.structure[f"extra {dimension}"] += sum(other is None for _, other in pairs)
        comparison.structure[f"moved {dimension}"] += _moved(pairs)
        both = (
            (names[0][one], names[1][other]) for one, other in pairs if one is not None and other is not None
        )
        comparison.names += [(one, other) for one, other in both if _name(one) != _name(other)]
    corners = (predicted.corner, wanted.corner)
    if predicted.has_row_names and wanted.has_row_names and _name(corners[0]) != _name(corners[1]):
        comparison.names.append(corners)
    comparison.predicted += predicted.data()
    comparison.sums += sums_held(_arranged(predicted, rows, columns), wanted.cells)
    for predicted_row, wanted_row in rows:
        for predicted_column, wanted_column in columns:
            if wanted_row is None or wanted_column is None:
                continue
            cell = wanted.cells[wanted_row][wanted_column]
            if predicted_row is None or predicted_column is None:
                comparison.lost.append(cell)
            else:
                answered = predicted.cells[predicted_row][predicted_column]
                comparison.cells.append(CellPair(answered, cell, judge_cell(answered, cell)))


def _moved(pairs: Sequence[tuple[int | None, int | None]]) -> int:
    """How many lines would have to be moved to stand in the wanted order; `pairs` are in that order."""
    places = [one for one, other in pairs if one is not None and other is not None]
    return len(places) - longest_ascent(places)


def _arranged(
    predicted: _Named,
    rows: Sequence[tuple[int | None, int | None]],
    columns: Sequence[tuple[int | None, int | None]],
) -> list[list[str]]:
    """The predicted data in the wanted rows and columns, blank where there is none."""
    return [
        [
            predicted.cells[row][column] if row is not None and column is not None else ""
            for column, wanted_column in columns
            if wanted_column is not None
        ]
        for row, wanted_row in rows
        if wanted_row is not None
    ]


def longest_ascent(places: Sequence[int]) -> int:
    """The length of the longest ascending series among distinct numbers, neighbours or not."""
    lasts: list[int] = []
    for place in places:
        at = bisect_left(lasts, place)
        lasts[at : at + 1] = [place]
    return len(lasts)


def judge_cell(predicted: str, wanted: str) -> CellVerdict:
    """How a predicted data cell compares with the wanted one."""
    if same_form(predicted, wanted):
        return "blank" if is_blank(wanted) else "same"
    if is_blank(wanted):
        return "other form" if is_blank(predicted) else "unwanted"
    if is_blank(predicted):
        return "missing"
    return "other form" if value_of(predicted) == value_of(wanted) != "" else "differs"


def align(predicted: Sequence[str], wanted: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Pairs of places: equal names first, the first with the first; then the rest by position.

    Returns:
        Predicted and wanted place, the wanted ones in order, then what is too many; None where one has no
        partner.
    """
    waiting: dict[str, deque[int]] = {}
    for place, name in enumerate(predicted):
        waiting.setdefault(_name(name), deque()).append(place)
    partners = {
        place: waiting[_name(name)].popleft()
        for place, name in enumerate(wanted)
        if _name(name) and waiting.get(_name(name))
    }
    rest = deque(_without(range(len(predicted)), partners.values()))
    pairs: list[tuple[int | None, int | None]] = []
    for place in range(len(wanted)):
        partner = partners[place] if place in partners else rest.popleft() if rest else None
        pairs.append((partner, place))
    return [*pairs, *((place, None) for place in rest)]


def pair_tables(prediction: Sequence[CellGrid], reference: Sequence[CellGrid]) -> list[Pair]:
    """Pair tables by their names, then the rest by their order; None where a table has no partner."""
    by_name: dict[str, deque[int]] = {}
    for place, table in enumerate(prediction):
        by_name.setdefault(table.name.casefold(), deque()).append(place)
    partners: dict[int, int] = {}
    for place, wanted in enumerate(reference):
        if wanted.name and by_name.get(wanted.name.casefold()):
            partners[place] = by_name[wanted.name.casefold()].popleft()
    taken = set(partners.values())
    rest = deque(table for place, table in enumerate(prediction) if place not in taken)
    pairs: list[Pair] = []
    for place, wanted in enumerate(reference):
        partner = prediction[partners[place]] if place in partners else None
        pairs.append((partner or (rest.popleft() if rest else None), wanted))
    return [*pairs, *((extra, None) for extra in rest)]


def _without(places: Iterable[int], taken: Iterable[int]) -> list[int]:
    gone = set(taken)
    return [place for place in places if place not in gone]


def _name(name: str) -> str:
    return " ".join(name.casefold().split())
