"""Read LaTeX tables and their column specifications."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import accumulate

from evalsuite.metrics.tables import latex_text
from evalsuite.metrics.tables.grid import WIDEST_SPAN, CellGrid, Span, normalise_text

MOST_COLUMNS = 1000  # Maximum columns, because a short specification can request a million: `*{999}{*{999}{...}}`.
DEEPEST = 8
PIECE = re.compile(r"\\[a-zA-Z]+|\\.|\{|\}|\[|\]|.", re.DOTALL)
BETWEEN = frozenset("@!><")  # Signs whose group LaTeX inserts between columns; the group itself is not a column.


def read_column_letters(specification: str, depth: int = DEEPEST) -> tuple[str, ...]:
    """Return the letters of the columns, without rules and widths: `|l|*{2}{c}p{3cm}@{}` gives l, c, c, p.

    Args:
        depth: the number of repetitions (`*`) that may be nested; deeper ones are ignored.
    """
    pieces = PIECE.findall(specification)
    columns: list[str] = []
    place = 0
    while place < len(pieces) and len(columns) < MOST_COLUMNS:
        piece, place = pieces[place], place + 1
        if piece == "*":
            count, place = _read_group(pieces, place)
            repeated, place = _read_group(pieces, place)
            if depth:
                digits = "".join(count).strip()
                number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else 1
                columns += read_column_letters("".join(repeated), depth - 1) * min(number, MOST_COLUMNS)
        elif piece in BETWEEN:
            _, place = _read_group(pieces, place)
        elif piece.isalpha():
            columns.append(piece)
        elif piece in "[{":
            # A group contains the width or the options of the previous column, so skip it.
            _, place = _read_group(pieces, place - 1)
    return tuple(columns[:MOST_COLUMNS])


def _read_group(pieces: list[str], place: int) -> tuple[list[str], int]:
    """Return the content of the group at an index (or the single token there), and the index after it."""
    while place < len(pieces) and pieces[place].isspace():
        place += 1
    if place >= len(pieces):
        return [], place
    opening = pieces[place]
    if opening not in "{[":
        return [opening], place + 1
    depth, closing = 0, "}" if opening == "{" else "]"
    for end in range(place, len(pieces)):
        depth += (pieces[end] == opening) - (pieces[end] == closing)
        if not depth:
            return pieces[place + 1 : end], end + 1
    return pieces[place + 1 :], len(pieces)


SPANNING = frozenset({"multicolumn", "multirow", "SetCell", "Block"})
TABLE_HEADS = frozenset({"tablehead", "tablefirsthead"})  # Macros whose argument contains rows.
WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,6}\s*")
SET_CELL = re.compile(r"\b([cr])\s*=\s*([0-9]{1,6})")
BLOCK = re.compile(r"\s*([0-9]{1,6})\s*-\s*([0-9]{1,6})\s*")
OUTER_CAPTION = re.compile(r"\bcaption\s*=\s*")
HORIZONTAL = re.compile(r"\bhv?lines\b")
VERTICAL = re.compile(r"\b(?:hv|v)lines\b")  # Options of tabularray and nicematrix that draw all rules.
TABS = frozenset("=>")  # Signs that separate the cells of a `tabbing`.
HEADS_AND_FEET = frozenset({"endfirsthead", "endhead", "endfoot", "endlastfoot"})


@dataclass(slots=True)
class SpanningCell:
    """A cell, before its text is copied to the other positions that the cell covers."""

    text: str = ""
    columns: int = 1  # The number of columns, at least 1.
    rows: int = 1  # The number of rows, at least 1; negative if the covered rows are above the cell.
    # Whether the markup contains a blank cell for each column that the cell covers on its right.
    writes_columns: bool = False


class Tabular:
    r"""A tabular environment. Only an `&` or `\\` outside of groups and inner environments ends a cell.

    Args:
        head: the start (inclusive) and end (exclusive) of a head outside the environment (xtabular), as token indexes.

    Attributes:
        end: the index of the environment's last token.
        caption: the caption within the environment; empty without a caption.
    """

    def __init__(self, source: latex_text.LatexSource, begin: int, head: tuple[int, int] = (0, 0)) -> None:
        self.source, self.end = source, source.partner[begin]
        self.caption = ""
        self._rows: list[list[SpanningCell]] = [[]]
        self._text = latex_text.TextReader(source)
        self._cell = SpanningCell()
        self._head_starts = self._refused = self._filled = 0
        self._has_first_head = self._is_bold = self._draws_rules = False
        self._bold: list[str] = []
        self._rules: list[int] = []
        self._next_separator = -1
        self._separators = TABS if source.tokens[begin].value == "tabbing" else frozenset()
        columns, place = self._text.read_column_specification(source.tokens[begin].value, begin + 1)
        self.alignment = read_column_letters(columns)
        self._borders = columns.count("|")
        if source.tokens[begin].value in latex_text.TABULARRAY | latex_text.NICE:
            self._read_options(begin, place)
        self._read_rows(*head)
        first = source.skip_blank(place)
        if first < self.end and self._is_macro(first, ("CodeBefore",)):
            # Skip nicematrix's `\CodeBefore ... \Body`, which draws behind the table.
            place = next((at + 1 for at in range(first, self.end) if self._is_macro(at, ("Body",))), place)
        self._read_rows(place, self.end)
        self._end_row()

    def _read_options(self, begin: int, end: int) -> None:
        """Read the caption and the rules that tabularray and nicematrix declare before the first row."""
        first = self.source.tokens[begin].end
        options = self.source.text[first : self.source.tokens[end - 1].end]
        self._draws_rules = HORIZONTAL.search(options) is not None
        self._borders += VERTICAL.search(options) is not None
        if match := OUTER_CAPTION.search(options):
            tokens, start = self.source.tokens, first + match.end()
            place = next((at for at in range(begin, end) if tokens[at].end > start), end)
            if place < end and tokens[place].kind == "open":
                self.caption = self._text.read_text_of_tokens(place, self.source.find_group_end(place))
            else:
                self.caption = normalise_text(re.split(r"[,\]{}]", self.source.text[start : tokens[end - 1].end])[0])

    def _read_rows(self, place: int, end: int) -> None:
        inside = 0
        while place < end:
            if not inside and self.source.tokens[place].kind == "blank" and self._is_row_end_missing(place, end):
                self._refused += 1
                self._end_row()
            partner = self.source.partner.get(place)
            # Ignore an environment without its own end: the partner of its begin is the end of another environment.
            if partner is not None and self.source.partner.get(partner) == place:
                inside = max(0, inside + (1 if partner > place else -1))
            place = self._read_cell_token(place) if inside else self._read_token(place)

    def _is_row_end_missing(self, place: int, end: int) -> bool:
        """Tell whether a row lacks its end mark at a line break: all columns are filled, and more cells follow."""
        tokens = self.source.tokens
        if (
            not self._text.has_text
            or self._filled + self._cell.columns != len(self.alignment)
            or "\n" not in self.source.text[tokens[place].start : tokens[place].end]
        ):
            return False
        at = max(place, self._next_separator)
        while at < end and tokens[at].kind != "ampersand" and not self._is_row_end(at):
            at = max(at, self.source.partner.get(at, at)) + 1
        self._next_separator = at
        return at < end and tokens[at].kind == "ampersand"

    def _is_row_end(self, place: int) -> bool:
        token = self.source.tokens[place]
        return (token.kind == "sign" and token.value == "\\") or self._is_macro(place, latex_text.ROW_END_MACROS)

    def read_table(self, caption: str = "") -> CellGrid:
        """Build the table; `caption` is used if the environment contains no caption."""
        allowance = 100 + 20 * sum(map(len, self._rows))
        grid, written = list[list[str]](), list[bool]()
        hanging: list[tuple[int, int, SpanningCell]] = []
        spanning: list[tuple[int, int, SpanningCell]] = []
        for cells in self._rows:
            row: list[str] = []
            over: list[tuple[int, SpanningCell]] = []
            for cell in cells:
                columns = min(cell.columns, WIDEST_SPAN, max(0, allowance) + 1)
                if cell.rows > 1 or columns > 1:
                    spanning.append((len(grid), len(row), cell))
                allowance -= columns - 1
                if cell.writes_columns:
                    over += [(len(row) + place, cell) for place in range(columns)]
                    row.append(cell.text)
                    continue
                if cell.rows != 1:
                    hanging += [(len(grid), len(row) + place, cell) for place in range(columns)]
                row += [cell.text] * columns
            for place, cell in over:
                if place < len(row) and (not row[place] or row[place] == cell.text):
                    row[place] = cell.text
                    hanging.append((len(grid), place, cell))
            grid.append(row)
            written.append(any(row))
        for row_place, column_place, cell in hanging:
            _fill_spanned_cells(grid, row_place, column_place, cell)
        rows = tuple(tuple(row) for row, keep in zip(grid, written, strict=True) if keep)
        kept = list(accumulate(written, initial=0))
        above_rules = (kept[min(place, len(kept) - 1)] for place in self._rules)
        return CellGrid(
            rows,
            name=self.caption or caption,
            alignment=self.alignment,
            # The head ends at the first rule that has rows on both sides.
            head_rows=next((rows for rows in above_rules if 0 < rows < kept[-1]), 0),
            spans=tuple(
                Span(cell.text, kept[row], column, max(1, kept[end] - kept[row]), cell.columns)
                for row, column, cell in spanning
                if (end := min(len(written), row + max(1, cell.rows))) > row
            ),
            bold=tuple(self._bold),
            rules=len(self._rules) + self._draws_rules,
            borders=self._borders,
            refused=self._refused,
        )

    def _read_token(self, place: int) -> int:
        """Read a token outside of inner groups; return the index after the token and the token's arguments."""
        token = self.source.tokens[place]
        if token.kind == "ampersand" or (token.kind == "sign" and token.value in self._separators):
            self._end_cell()
            return place + 1
        if self._is_row_end(place):
            self._end_row()
            return self.source.find_option_end(self.source.skip_star(place + 1), is_length=True)
        if token.kind == "macro":
            return self._read_table_macro(token.value, place)
        return self._read_cell_token(place)

    def _read_table_macro(self, name: str, place: int) -> int:
        """Read a macro: a caption, rows, the end of a head, or text of the cell; return the index after the macro."""
        if name in latex_text.CAPTIONS:
            self.caption, place = latex_text.read_caption(self.source, place)
            return place
        if name in TABLE_HEADS and (end := self.source.find_group_end(place + 1)) > place + 1:
            self._read_rows(self.source.skip_blank(place + 1) + 1, end - 1)
            return end
        if name == "CodeAfter":
            return self.end
        if name == "startdata":
            self._end_row()
            return place + 1
        if name == "kill":
            self._text.take_text()
            self._rows[-1], self._filled = [], 0
            return place + 1
        if name in HEADS_AND_FEET:
            # Drop the rows of a longtable's foot and of all heads but the first.
            if name != "endfirsthead" and (name != "endhead" or self._has_first_head):
                del self._rows[self._head_starts : -1]
            self._has_first_head |= name == "endfirsthead"
            self._head_starts = len(self._rows) - 1
        return self._read_cell_token(place)

    def _read_cell_token(self, place: int) -> int:
        """Read a token as text of the current cell; return the index after the token and the token's arguments."""
        if self.source.tokens[place].kind != "macro":
            return self._text.read_token(place)
        if self._is_macro(place, latex_text.BOLD):
            self._is_bold = True
        elif self._is_macro(place, latex_text.RULES):
            self._rules.append(len(self._rows) - 1)
            self._refused += bool(self._rows[-1]) or self._text.has_text
        if self._is_macro(place, SPANNING):
            return self._read_span(self.source.tokens[place].value, place + 1)
        return self._text.read_token(place)

    def _is_macro(self, place: int, names: Collection[str]) -> bool:
        token = self.source.tokens[place]
        return token.kind == "macro" and token.value in names

    def _read_span(self, name: str, place: int) -> int:
        """Read how many columns and rows a cell covers; its text, the last argument, is read later as a group."""
        if name in {"multicolumn", "multirow"}:
            (count, *_), place = self.source.read_arguments(place, 2)
            number = int(count) if WHOLE_NUMBER.fullmatch(count) else 1
            if name == "multirow":
                self._cell.rows = number
            else:
                # TeX refuses a span that does not begin its cell.
                self._refused += self._text.has_text
                self._cell.columns = max(1, number)
            return place
        if name == "Block":  # `\Block{2-3}{text}` of nicematrix
            (size,), place = self.source.read_arguments(place, 1)
            match = BLOCK.fullmatch(size)
            rows, columns = (int(match[1]), int(match[2])) if match else (1, 1)
        else:  # `\SetCell[r=2,c=3]{halign}` of tabularray
            option = self.source.find_option_end(place)
            tokens = self.source.tokens[place:option]
            raw = self.source.text[tokens[0].start : tokens[-1].end] if tokens else ""
            reach = dict(SET_CELL.findall(raw))
            rows, columns = int(reach.get("r", 1)), int(reach.get("c", 1))
            place = self.source.find_group_end(option)
        self._cell = SpanningCell("", max(1, columns), max(1, rows), writes_columns=True)
        return place

    def _end_cell(self) -> None:
        self._cell.text = self._text.take_text()
        self._rows[-1].append(self._cell)
        self._filled += self._cell.columns
        if self._is_bold:
            self._bold.append(self._cell.text)
        self._cell, self._is_bold = SpanningCell(), False

    def _end_row(self) -> None:
        self._end_cell()
        self._rows.append([])
        self._filled = 0


def _fill_spanned_cells(grid: list[list[str]], row: int, column: int, cell: SpanningCell) -> None:
    """Copy the text of a cell that spans rows into the covered blank cells, which are below or above this cell."""
    if not cell.text:
        return  # Copying a blank text would only take time.
    step = 1 if cell.rows > 0 else -1
    for place in range(row + step, row + cell.rows, step):
        if not 0 <= place < len(grid) or column >= len(grid[place]) or grid[place][column]:
            return
        grid[place][column] = cell.text


FLOATS = frozenset({
    "table", "table*", "wraptable", "sidewaystable", "sidewaystable*", "threeparttable", "figure", "figure*",
})  # fmt: skip
HEAD_APART = frozenset({"supertabular", "supertabular*", "mpsupertabular", "xtabular", "xtabular*", "mpxtabular"})
"""Environments whose head is defined before they begin."""


@dataclass(slots=True)
class _Float:
    """A float, whose captions belong to its tables in the same order."""

    end: int
    captions: list[str] = field(default_factory=list)
    tables: list[int] = field(default_factory=list)


def read_latex(text: str) -> list[CellGrid]:
    """Return all tables of a text, in order.

    A cell's text includes groups, the arguments of formatting macros and inner tabulars. A cell with `multicolumn` or
    `multirow` fills all positions that it spans. A longtable's feet and later heads are ignored.
    """
    source = latex_text.LatexSource(text)
    outermost = _Float(len(source.tokens))
    floats, open_, tables, place, head = [outermost], [outermost], list[Tabular](), 0, (0, 0)
    while place < len(source.tokens):
        token = source.tokens[place]
        while len(open_) > 1 and place >= open_[-1].end:
            open_.pop()
        if token.kind == "begin" and token.value in latex_text.TABULARS and not source.is_begin_in_prose(place):
            open_[-1].tables.append(len(tables))
            tables.append(Tabular(source, place, head if token.value in HEAD_APART else (0, 0)))
            place, head = tables[-1].end, (0, 0)
        elif token.kind == "macro" and token.value in TABLE_HEADS and not (head[1] and token.value == "tablehead"):
            # The head is the range of tokens within the macro's braces.
            end = source.find_group_end(place + 1)
            head = (0, 0) if end == place + 1 else (source.skip_blank(place + 1) + 1, end - 1)
            place = end
            continue
        elif token.kind == "begin" and token.value in FLOATS:
            floats.append(_Float(source.partner[place]))
            open_.append(floats[-1])
        elif token.kind == "macro" and token.value in latex_text.CAPTIONS:
            caption, place = latex_text.read_caption(source, place)
            open_[-1].captions.append(caption)
            continue
        place += 1
    names = {table: name for float_ in floats for table, name in zip(float_.tables, float_.captions, strict=False)}
    read = [table.read_table(names.get(place, "")) for place, table in enumerate(tables)]
    return [table for table in read if table.rows]
