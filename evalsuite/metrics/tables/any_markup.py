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
from evalsuite.metrics.tables.standard import html, latex, markdown

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
    """

    markup: Format
    text: str
    tables: tuple[CellGrid, ...]

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return sum(len(table.cells) for table in self.tables)


def read_in(text: str, markup: Format) -> MarkupReading:
    """The tables of a text that is written in this markup. Bad markup never raises."""
    if markup == "html":
        tables = html.PageTables(text).tables
    else:
        tables = latex.read_latex(text) if markup == "latex" else markdown.read_markdown(text)
    return MarkupReading(markup, text, tuple(table for table in tables if any(map(cell_value, table.cells))))


def read_any(answer: str, wanted: Format) -> MarkupReading:
    """The tables of an answer, in the markup that was wanted or in another one.

    Another one is taken where it gives more than twice as many cells: a word about `<td>` is no table.
    """
    readings = [
        read_in(strip_answer(answer, markup), markup)
        for markup in FORMATS
        if markup == wanted or markup not in HINTS or HINTS[markup].search(answer)
    ]
    return max(readings, key=lambda reading: reading.cells * (2 if reading.markup == wanted else 1))


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
    return MarkupReading(markup, reference, (CellGrid(tuple((item,) for item in items)),) if items else ())
