"""The outermost `<table>` elements of a page, as they are written there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalsuite.builders.struc_bench.fragments import Fragment

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = re.compile(
    r"""<!--.*?(?:-->|\Z)
    |<(?P<raw>script|style|textarea|title)(?=[\s/>]).*?(?:</(?P=raw)\s*>|\Z)
    |<(?P<end>/?)table(?=[\s/>])(?:"[^"]*"|'[^']*'|[^<>"'])*>?
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""Comments and what is no markup, which are passed over, and the tags of tables."""


def html_fragments(page: str) -> Iterator[Fragment]:
    """The tables of a page that are not within another one, in order."""
    depth = begin = line = counted = 0
    for piece in PIECE.finditer(page):
        if piece["end"] is None:
            continue
        if not piece["end"]:
            if not depth:
                # Lines are counted on from the last table.
                line, counted = line + page.count("\n", counted, piece.start()), piece.start()
                begin = piece.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield Fragment(page[begin : piece.end()], line + 1)
    if depth:
        yield Fragment(page[begin:], line + 1, "its element does not end")
