"""One LaTeX table: from the tokens of a tabular environment to rows of cells."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.grid import WIDEST_SPAN, CellGrid
from evalsuite.metrics.tables.standard.latex_columns import read_columns
from evalsuite.metrics.tables.standard.latex_macros import CAPTIONS, ROW_END_MACROS
from evalsuite.metrics.tables.standard.latex_text import TextReader, read_caption

if TYPE_CHECKING:
    from collections.abc import Collection

    from evalsuite.metrics.tables.standard.latex_tokens import LatexSource

SPANNING = frozenset({"multicolumn", "multirow"})
HEADS_AND_FEET = frozenset({"endfirsthead", "endhead", "endfoot", "endlastfoot"})


@dataclass(frozen=True, slots=True)
class Span:
    """How many columns and rows the current cell covers; negative rows are those above."""

    columns: int = 1
    rows: int = 1


@dataclass(frozen=True, slots=True)
class SpannedCell:
    """A cell of the markup: cells below one that covers several rows are there, and blank."""

    text: str
    span: Span


class Tabular:
    r"""A tabular environment. `&` and `\\` count where no group and no other environment holds them.

    Args:
        source: the text it stands in.
        begin: the place of its `begin` token.

    Attributes:
        end: the place of the token that ends it.
        caption: of a caption within it; empty if there is none.
    """

    def __init__(self, source: LatexSource, begin: int) -> None:
        self.source, self.end = source, source.partner[begin]
        self.caption = ""
        self._rows: list[list[SpannedCell]] = [[]]
        self._text = TextReader(source)
        self._span = Span()
        self._head_starts = 0
        self._has_first_head = False
        columns, place = self._text.after_columns(source.tokens[begin].value, begin + 1)
        self.alignment = read_columns(columns)
        inside = 0
        while place < self.end:
            inside = max(0, inside + self._step_inside(place))
            place = self._read_inside(place) if inside else self._read(place)
        self._end_row()

    def read(self, caption: str = "") -> CellGrid:
        """The table; the caption is for one that has none within it."""
        allowance = 100 + 20 * sum(map(len, self._rows))
        grid, written = list[list[str]](), list[bool]()
        hanging: list[tuple[int, int, SpannedCell]] = []
        for cells in self._rows:
            row: list[str] = []
            for cell in cells:
                columns = min(cell.span.columns, WIDEST_SPAN, max(0, allowance) + 1)
                allowance -= columns - 1
                if cell.span.rows != 1:
                    hanging += [(len(grid), len(row) + place, cell) for place in range(columns)]
                row += [cell.text] * columns
            grid.append(row)
            written.append(any(row))
        for row_place, column_place, cell in hanging:
            _fill(grid, row_place, column_place, cell)
        rows = tuple(tuple(row) for row, keep in zip(grid, written, strict=True) if keep)
        return CellGrid(rows, name=self.caption or caption, alignment=self.alignment)

    def _step_inside(self, place: int) -> int:
        """1 where a group or another environment begins, -1 where it ends."""
        partner = self.source.partner.get(place)
        # An environment that is never ended has a partner that is not its own, and holds nothing.
        if partner is None or self.source.partner.get(partner) != place:
            return 0
        return 1 if partner > place else -1

    def _read(self, place: int) -> int:
        """Reads a token of the tabular itself; gives the place after it and its arguments."""
        token = self.source.tokens[place]
        if token.kind == "ampersand":
            self._end_cell()
            return place + 1
        if (token.kind == "sign" and token.value == "\\") or self._is_macro(place, ROW_END_MACROS):
            self._end_row()
            return self.source.option_end(self.source.after_star(place + 1))
        if self._is_macro(place, CAPTIONS):
            self.caption, place = read_caption(self.source, place)
            return place
        if self._is_macro(place, HEADS_AND_FEET):
            self._end_head(token.value)
        return self._read_inside(place)

    def _read_inside(self, place: int) -> int:
        """Reads a token of a cell's text."""
        if self._is_macro(place, SPANNING):
            return self._read_span(self.source.tokens[place].value, place + 1)
        return self._text.read(place)

    def _is_macro(self, place: int, names: Collection[str]) -> bool:
        token = self.source.tokens[place]
        return token.kind == "macro" and token.value in names

    def _read_span(self, name: str, place: int) -> int:
        """Notes how far a cell reaches; its text, the last argument, is read like any other group."""
        (count, *_), place = self.source.arguments(place, 2)
        if name == "multicolumn":
            self._span = replace(self._span, columns=max(1, _whole_number(count)))
        else:
            self._span = replace(self._span, rows=_whole_number(count))
        return place

    def _end_cell(self) -> None:
        self._rows[-1].append(SpannedCell(self._text.take(), self._span))
        self._span = Span()

    def _end_row(self) -> None:
        self._end_cell()
        self._rows.append([])

    def _end_head(self, macro: str) -> None:
        """Ends one of a longtable's heads and feet: of the heads the first is kept, of the feet none."""
        if macro != "endfirsthead" and (macro != "endhead" or self._has_first_head):
            del self._rows[self._head_starts : -1]
        self._has_first_head |= macro == "endfirsthead"
        self._head_starts = len(self._rows) - 1


def _fill(grid: list[list[str]], row: int, column: int, cell: SpannedCell) -> None:
    """Writes a cell's text into the blank cells below or above it, as far as it reaches."""
    step = 1 if cell.span.rows > 0 else -1
    for place in range(row + step, row + cell.span.rows, step):
        if not 0 <= place < len(grid) or column >= len(grid[place]) or grid[place][column]:
            return
        grid[place][column] = cell.text


def _whole_number(text: str) -> int:
    found = re.fullmatch(r"\s*([+-]?[0-9]{1,6})\s*", text)
    return int(found[1]) if found else 1
