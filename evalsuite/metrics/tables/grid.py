"""Tables as rows of cell texts, independent of markup; the text of a cell with a span fills all of its places."""

from __future__ import annotations

import unicodedata
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


Format = Literal["markdown", "html", "latex"]
Variant = Literal["standard", "released"]
FORMATS: tuple[Format, ...] = ("markdown", "html", "latex")
VARIANTS: tuple[Variant, ...] = ("released",)


WIDEST_SPAN = 1000
"""HTML's own limit for `colspan`."""


@dataclass(frozen=True, slots=True)
class Span:
    """A cell that covers several places: text, first row and column (from 0), numbers of rows and columns."""

    text: str
    row: int
    column: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class CellGrid:
    """A table read from markup.

    Attributes:
        rows: the texts of the cells, with white space collapsed; rows may differ in length. The first row
            contains the names of the columns.
        name: the line above a raw-text table, or the caption of an HTML or LaTeX table; empty without one.
        alignment: one letter per column in LaTeX (`l`, `c`, `r`, `p`, ...), without rules and widths.
        head_rows: the number of rows marked as heads: in raw text the rows above the line of dashes, in HTML
            rows of `th` alone or in `thead`, in LaTeX the rows above the first rule that has rows on both
            sides.
        spans: the cells that cover several places.
        bold: the texts of the cells that are at least partly bold.
        rules: the number of horizontal lines (LaTeX); 1 for an HTML table with a border.
        borders: the number of vertical lines in the column specification (LaTeX).
        stray_rules: the number of horizontal lines within a row, which LaTeX refuses.
    """

    rows: tuple[tuple[str, ...], ...]
    name: str = ""
    alignment: tuple[str, ...] = ()
    head_rows: int = 0
    spans: tuple[Span, ...] = ()
    bold: tuple[str, ...] = ()
    rules: int = 0
    borders: int = 0
    stray_rules: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns: the first row."""
        return self.rows[0] if self.rows else ()

    @property
    def data(self) -> list[str]:
        """The cells of all rows but the first, in order; the first cell in each row is the row's name."""
        return [cell for row in self.rows[1:] for cell in row]

    @property
    def cells(self) -> list[str]:
        """All cells, row by row."""
        return [cell for row in self.rows for cell in row]

    @property
    def width(self) -> int:
        """The number of cells in the widest row."""
        return max(map(len, self.rows), default=0)


def tidy(text: str) -> str:
    """Normalise a text for comparison: accents composed, white space collapsed to single spaces."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


@dataclass(frozen=True, slots=True)
class SourceCell:
    """A cell before its span is expanded.

    Attributes:
        text: the normalised text.
        columns: the number of columns that it covers, at least 1.
        rows: the number of rows that it covers, at least 1.
    """

    text: str
    columns: int = 1
    rows: int = 1


def lay_out(rows: Sequence[Sequence[SourceCell]], allowance: int, groups: Collection[int] = ()) -> list[list[str]]:
    """Fill the places that cells cover with copies of their texts, according to HTML's table model.

    Spans are cut off at the last row of their group.

    Args:
        rows: the cells of each row, without cells that reach into it from above.
        allowance: the approximate maximum of copies; beyond it, spans count as one cell. A few characters of
            markup can ask for millions of cells.
        groups: indexes of the rows at which a group, such as a head or a body, begins.
    """
    grid: list[list[str]] = []
    hanging: dict[int, tuple[str, int]] = {}
    for place, cells in enumerate(rows):
        reaches = allowance > 0 and place not in groups
        row, hanging = _lay_out_row(cells, hanging if reaches else {}, max(allowance, 0))
        allowance -= len(row) - len(cells)
        grid.append(row)
    return grid


def _lay_out_row(
    cells: Sequence[SourceCell], hanging: dict[int, tuple[str, int]], allowance: int
) -> tuple[list[str], dict[int, tuple[str, int]]]:
    """Lay out a row; return also the texts that reach into the next rows, with their number of rows."""
    row: list[str] = []
    below: dict[int, tuple[str, int]] = {}
    waiting, width = deque(cells), max(hanging, default=-1) + 1
    while waiting or len(row) < width:
        if len(row) in hanging:
            text, rows, columns = *hanging[len(row)], 1
        elif waiting:
            cell = waiting.popleft()
            text, rows, columns = cell.text, cell.rows, min(cell.columns, WIDEST_SPAN, allowance + 1)
            allowance -= columns - 1
        else:
            text, rows, columns = "", 1, 1
        if rows > 1:
            below.update((place, (text, rows - 1)) for place in range(len(row), len(row) + columns))
        row += [text] * columns
    return row, below
