"""The table environments of a LaTeX source, as they are written there but for comments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalsuite.builders.struc_bench.fragments import Fragment
from evalsuite.metrics.tables.readers.latex_text import TABULARS
from evalsuite.metrics.tables.readers.latex_tokens import LatexSource

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES = TABULARS | {"table", "table*", "wraptable", "sidewaystable", "sidewaystable*", "threeparttable"}
VERBATIM = frozenset({"verbatim", "verbatim*", "Verbatim", "lstlisting", "minted", "comment"})
COMMENT = re.compile(r"(\\.)|%[^\n]*(?:\n[ \t]*)?", re.DOTALL)
ELSEWHERE = re.compile(r"\\(?:input|include|csvautotabular|csvreader)\b")
PARAMETER = re.compile(r"(?<!\\)#[1-9]")


def latex_fragments(source: str) -> Iterator[Fragment]:
    """The tables of a source that are not within another one, in order; a float with its caption is one."""
    read = LatexSource(source)
    place = line = counted = 0
    while place < len(read.tokens):
        token = read.tokens[place]
        end = read.partner.get(place, place)
        if token.kind == "begin" and token.value in VERBATIM:
            place = end
        elif token.kind == "begin" and token.value in TABLES:
            # Lines are counted on from the last table.
            line, counted = line + source.count("\n", counted, token.start), token.start
            ends = read.partner.get(end) == place
            stop = read.tokens[end].end if ends else len(source)
            yield _fragment(source[token.start : stop], line + 1, ends=ends)
            place = end
        place += 1


def _fragment(markup: str, line: int, *, ends: bool) -> Fragment:
    bare = COMMENT.sub(lambda match: match[1] or "", markup)
    unfit = ""
    if not ends:
        unfit = "its environment does not end"
    elif PARAMETER.search(bare):
        unfit = "it is part of a macro's definition"
    elif elsewhere := ELSEWHERE.search(bare):
        unfit = f"its content is in another file ({elsewhere[0]})"
    return Fragment(bare, line, unfit)
