"""A predicted table against the wanted one, cell by cell: names first, then positions."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from evalsuite.metrics.tables import pair_tables
from evalsuite.metrics.tables.cell_values import is_blank, same_form, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.metrics.tables import CellGrid

CellVerdict = Literal["same", "other form", "differs", "missing", "unwanted", "blank"]
"""`missing`: it should hold something and does not. `unwanted`: it should be empty. `blank`: it is, and should be."""


@dataclass(frozen=True, slots=True)
class CellPair:
    """A wanted data cell and what stands in its place."""

    predicted: str
    wanted: str
    verdict: CellVerdict


@dataclass(slots=True)
class TableComparison:
    """What the comparison of all tables of two texts found.

    A table's first row holds the names of its columns and, in tables of two columns or more, its first
    column those of its rows; the other cells are data.

    Attributes:
        tables: how many tables were wanted. Of a reference without any, a list say, no cell is compared.
        structure: tables, rows and columns that are missing or too many, by `missing rows` and so on.
        names: row and column names that differ from the wanted ones, as (predicted, wanted); the name of the
            column of row names is one of them.
        cells: every data cell that both sides have.
        lost: data cells of wanted rows, columns and tables that the prediction lacks.
        predicted: all data cells of the prediction.
    """

    tables: int = 0
    structure: Counter[str] = field(default_factory=Counter)
    names: list[tuple[str, str]] = field(default_factory=list)
    cells: list[CellPair] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    predicted: list[str] = field(default_factory=list)

    @property
    def wanted(self) -> list[str]:
        """All data cells of the reference."""
        return [*(pair.wanted for pair in self.cells), *self.lost]


def compare(prediction: Sequence[CellGrid], reference: Sequence[CellGrid]) -> TableComparison:
    """Compares all tables; see `pair_tables` for which is compared with which."""
    found = TableComparison(tables=len(reference))
    for predicted, wanted in pair_tables(prediction, reference):
        if predicted and wanted:
            _compare_pair(_Named(predicted), _Named(wanted), found)
        elif wanted:
            found.structure["missing tables"] += 1
            found.lost += _Named(wanted).data()
        elif predicted:
            found.structure["extra tables"] += 1
            found.predicted += _Named(predicted).data()
    return found


class _Named:
    """A table with names for its rows and columns."""

    def __init__(self, table: CellGrid) -> None:
        self.has_row_names = table.width > 1
        first = int(self.has_row_names)
        self.corner = next(iter(table.columns[:first]), "")
        self.columns = [*table.columns[first:], *[""] * (table.width - max(len(table.columns), first))]
        self.rows = [row[0] if row and self.has_row_names else "" for row in table.rows[1:]]
        self._cells = [row[first:] for row in table.rows[1:]]

    def cell(self, row: int, column: int) -> str:
        """A data cell; empty beyond the end of a short row."""
        cells = self._cells[row]
        return cells[column] if column < len(cells) else ""

    def data(self) -> list[str]:
        return [
            self.cell(row, column) for row in range(len(self.rows)) for column in range(len(self.columns))
        ]


def _compare_pair(predicted: _Named, wanted: _Named, found: TableComparison) -> None:
    rows, columns = align(predicted.rows, wanted.rows), align(predicted.columns, wanted.columns)
    for what, pairs, names in (
        ("rows", rows, (predicted.rows, wanted.rows)),
        ("columns", columns, (predicted.columns, wanted.columns)),
    ):
        found.structure[f"missing {what}"] += sum(one is None for one, _ in pairs)
        found.structure[f"extra {what}"] += sum(other is None for _, other in pairs)
        both = (
            (names[0][one], names[1][other]) for one, other in pairs if one is not None and other is not None
        )
        found.names += [(one, other) for one, other in both if _name(one) != _name(other)]
    corners = (predicted.corner, wanted.corner)
    if predicted.has_row_names and wanted.has_row_names and _name(corners[0]) != _name(corners[1]):
        found.names.append(corners)
    found.predicted += predicted.data()
    for predicted_row, wanted_row in rows:
        for predicted_column, wanted_column in columns:
            if wanted_row is None or wanted_column is None:
                continue
            cell = wanted.cell(wanted_row, wanted_column)
            if predicted_row is None or predicted_column is None:
                found.lost.append(cell)
            else:
                said = predicted.cell(predicted_row, predicted_column)
                found.cells.append(CellPair(said, cell, judge_cell(said, cell)))


def judge_cell(predicted: str, wanted: str) -> CellVerdict:
    """How a predicted data cell stands to the wanted one."""
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


def _without(places: Iterable[int], taken: Iterable[int]) -> list[int]:
    gone = set(taken)
    return [place for place in places if place not in gone]


def _name(name: str) -> str:
    return " ".join(name.casefold().split())
