"""Names, data cells and structure of an output, read off the comparison that the table score is computed from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from evalsuite.benchmarks.struc_bench.sums import sums_held
from evalsuite.metrics.tables.cell_text import cell_value, plain_text
from evalsuite.metrics.tables.cell_values import is_blank, same_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.metrics.tables import CellGrid
    from evalsuite.metrics.tables.content import ContentComparison, TablePair

CellVerdict = Literal["same", "other form", "differs", "missing", "unwanted", "blank"]
"""`missing`: blank though a value was wanted. `unwanted`: a value though blank was wanted. `blank`: both blank."""
RIGHT: frozenset[CellVerdict] = frozenset({"same", "other form", "blank"})
"""Verdicts of cells that cost no content."""


@dataclass(frozen=True, slots=True)
class CellPair:
    """A wanted data cell and the predicted cell in its place, without markup."""

    predicted: str
    wanted: str
    verdict: CellVerdict


@dataclass(slots=True)
class TableComparison:
    """The differences between all tables of two texts.

    The head rows of a wanted table (its first row, where the markup marks none) hold the names of its columns. In
    tables of two columns or more, the first column holds the names of the rows. The other cells are data.

    Attributes:
        tables: the number of wanted tables.
        structure: numbers of tables, rows and columns that are missing or not wanted, by `missing rows` and so on.
        names: names of rows and columns that differ from the wanted ones, as (predicted, wanted).
        cells: all data cells that both sides have.
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


def compare(content: ContentComparison, wanted: Sequence[CellGrid]) -> TableComparison:
    """Read names, data and structure off the comparison of contents."""
    comparison = TableComparison(tables=len(wanted))
    for pair in content.pairs:
        _add_table(pair, wanted[pair.wanted].head_rows, comparison)
    comparison.structure["extra tables"] += len(content.extra)
    for table in content.extra:
        first = int(table.width > 1)
        comparison.predicted += [text for row in _plain(table.texts)[1:] for text in row[first:]]
    return comparison


def judge_cell(predicted: str, wanted: str) -> CellVerdict:
    """Compare a cell with the wanted one; both are given without markup."""
    if is_blank(predicted) and is_blank(wanted):
        return "blank" if same_form(predicted, wanted) else "other form"
    if is_blank(wanted):
        return "unwanted"
    if is_blank(predicted):
        return "missing"
    if cell_value(predicted) != cell_value(wanted):
        return "differs"
    return "same" if same_form(predicted, wanted) else "other form"


def _add_table(pair: TablePair, head_rows: int, comparison: TableComparison) -> None:
    wanted, predicted = _plain(pair.right.texts), _plain(pair.left.texts)
    # A table of head rows alone has its names in the first row.
    head = head_rows if 0 < head_rows < len(wanted) else 1
    first = int(pair.right.width > 1)
    rows = {there: here for here, there in pair.rows}
    columns = {there: here for here, there in pair.columns}
    arranged: list[list[str]] = []
    for row, texts in enumerate(wanted):
        line: list[str] = []
        for column, text in enumerate(texts):
            is_name = row < head or column < first
            answered = predicted[rows[row]][columns[column]] if row in rows and column in columns else None
            if is_name:
                if answered is not None and judge_cell(answered, text) not in RIGHT:
                    comparison.names.append((answered, text))
                continue
            line.append(answered or "")
            if answered is None:
                comparison.lost.append(text)
            else:
                comparison.cells.append(CellPair(answered, text, judge_cell(answered, text)))
        if row >= head:
            arranged.append(line)
    comparison.sums += sums_held(arranged, [texts[first:] for texts in wanted[head:]])
    if pair.predicted is None:
        comparison.structure["missing tables"] += 1
        return
    heads = {rows[row] for row in range(head) if row in rows}
    named = {columns[column] for column in range(first) if column in columns}
    comparison.predicted += [
        text
        for row, texts in enumerate(predicted)
        if row not in heads
        for column, text in enumerate(texts)
        if column not in named
    ]
    comparison.structure += Counter(
        {
            "missing rows": len(wanted) - len(rows),
            "extra rows": len(predicted) - len(rows),
            "missing columns": pair.right.width - len(columns),
            "extra columns": pair.left.width - len(columns),
        }
    )


def _plain(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[plain_text(text) for text in row] for row in rows]
