"""Tables as rows of cell texts, independent of markup. A spanning cell's text fills all positions that it covers."""

import unicodedata
from dataclasses import dataclass
from typing import Literal

Format = Literal["markdown", "html", "latex"]
Variant = Literal["standard", "released"]
FORMATS: tuple[Format, ...] = ("markdown", "html", "latex")
VARIANTS: tuple[Variant, ...] = ("released",)
WIDEST_SPAN = 1000  # HTML's own limit for `colspan`.


@dataclass(frozen=True, slots=True)
class Span:
    """A cell that covers several positions: text, first row and column (from 0), numbers of rows and columns."""

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
        name: the line above a raw-text table, or the caption of an HTML or LaTeX table; empty without a name.
        alignment: one letter per column in LaTeX (`l`, `c`, `r`, `p`, ...), without rules and widths.
        head_rows: the number of head rows. In raw text, these are the rows above the line of dashes; in HTML, the rows
            in `thead` or with only `th` cells; in LaTeX, the rows above the first rule that has rows on both sides.
        spans: the cells that cover several positions.
        bold: the texts of the cells that are at least partly bold.
        rules: the number of horizontal lines (LaTeX); 1 for an HTML table with a border.
        borders: the number of vertical lines in the column specification (LaTeX).
        refused: the number of mistakes that LaTeX refuses: horizontal lines within a row, rows without an end, text
            before a span.
    """

    rows: tuple[tuple[str, ...], ...]
    name: str = ""
    alignment: tuple[str, ...] = ()
    head_rows: int = 0
    spans: tuple[Span, ...] = ()
    bold: tuple[str, ...] = ()
    rules: int = 0
    borders: int = 0
    refused: int = 0

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


def normalise_text(text: str) -> str:
    """Normalise a text for comparison: accents composed, white space collapsed to single spaces."""
    return unicodedata.normalize("NFC", " ".join(text.split()))
