"""Read the tables of HTML from a stream of tags and texts, with the same parser as BeautifulSoup with `lxml`.

No tree is built, because building BeautifulSoup's tree takes ten times as long as parsing.
"""

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables.grid import WIDEST_SPAN, CellGrid, Span, normalise_text

WHITELIST = frozenset({
    "table", "tr", "th", "td", "ul", "ol", "li", "div", "span", "p", "a", "img", "embed", "pre", "h1", "h2", "h3",
    "h4", "h5", "h6", "input", "button",
})  # fmt: skip
BYTE_ORDER_MARK = "\ufeff"


def parse_html(markup: str, listener: Any) -> None:
    """Parse any text as HTML, however broken; lone surrogates are read as question marks.

    lxml calls the methods `start`, `end`, `data` and `close` of the listener, and also `comment`, `pi` and `doctype` if
    they exist. Each call of `start` has a matching call of `end`; a text may arrive in several pieces.
    """
    from lxml import etree

    text = markup.removeprefix(BYTE_ORDER_MARK).encode("utf-8", "replace").decode("utf-8")
    parser = etree.HTMLParser(target=listener, recover=True)
    try:
        # Pass the text by `feed`, because libxml2 parses slightly differently if it gets the whole text at once.
        parser.feed(text)
        parser.close()
    except etree.LxmlError as error:
        raise ScoringError(f"lxml could not read HTML of {len(markup)} characters: {error}") from error


CELL_TAGS = frozenset({"th", "td"})
TABLE_TAGS = frozenset({"table", "caption", "tr", *CELL_TAGS})
GROUP_TAGS = frozenset({"thead", "tbody", "tfoot"})
LIST_TAGS = frozenset({"ul", "ol", "li"})
WORD_SEPARATING_TAGS = frozenset({"p", "div", "ul", "ol", "li", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "br", "hr"})
"""Tags that separate words: the texts before, within and after them do not form one word."""
BOLD_TAGS = frozenset({"b", "strong"})
HIDDEN = frozenset({"script", "style", "template", "head"})
SCRIPTS = {"sup": "^", "sub": "_"}
NUMBER = re.compile(r"\s*\+?([0-9]{1,6})")
TALLEST_SPAN = 65_534
"""HTML's own limit for `rowspan`; the value 0, which means the rest of the table, is read as this number."""


@dataclass(slots=True, eq=False)
class HtmlCell:
    """A cell or a caption whose text is being collected."""

    columns: int = 1
    rows: int = 1
    texts: list[str] = field(default_factory=list)
    is_head: bool = False
    is_bold: bool = False

    @property
    def text(self) -> str:
        return normalise_text("".join(self.texts))


def lay_out_rows(
    rows: Sequence[Sequence[HtmlCell]], copies_left: int, groups: Collection[int] = ()
) -> list[list[HtmlCell | None]]:
    """Find the cell that covers each position, by HTML's table model; None for an uncovered position.

    Spans end at the last row of their row group (head, body or foot). After about `copies_left` copies of cells,
    further spans are ignored, because a few characters of markup can request millions of cells.
    """
    grid: list[list[HtmlCell | None]] = []
    hanging: dict[int, tuple[HtmlCell, int]] = {}  # The cells that extend into a row, with their remaining rows.
    for place, cells in enumerate(rows):
        if copies_left <= 0 or place in groups:
            hanging = {}
        row: list[HtmlCell | None] = []
        below: dict[int, tuple[HtmlCell, int]] = {}
        waiting, width = deque(cells), max(hanging, default=-1) + 1
        copies = max(copies_left, 0)
        while waiting or len(row) < width:
            cell, height, columns = None, 1, 1
            if len(row) in hanging:
                cell, height = hanging[len(row)]
            elif waiting:
                cell = waiting.popleft()
                height, columns = cell.rows, min(cell.columns, WIDEST_SPAN, copies + 1)
                copies -= columns - 1
            if cell and height > 1:
                below.update((at, (cell, height - 1)) for at in range(len(row), len(row) + columns))
            row += [cell] * columns
        copies_left -= len(row) - len(cells)
        grid.append(row)
        hanging = below
    return grid


@dataclass(slots=True)
class _UnfinishedTable:
    """A table that is being read."""

    rows: list[list[HtmlCell]] = field(default_factory=list)  # A row that cells from above cover completely is empty.
    # Row indexes at which a head, a body or a foot starts or ends.
    groups: set[int] = field(default_factory=set)
    caption: HtmlCell = field(default_factory=HtmlCell)
    in_row: bool = False
    in_head: bool = False
    border: int = 0

    def begin_row(self) -> None:
        self.rows.append([])
        self.in_row = True

    def make_grid(self) -> CellGrid:
        texts = {cell: cell.text for row in self.rows for cell in row}
        laid_out = [row for row in lay_out_rows(self.rows, 100 + 20 * len(texts), self.groups) if row]
        covered: dict[HtmlCell, list[tuple[int, int]]] = {}
        for place, row in enumerate(laid_out):
            for column, cell in enumerate(row):
                if cell:
                    covered.setdefault(cell, []).append((place, column))
        corners = ((cell, places[0], places[-1]) for cell, places in covered.items() if len(places) > 1)
        # The head ends above the first row with a data cell.
        heads = [all(cell.is_head for cell in row) for row in self.rows if row]
        return CellGrid(
            tuple(tuple(texts[cell] if cell else "" for cell in row) for row in laid_out),
            name=self.caption.text,
            head_rows=[*heads, False].index(False),
            spans=tuple(
                Span(texts[cell], *first, last[0] - first[0] + 1, last[1] - first[1] + 1)
                for cell, first, last in corners
            ),
            bold=tuple(text for cell, text in texts.items() if cell.is_bold and not cell.is_head),
            rules=self.border,
        )


class PageTables:
    """The tables of an HTML page.

    A table within a cell is a separate table, and its text is not part of the outer cell. Cells outside of
    any table are read as one table.
    """

    def __init__(self, markup: str) -> None:
        self._tables: list[_UnfinishedTable] = []
        self._open_tables: list[_UnfinishedTable] = []
        self._open_cells: list[HtmlCell] = []
        self._stream: list[tuple[str, str]] = []
        self._hidden = 0
        self._script = ""
        parse_html(markup, self)

    @property
    def tables(self) -> list[CellGrid]:
        """All tables with cells, in the order of their start tags."""
        return [table.make_grid() for table in self._tables if any(table.rows)]

    def list_texts(self, tags: Collection[str]) -> list[str]:
        """Return the nonblank texts within elements with these tags; each such start or end tag ends a text."""
        runs, depth = [""], 0
        for tag, text in self._stream:
            if not tag:
                runs[-1] += text if depth else ""
            elif tag.strip("/") in tags:
                depth += -1 if tag[0] == "/" else 1
                runs.append("")
        return [run for run in map(normalise_text, runs) if run]

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle an element's start tag."""
        self._hidden += tag in HIDDEN
        self._script = SCRIPTS.get(tag, "")
        if tag in WORD_SEPARATING_TAGS:
            self.data(" ")
        if tag in BOLD_TAGS and self._open_cells:
            self._open_cells[-1].is_bold = True
        if tag in WHITELIST:
            self._stream.append((tag, ""))
        if tag in TABLE_TAGS:
            self._start_table_element(tag, attributes)
        elif tag in GROUP_TAGS:
            self._separate_row_groups(in_head=tag == "thead")

    def _start_table_element(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "table" or not self._open_tables:
            self._open_tables.append(_UnfinishedTable())
            self._tables.append(self._open_tables[-1])
        table = self._open_tables[-1]
        if tag == "tr":
            table.begin_row()
            return
        # A table also collects the text between its cells, so that the surrounding cell does not contain that text.
        cell = HtmlCell()
        self._open_cells.append(cell)
        if tag in CELL_TAGS:
            # A span that is not a number counts as 1.
            if "colspan" in attributes and (columns := NUMBER.match(attributes["colspan"])):
                cell.columns = min(int(columns[1]) or 1, WIDEST_SPAN)
            if "rowspan" in attributes and (rows := NUMBER.match(attributes["rowspan"])):
                cell.rows = min(int(rows[1]) or TALLEST_SPAN, TALLEST_SPAN)
            cell.is_head = tag == "th" or table.in_head
            if not table.in_row:
                table.begin_row()
            table.rows[-1].append(cell)
        elif tag == "caption":
            table.caption = cell
        else:
            table.border = int(attributes.get("border", "0").strip() not in {"", "0"})

    def _separate_row_groups(self, *, in_head: bool = False) -> None:
        if self._open_tables:
            table = self._open_tables[-1]
            table.groups.add(len(table.rows))
            table.in_head = in_head

    def end(self, tag: str) -> None:
        """Handle an element's end tag."""
        self._hidden -= tag in HIDDEN
        if tag in WHITELIST:
            self._stream.append((f"/{tag}", ""))
        if tag == "tr":
            self._open_tables[-1].in_row = False
        elif tag in TABLE_TAGS:
            self._open_cells.pop()
        elif tag in GROUP_TAGS:
            self._separate_row_groups()
        if tag == "table":
            self._open_tables.pop()
        if tag in WORD_SEPARATING_TAGS:
            self.data(" ")

    def data(self, text: str) -> None:
        """Handle a text between two tags."""
        if self._hidden:
            return
        self._stream.append(("", text))
        if self._open_cells:
            texts = self._open_cells[-1].texts
            # Separate a superscript or subscript from the number before it, because 10<sup>3</sup> is not 103.
            if self._script and texts and texts[-1][-1:].isalnum() and text.lstrip("+-\u2212")[:1].isdigit():
                texts.append(self._script)
            texts.append(text)
        self._script = ""

    def close(self) -> None:
        """Handle the end of the document."""
