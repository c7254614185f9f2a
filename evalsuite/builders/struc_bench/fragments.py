"""Tables cut out of a file: their markup as it stands there, or why one is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables import read_tables, table_score

if TYPE_CHECKING:
    from evalsuite.metrics.tables import CellGrid, Format


@dataclass(frozen=True, slots=True)
class Fragment:
    """A table's markup.

    Attributes:
        markup: all of it, with the caption that belongs to it.
        line: where it begins in its file, from 1.
        unfit: why it cannot be used, where that is plain from the file; else empty.
    """

    markup: str
    line: int
    unfit: str = ""


def why_unfit(fragment: Fragment, written: Format) -> str:
    """Why a table cannot be an item; empty where it can."""
    if fragment.unfit:
        return fragment.unfit
    try:
        if not filled(read_tables(fragment.markup, written)):
            return "no cell with text can be read"
        score = table_score(fragment.markup, fragment.markup, format=written)
    except ScoringError as error:
        return str(error)
    if score.value != 1.0:
        return f"against itself it scores {score.content:.3f} in content and {score.form:.3f} in form"
    return ""


def filled(tables: list[CellGrid]) -> list[CellGrid]:
    """The tables that hold any text."""
    return [table for table in tables if any(table.cells)]
