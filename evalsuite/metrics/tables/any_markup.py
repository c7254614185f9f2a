"""The tables of a text in whatever markup it is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.answer import strip_answer
from evalsuite.metrics.tables.cell_text import cell_value
from evalsuite.metrics.tables.grid import CellGrid
from evalsuite.metrics.tables.html_events import WHITELIST
from evalsuite.metrics.tables.names import FORMATS
from evalsuite.metrics.tables.readers import html, latex, markdown

if TYPE_CHECKING:
    from evalsuite.metrics.tables.names import Format

HINTS = {"html": re.compile(r"<t[rdh]\b|<table\b", re.IGNORECASE), "latex": re.compile(r"\\begin\s*\{")}


@dataclass(frozen=True, slots=True)
class MarkupReading:
    """What was read of a text.

    Attributes:
        markup: what the tables are written in.
        text: the markup alone, without what stands around it.
        tables: in order.
        is_list: whether the text has no table, and its items or texts were read as one column.
    """

    markup: Format
    text: str
    tables: tuple[CellGrid, ...]
    is_list: bool = False


def read_in(text: str, markup: Format) -> MarkupReading:
    """The tables of a text that is written in this markup. Bad markup never raises."""
    if markup == "html":
        tables = html.PageTables(text).tables
    else:
        tables = latex.read_latex(text) if markup == "latex" else markdown.read_markdown(text)
    return MarkupReading(markup, text, tuple(table for table in tables if any(map(cell_value, table.cells))))


def read_all(answer: str, wanted: Format) -> list[MarkupReading]:
    """Read an answer in each markup that it may be written in, the wanted one first; skip readings without tables."""
    markups = [wanted, *(markup for markup in FORMATS if markup != wanted)]
    readings = (
        read_in(strip_answer(answer, markup), markup)
        for markup in markups
        if markup == wanted or markup not in HINTS or HINTS[markup].search(answer)
    )
    return [reading for reading in readings if reading.tables]


@lru_cache(maxsize=128)
def read_wanted(reference: str, markup: Format) -> MarkupReading:
    """The tables of a reference; of HTML without any, its list items or else its texts as one column.

    It is kept for the next answer to the same question.
    """
    reading = read_in(reference, markup)
    if reading.tables or markup != "html":
        return reading
    page = html.PageTables(reference)
    items = page.texts(html.LIST_TAGS) or page.texts(WHITELIST)
    if not any(map(cell_value, items)):
        return reading
    if not any(map(cell_value, items)):
        return reading
    return MarkupReading(markup, reference, (CellGrid(tuple((item,) for item in items)),), is_list=True)
