"""Read the tables of a text in any markup, strip other text from answers, and write frames and lists as markup."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from evalsuite.metrics.tables.cells import cell_value
from evalsuite.metrics.tables.grid import FORMATS, CellGrid, tidy
from evalsuite.metrics.tables.html import LIST_TAGS, WHITELIST, PageTables
from evalsuite.metrics.tables.latex import read_latex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.metrics.tables.grid import Format


HINTS = {"html": re.compile(r"<t[rdh]\b|<table\b", re.IGNORECASE), "latex": re.compile(r"\\begin\s*\{")}


@dataclass(frozen=True, slots=True)
class MarkupReading:
    """The tables that were read from a text."""

    markup: Format  # The markup of the tables.
    text: str  # The markup alone, without the text around it.
    tables: tuple[CellGrid, ...]  # The tables in order.
    is_list: bool = False  # Whether the text has no table, and its items or texts were read as one column.


def read_tables(text: str, format: Format) -> list[CellGrid]:  # noqa: A002 - the word of the contract
    """Read all tables of a text; of invalid markup, the readable parts."""
    if format == "html":
        return PageTables(text).tables
    return read_latex(text) if format == "latex" else _read_markdown(text)


def _read_as(text: str, markup: Format) -> MarkupReading:
    tables = read_tables(text, markup)
    return MarkupReading(markup, text, tuple(table for table in tables if any(map(cell_value, table.cells))))


def read_all(answer: str, wanted: Format) -> list[MarkupReading]:
    """Read an answer in each possible markup, the wanted one first; skip readings without tables."""
    readings = (
        _read_as(strip_answer(answer, markup), markup)
        for markup in (wanted, *(markup for markup in FORMATS if markup != wanted))
        if markup == wanted or markup not in HINTS or HINTS[markup].search(answer)
    )
    return [reading for reading in readings if reading.tables]


@lru_cache(maxsize=128)
def read_wanted(reference: str, markup: Format) -> MarkupReading:
    """Read the tables of a reference; in HTML without tables, the list items or texts become one column."""
    reading = _read_as(reference, markup)
    if reading.tables or markup != "html":
        return reading
    page = PageTables(reference)
    items = page.texts(LIST_TAGS) or page.texts(WHITELIST)
    if not any(map(cell_value, items)):
        return reading
    return MarkupReading(markup, reference, (CellGrid(tuple((item,) for item in items)),), is_list=True)


FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[^`]*")
TAG = re.compile(r"<(?:(?P<opens>[a-zA-Z!])|/[a-zA-Z])[^<>]*>?")
ENVIRONMENT = re.compile(r"\\(?:(?P<opens>begin)|end)[ \t]*\{[^{}]*\}?")


def strip_answer(answer: str, format: Format) -> str:  # noqa: A002 - the word of the contract
    """Remove everything but the markup from an answer.

    If code fences contain such markup, only their contents are read, else the whole answer. Everything before the first
    and after the last piece of markup is removed; a piece is a tag in HTML, an environment in LaTeX, and in raw text a
    row or the name above a table. Stripping twice changes nothing.

    Args:
        answer: the model's answer.
        format: the markup that the model was asked to write.

    Returns:
        The markup; if there is none, the rest of the answer without surrounding blanks.
    """
    before, stripped = "", answer
    while stripped != before:
        before, stripped = stripped, _strip_once(stripped, format)
    return stripped


def _strip_once(answer: str, markup: Format) -> str:
    if markup == "markdown":
        # Remove fences line by line, because the names of tables may be outside of them.
        return _cut_markdown(answer) or answer.strip()
    piece = TAG if markup == "html" else ENVIRONMENT
    blocks = [cut for block in _find_fenced_blocks(answer) if (cut := _cut(block, piece))]
    return "\n\n".join(blocks) or _cut(answer, piece) or answer.strip()


def _find_fenced_blocks(answer: str) -> Iterator[str]:
    """Yield the blocks between code fences; the last block may lack its closing fence."""
    fence, lines = "", list[str]()
    for line in answer.split("\n"):
        match = FENCE.fullmatch(line.rstrip("\r"))
        if not fence and match:
            fence, lines = match[1], []
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            yield "\n".join(lines)
            fence = ""
        elif fence:
            lines.append(line)
    if fence:
        yield "\n".join(lines)


def _cut(text: str, piece: re.Pattern[str]) -> str:
    """Cut a text from its first opening piece to its last piece, or to its end if the last piece is opening."""
    # A truncated answer ends within the element that it opened last.
    pieces = list(piece.finditer(text))
    first = next((match.start() for match in pieces if match["opens"]), None)
    if first is None:
        return ""
    return text[first:].rstrip() if pieces[-1]["opens"] else text[first : pieces[-1].end()]


def _cut_markdown(text: str) -> str:
    lines = [line for line in LINE_END.split(text) if not FENCE.fullmatch(line.rstrip())]
    rows = [place for place, line in enumerate(lines) if _is_row(line.strip())]
    if not rows or not _is_table([lines[place].strip() for place in rows]):
        return ""
    above = [place for place in range(rows[0]) if lines[place].strip()]
    first = above[-1] if above and _is_name(lines[above[-1]].strip()) else rows[0]
    return "\n".join(lines[first : rows[-1] + 1]).strip()


LINE_END = re.compile(r"\n|<NEWLINE>|<newline>")
PIPE = re.compile(r"(?<!\\)((?:\\\\)*)\|")
SEPARATOR = re.compile(r":?-+:?|=+|")
GRID_RULE = re.compile(r"\+[-=+:]+\+")
FENCE_START = re.compile(r"[`~]{3,}")
QUOTED = re.compile(r"^>[> ]*+(?=\||[^|]*$)")
NAMED_ROW = re.compile(r"([^|\\:]{1,80}:)[*_ ]*(\|.*\|)")
BOLD = re.compile(r"(\*\*|__)\S[^*_]*\1")
LONGEST_NAME = 80


@dataclass(slots=True)
class _Block:
    """Adjacent lines with pipes, and the name above them."""

    name: str = ""
    lines: list[str] = field(default_factory=list)

    def tables(self) -> list[CellGrid]:
        if not _is_table(self.lines):
            return []
        split = [_split_row(line) for line in self.lines if not GRID_RULE.fullmatch(line)]
        separators = [_is_separator(place, row) for place, row in enumerate(split)]
        rows = [row for row, is_separator in zip(split, separators, strict=True) if any(row) and not is_separator]
        head = sum(map(any, split[: separators.index(True)])) if True in separators else 0
        bold = tuple(cell for row in rows for cell in row if BOLD.search(cell))
        name = tidy(self.name.lstrip("-+>").strip("#*_:` \t"))
        return [CellGrid(tuple(rows), name=name, head_rows=head, bold=bold)] if rows else []


def _read_markdown(text: str) -> list[CellGrid]:
    """Read all raw-text tables in order; if the text has no pipes, read tab- or comma-separated values.

    A table is a block of lines with pipes: at least two lines, or one that begins with a pipe. Its name is the line
    above, if that is short; blank lines and code fences between do not matter. The text before the first pipe is also a
    name if it ends with a colon and the line below begins with a pipe.
    """
    tables: list[CellGrid] = []
    block = _Block()
    for line in _split_lines(text):
        if _is_row(line) or (block.lines and GRID_RULE.fullmatch(line)):
            block.lines.append(line)
            continue
        tables += block.tables()
        if block.lines:
            block = _Block()
        if _is_name(line):
            block.name = line
        elif line and not _is_ornament(line):
            block.name = ""
    return tables + block.tables() or _read_delimited(text)


def _split_lines(text: str) -> Iterator[str]:
    """Strip lines and remove quotation marks; a name before a table's first row becomes a separate line."""
    lines = [QUOTED.sub("", raw.strip(), count=1).strip() for raw in LINE_END.split(text)]
    for line, below in zip_longest(lines, lines[1:], fillvalue=""):
        named = NAMED_ROW.fullmatch(line) if below.startswith("|") else None
        yield from (named[1], named[2]) if named else (line,)


def _is_row(line: str) -> bool:
    return "|" in line and PIPE.search(line) is not None


def _is_name(line: str) -> bool:
    """Tell whether a line without pipes can be the name of the table below it: short, and not a sentence."""
    return 0 < len(line) <= LONGEST_NAME and not line.endswith((".", "!", "?")) and not _is_ornament(line)


def _is_table(lines: list[str]) -> bool:
    """Tell whether adjacent lines with pipes are a table, rather than a pipe within a sentence."""
    return len(lines) > 1 or any(line.startswith("|") for line in lines)


def _split_row(line: str) -> tuple[str, ...]:
    cells = PIPE.sub(r"\1\n", line).split("\n") if "\\" in line else line.split("|")
    if not cells[0].strip() and line.startswith("|"):
        cells = cells[1:]
    if cells and not cells[-1].strip():
        cells = cells[:-1]
    return tuple(tidy(cell.replace("\\|", "|")) for cell in cells)


def _is_separator(place: int, row: tuple[str, ...]) -> bool:
    """Recognise a separator: dashes below the first row, or three dashes per cell in any row."""
    dashes = all(SEPARATOR.fullmatch(cell) for cell in row)
    return dashes and (place == 1 or all(len(cell) >= 3 for cell in row))


def _is_ornament(line: str) -> bool:
    return FENCE_START.match(line) is not None or GRID_RULE.fullmatch(line) is not None


BLANK_LINES = re.compile(r"\n[ \t]*\n|^[ \t]*[`~]{3,}[^\n]*$", re.MULTILINE)
LONGEST_FIELD = 80  # Maximum characters of a field; longer text is prose, unless tabs separate the fields.
SENTENCE_END = re.compile(r"[a-z]{2}[.!?]$")


def _read_delimited(text: str) -> list[CellGrid]:
    """Read all blocks of at least two lines that one delimiter splits into the same number of fields."""
    return [grid for block in BLANK_LINES.split(text) if (grid := _read_block(block.strip("\r\n")))]


def _read_block(block: str) -> CellGrid | None:
    lines = block.splitlines()
    for delimiter in "\t,;":
        # The line above may be the name of the table.
        for first in (0, 1):
            rows = list(_parse_rows(lines[first:], delimiter))
            if len(rows) > 1 and _is_delimited_table(rows, delimiter):
                name = tidy(lines[0].strip("#*_:` \t")) if first else ""
                return CellGrid(tuple(tuple(map(tidy, row)) for row in rows), name=name)
    return None


def _parse_rows(lines: list[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the rows above the first line that cannot be parsed, without blank ones."""
    with suppress(csv.Error):
        yield from (row for row in csv.reader(lines, delimiter=delimiter) if row)


def _is_delimited_table(rows: list[list[str]], delimiter: str) -> bool:
    if len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return False
    if delimiter == "\t":
        return True
    longest = max(len(field) for row in rows for field in row)
    return longest <= LONGEST_FIELD and not any(SENTENCE_END.search(row[-1]) for row in rows)


ALIASES: Mapping[str, Format] = {
    "markdown": "markdown", "md": "markdown", "text": "markdown",
    "html": "html", "htm": "html",
    "latex": "latex", "tex": "latex",
}  # fmt: skip
"""Formats by their names in lower case."""
ESCAPED_IN_LATEX = re.compile(r"(?<!\\)([&%#_$])")


def read_format(name: str) -> Format:
    """Return the format with this name or alias."""
    try:
        return ALIASES[name.lower()]
    except (KeyError, AttributeError):
        raise ValueError(f"the format of a table is markdown (md), html or latex (tex), not {name!r}") from None


def detect_format(text: str) -> Format:
    """Find the format of a text's tables: HTML or LaTeX if it contains their tags, else Markdown."""
    return next((markup for markup in ("html", "latex") if HINTS[markup].search(text)), "markdown")


def as_markup(table: Any, markup: Format) -> str:
    """Write a pandas or polars frame, a list of rows or a list of records as markup; a text is returned unchanged."""
    return table if isinstance(table, str) else write_table(_list_rows(table), markup)


def _list_rows(table: Any) -> list[list[str]]:
    """Return the rows of a frame or list as texts, the names of columns first."""
    if hasattr(table, "columns") and hasattr(table, "itertuples"):
        return _list_pandas_rows(table)
    if hasattr(table, "columns") and hasattr(table, "rows"):
        return [list(map(_write_cell, row)) for row in (table.columns, *table.rows())]
    if isinstance(table, Sequence) and table and all(isinstance(row, Mapping) for row in table):
        names = list(dict.fromkeys(name for record in table for name in record))
        records = ([record.get(name) for name in names] for record in table)
        return [list(map(_write_cell, row)) for row in (names, *records)]
    if isinstance(table, Sequence) and all(isinstance(row, Sequence) and not isinstance(row, str) for row in table):
        return [list(map(_write_cell, row)) for row in table]
    raise TypeError(
        f"a table is a text, a pandas or polars frame, a list of rows or a list of records, not {type(table).__name__}"
    )


def _list_pandas_rows(frame: Any) -> list[list[str]]:
    # An index that counts from 0 is pandas' default and not part of the table.
    numbered = type(frame.index).__name__ == "RangeIndex"
    filled = (frame if numbered else frame.reset_index()).astype(object)
    filled = filled.where(filled.notna(), None)
    return [list(map(_write_cell, row)) for row in (filled.columns, *filled.itertuples(index=False, name=None))]


def _write_cell(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124 - NaN is the value that differs from itself
        return ""
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return " ".join(text.split())


def write_table(rows: Sequence[Sequence[str]], markup: Format, name: str = "") -> str:
    """Write rows of cell texts as markup, with a caption if a name is given."""
    if markup == "html":
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table>{f'<caption>{html.escape(name)}</caption>' if name else ''}{body}</table>"
    if markup == "latex":
        lines = " \\\\\n".join(" & ".join(map(_escape_latex, row)) for row in rows)
        width = max(map(len, rows), default=1)
        caption = f"\\caption{{{_escape_latex(name)}}}\n" if name else ""
        begin, end = f"\\begin{{table}}\n{caption}", "\\end{table}"
        return f"{begin}\\begin{{tabular}}{{{'l' * width}}}\n{lines} \\\\\n\\end{{tabular}}\n{end}"
    bars = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([*([f"{name}:"] if name else []), *bars])


def _escape_latex(cell: str) -> str:
    plain = cell.replace("\\", "\\textbackslash ").replace("{", "\\{").replace("}", "\\}")
    return ESCAPED_IN_LATEX.sub(r"\\\1", plain)
