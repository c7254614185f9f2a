"""Parse HTML to a stream of tags and texts, with the parser that BeautifulSoup's `lxml` uses, but without a tree.

Building BeautifulSoup's tree takes ten times as long as parsing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables.grid import WIDEST_SPAN, CellGrid, SourceCell, Span, lay_out, tidy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


WHITELIST = frozenset({
    "table", "tr", "th", "td", "ul", "ol", "li", "div", "span", "p", "a", "img", "embed", "pre", "h1", "h2", "h3",
    "h4", "h5", "h6", "input", "button",
})  # fmt: skip
BYTE_ORDER_MARK = "\ufeff"


class HtmlListener:
    """Methods that lxml calls while it parses. Every start has its end; a text may arrive in several pieces."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""

    def end(self, tag: str) -> None:
        """Handle the end of an element."""

    def data(self, text: str) -> None:
        """Handle a piece of text."""

    def comment(self, text: str) -> None:
        """Handle a comment, which separates the texts around it."""

    def pi(self, target: str, text: str) -> None:
        """Handle a processing instruction, which also separates texts."""

    def doctype(self, name: str, public: str, system: str) -> None:
        """Handle a document type, which also separates texts."""

    def close(self) -> None:
        """Handle the end of the document."""


def listen(markup: str, listener: HtmlListener) -> None:
    """Parse any text as HTML without errors. Lone surrogates are read as question marks.

    Raises:
        ScoringError: the parser failed; no input is known to cause this.
    """
    from lxml import etree

    text = markup.removeprefix(BYTE_ORDER_MARK).encode("utf-8", "replace").decode("utf-8")
    parser = etree.HTMLParser(target=listener, recover=True)
    try:
        # Pass the text by `feed`, because libxml2 parses slightly differently if it gets the whole text at
        # once.
        parser.feed(text)
        parser.close()
    except etree.LxmlError as error:
        raise ScoringError(f"lxml could not read HTML of {len(markup)} characters: {error}") from error


CELL_TAGS = frozenset({"th", "td"})
TABLE_TAGS = frozenset({"table", "caption", "tr", *CELL_TAGS})
GROUP_TAGS = frozenset({"thead", "tbody", "tfoot"})
LIST_TAGS = frozenset({"ul", "ol", "li"})
APART = frozenset({"p", "div", "ul", "ol", "li", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "br", "hr"})
"""Tags that separate words: the texts before, within and after them do not form one word."""
BOLD_TAGS = frozenset({"b", "strong"})
HIDDEN = frozenset({"script", "style", "template", "head"})
SCRIPTS = {"sup": "^", "sub": "_"}
NUMBER = re.compile(r"\s*\+?([0-9]{1,6})")
TALLEST_SPAN = 65_534
"""HTML's own limit for `rowspan`; the value 0, which means the rest of the table, is read as this number."""


@dataclass(slots=True)
class _Cell:
    """A cell or a caption whose text is being collected."""

    columns: int = 1
    rows: int = 1
    texts: list[str] = field(default_factory=list)
    is_head: bool = False
    is_bold: bool = False

    def text(self) -> str:
        return tidy("".join(self.texts))


@dataclass(slots=True)
class _Table:
    """A table that is being read.

    Attributes:
        rows: the cells of each row; empty if all places of the row are covered from above.
        groups: indexes of the rows at which a head, a body or a foot begins or ends.
    """

    rows: list[list[_Cell]] = field(default_factory=list)
    groups: set[int] = field(default_factory=set)
    caption: _Cell = field(default_factory=_Cell)
    in_row: bool = False
    in_head: bool = False
    border: int = 0

    def begin_row(self) -> None:
        self.rows.append([])
        self.in_row = True

    def add(self, cell: _Cell) -> None:
        if not self.in_row:
            self.begin_row()
        self.rows[-1].append(cell)

    def read(self) -> CellGrid:
        rows = [[SourceCell(cell.text(), cell.columns, cell.rows) for cell in row] for row in self.rows]
        laid_out = lay_out(rows, allowance=100 + 20 * sum(map(len, rows)), groups=self.groups)
        grid = tuple(tuple(row) for row in laid_out if row)
        cells = [
            (built, read)
            for row, texts in zip(self.rows, rows, strict=True)
            for built, read in zip(row, texts, strict=True)
        ]
        return CellGrid(
            grid,
            name=self.caption.text(),
            head_rows=self._head_rows(),
            spans=self._spans(rows, len(grid)),
            bold=tuple(cell.text for built, cell in cells if built.is_bold and not built.is_head),
            rules=self.border,
        )

    def _spans(self, rows: list[list[SourceCell]], height: int) -> tuple[Span, ...]:
        """Return the cells that cover several places, found by laying out their numbers instead of their texts."""
        cells = [cell for row in rows for cell in row]
        if all(cell.rows == cell.columns == 1 for cell in cells):
            return ()
        numbers = count()
        numbered = [[replace(cell, text=str(next(numbers))) for cell in row] for row in rows]
        places: dict[str, list[tuple[int, int]]] = {}
        laid_out = lay_out(numbered, allowance=100 + 20 * len(cells), groups=self.groups)
        for place, row in enumerate(row for row in laid_out if row):
            for column, number in enumerate(row):
                places.setdefault(number, []).append((place, column))
        return tuple(
            Span(
                cells[int(number)].text,
                *covered[0],
                covered[-1][0] - covered[0][0] + 1,
                covered[-1][1] - covered[0][1] + 1,
            )
            for number, covered in places.items()
            if number and len(covered) > 1 and covered[-1][0] < height
        )

    def _head_rows(self) -> int:
        """Count the rows at the top that contain only head cells."""
        rows = [row for row in self.rows if row]
        return next((place for place, row in enumerate(rows) if not all(cell.is_head for cell in row)), len(rows))


class PageTables(HtmlListener):
    """The tables of an HTML page.

    A table within a cell is a separate table, and its text is not part of the outer cell. Cells outside of
    any table are read as one table.
    """

    def __init__(self, markup: str) -> None:
        self._tables: list[_Table] = []
        self._open_tables: list[_Table] = []
        self._open_cells: list[_Cell] = []
        self._stream: list[tuple[str, str]] = []
        self._hidden = 0
        self._script = ""
        listen(markup, self)

    @property
    def tables(self) -> list[CellGrid]:
        """All tables with cells, in the order in which they begin."""
        return [table.read() for table in self._tables if any(table.rows)]

    def texts(self, tags: Collection[str]) -> list[str]:
        """Return the texts within elements of these tags, split where one begins or ends, without blank texts."""
        runs, depth = [""], 0
        for tag, text in self._stream:
            if not tag:
                runs[-1] += text if depth else ""
            elif tag.strip("/") in tags:
                depth += -1 if tag[0] == "/" else 1
                runs.append("")
        return [run for run in map(tidy, runs) if run]

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        self._hidden += tag in HIDDEN
        self._script = SCRIPTS.get(tag, "")
        if tag in APART:
            self.data(" ")
        cell = _Cell(*_spans(attributes)) if tag in CELL_TAGS else _Cell()
        if tag in BOLD_TAGS and self._open_cells:
            self._open_cells[-1].is_bold = True
        if tag in WHITELIST:
            self._stream.append((tag, ""))
        if tag in TABLE_TAGS:
            self._start_in_table(tag, cell)
            if tag == "table":
                self._open_tables[-1].border = int(attributes.get("border", "0").strip() not in {"", "0"})
        elif tag in GROUP_TAGS:
            self._part_groups(in_head=tag == "thead")

    def _start_in_table(self, tag: str, cell: _Cell) -> None:
        if tag == "table" or not self._open_tables:
            self._open_tables.append(_Table())
            self._tables.append(self._open_tables[-1])
        table = self._open_tables[-1]
        if tag == "tr":
            table.begin_row()
            return
        # A table also collects the text between its cells, so that it does not become part of the surrounding
        # cell.
        self._open_cells.append(cell)
        if tag in CELL_TAGS:
            cell.is_head = tag == "th" or table.in_head
            table.add(cell)
        elif tag == "caption":
            table.caption = cell

    def _part_groups(self, *, in_head: bool = False) -> None:
        if self._open_tables:
            table = self._open_tables[-1]
            table.groups.add(len(table.rows))
            table.in_head = in_head

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        self._hidden -= tag in HIDDEN
        if tag in WHITELIST:
            self._stream.append((f"/{tag}", ""))
        if tag == "tr":
            self._open_tables[-1].in_row = False
        elif tag in TABLE_TAGS:
            self._open_cells.pop()
        elif tag in GROUP_TAGS:
            self._part_groups()
        if tag == "table":
            self._open_tables.pop()
        if tag in APART:
            self.data(" ")

    def data(self, text: str) -> None:
        """Handle a piece of text."""
        if self._hidden:
            return
        self._stream.append(("", text))
        if self._open_cells:
            texts = self._open_cells[-1].texts
            # A raised or lowered number must stay separate from the one before it: 10<sup>3</sup> is not 103.
            if self._script and texts and texts[-1][-1:].isalnum() and text.lstrip("+-\u2212")[:1].isdigit():
                texts.append(self._script)
            texts.append(text)
        self._script = ""


def _spans(attributes: Mapping[str, str]) -> tuple[int, int]:
    """Read how many columns and rows a cell covers; anything but a number counts as 1."""
    if not attributes:
        return 1, 1
    columns, rows = (NUMBER.match(attributes.get(name, "")) for name in ("colspan", "rowspan"))
    return (
        min(int(columns[1]) or 1, WIDEST_SPAN) if columns else 1,
        min(int(rows[1]) or TALLEST_SPAN, TALLEST_SPAN) if rows else 1,
    )
