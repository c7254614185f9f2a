"""Read the tables of a text in any markup."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.cells import cell_value
from evalsuite.metrics.tables.grid import FORMATS, CellGrid
from evalsuite.metrics.tables.html import LIST_TAGS, WHITELIST, PageTables
from evalsuite.metrics.tables.latex import read_latex
from evalsuite.metrics.tables.markdown import LINE_END, is_name, is_row, is_table, read_markdown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.metrics.tables.grid import Format


HINTS = {"html": re.compile(r"<t[rdh]\b|<table\b", re.IGNORECASE), "latex": re.compile(r"\\begin\s*\{")}


@dataclass(frozen=True, slots=True)
class MarkupReading:
    """The tables that were read from a text.

    Attributes:
        markup: the markup of the tables.
        text: the markup alone, without the text around it.
        tables: the tables in order.
        is_list: whether the text has no table, and its items or texts were read as one column.
    """

    markup: Format
    text: str
    tables: tuple[CellGrid, ...]
    is_list: bool = False


def read_tables(text: str, format: Format) -> list[CellGrid]:  # noqa: A002 - the word of the contract
    """Read all tables of a text. Bad markup never raises; the readable parts are returned."""
    if format == "html":
        return PageTables(text).tables
    return read_latex(text) if format == "latex" else read_markdown(text)


def read_in(text: str, markup: Format) -> MarkupReading:
    """Read the tables of a text in this markup; drop tables without any value."""
    tables = read_tables(text, markup)
    return MarkupReading(markup, text, tuple(table for table in tables if any(map(cell_value, table.cells))))


def read_all(answer: str, wanted: Format) -> list[MarkupReading]:
    """Read an answer in each possible markup, the wanted one first; skip readings without tables."""
    markups = [wanted, *(markup for markup in FORMATS if markup != wanted)]
    readings = (
        read_in(strip_answer(answer, markup), markup)
        for markup in markups
        if markup == wanted or markup not in HINTS or HINTS[markup].search(answer)
    )
    return [reading for reading in readings if reading.tables]


@lru_cache(maxsize=128)
def read_wanted(reference: str, markup: Format) -> MarkupReading:
    """Read the tables of a reference; in HTML without tables, the list items or texts become one column.

    The result is cached for further answers to the same question.
    """
    reading = read_in(reference, markup)
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

    If there are fenced blocks with such markup, only their contents are kept, else the whole answer. From
    these, everything before the first and after the last piece of markup is removed; a piece is a tag in
    HTML, an environment in LaTeX, and in raw text a row or the name above a table. Stripping twice changes
    nothing.

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


def _strip_once(answer: str, format: Format) -> str:  # noqa: A002
    if format == "markdown":
        # Names of tables may be outside of the fences, so remove the fences line by line.
        return _cut_markdown(answer) or answer.strip()
    cut = _cut_html if format == "html" else _cut_latex
    blocks = [markup for block in _fenced_blocks(answer) if (markup := cut(block))]
    return "\n\n".join(blocks) or cut(answer) or answer.strip()


def _fenced_blocks(answer: str) -> Iterator[str]:
    """Return the blocks between code fences; the last one may lack its end."""
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


def _cut_html(text: str) -> str:
    return _cut(text, TAG)


def _cut_latex(text: str) -> str:
    return _cut(text, ENVIRONMENT)


def _cut(text: str, piece: re.Pattern[str]) -> str:
    """Cut from the first piece that opens something to the last piece; to the end if that piece also opens something.

    A truncated answer ends within the element that it opened last.
    """
    pieces = list(piece.finditer(text))
    first = next((match.start() for match in pieces if match["opens"]), None)
    if first is None:
        return ""
    return text[first:].rstrip() if pieces[-1]["opens"] else text[first : pieces[-1].end()]


def _cut_markdown(text: str) -> str:
    lines = [line for line in LINE_END.split(text) if not FENCE.fullmatch(line.rstrip())]
    rows = [place for place, line in enumerate(lines) if is_row(line.strip())]
    if not rows or not is_table([lines[place].strip() for place in rows]):
        return ""
    above = [place for place in range(rows[0]) if lines[place].strip()]
    first = above[-1] if above and is_name(lines[above[-1]].strip()) else rows[0]
    return "\n".join(lines[first : rows[-1] + 1]).strip()
