"""Tables in LaTeX: every tabular environment that is not in another one's cell, with its caption."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.readers.latex_macros import CAPTIONS
from evalsuite.metrics.tables.readers.latex_tabular import TABLE_HEADS, Tabular
from evalsuite.metrics.tables.readers.latex_text import TABULARS, read_caption
from evalsuite.metrics.tables.readers.latex_tokens import LatexSource

if TYPE_CHECKING:
    from evalsuite.metrics.tables.grid import CellGrid

FLOATS = frozenset({
    "table", "table*", "wraptable", "sidewaystable", "sidewaystable*", "threeparttable", "figure", "figure*",
})  # fmt: skip
HEAD_APART = frozenset(
    {"supertabular", "supertabular*", "mpsupertabular", "xtabular", "xtabular*", "mpxtabular"}
)
"""Their head is given before they begin."""


@dataclass(slots=True)
class _Float:
    """What belongs together: captions and tables, one for the other in order."""

    end: int
    captions: list[str] = field(default_factory=list)
    tables: list[int] = field(default_factory=list)


def read_latex(text: str) -> list[CellGrid]:
    """All tables of a text, in order.

    Text in groups and formatting macros is cell text, and so are tabulars within a cell; `multicolumn` and
    `multirow` fill the cells they span. Of a longtable the head of its first page stays, and no foot.
    """
    source = LatexSource(text)
    outermost = _Float(len(source.tokens))
    floats, open_, tables, place, head = [outermost], [outermost], list[Tabular](), 0, (0, 0)
    while place < len(source.tokens):
        token = source.tokens[place]
        while len(open_) > 1 and place >= open_[-1].end:
            open_.pop()
        if token.kind == "begin" and token.value in TABULARS and not source.is_mention(place):
            open_[-1].tables.append(len(tables))
            tables.append(Tabular(source, place, head if token.value in HEAD_APART else (0, 0)))
            place, head = tables[-1].end, (0, 0)
        elif (
            token.kind == "macro"
            and token.value in TABLE_HEADS
            and not (head[1] and token.value == "tablehead")
        ):
            place, head = _read_head(source, place)
            continue
        elif token.kind == "begin" and token.value in FLOATS:
            floats.append(_Float(source.partner[place]))
            open_.append(floats[-1])
        elif token.kind == "macro" and token.value in CAPTIONS:
            caption, place = read_caption(source, place)
            open_[-1].captions.append(caption)
            continue
        place += 1
    names = {
        table: name for float_ in floats for table, name in zip(float_.tables, float_.captions, strict=False)
    }
    read = [table.read(names.get(place, "")) for place, table in enumerate(tables)]
    return [table for table in read if table.rows]


def _read_head(source: LatexSource, place: int) -> tuple[int, tuple[int, int]]:
    """The place after a head that stands before its table, and the tokens within its braces."""
    end = source.group_end(place + 1)
    if end == place + 1:
        return end, (0, 0)
    return end, (source.after_blank(place + 1) + 1, end - 1)
