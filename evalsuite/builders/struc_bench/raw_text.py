"""Raw-text tables in the style of the released data: a name and a colon, then rows of cells between bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalsuite.metrics.tables import CellGrid

LARGER_THAN = 3
"""The paper keeps tables larger than 3 x 3."""


@dataclass(frozen=True, slots=True)
class Game:
    """A game's report and the tables that it holds.

    Attributes:
        text: the report.
        tables: named `Team` and `Player`; those that hold nothing are not there.
    """

    text: str
    tables: tuple[CellGrid, ...]


def is_large(table: CellGrid) -> bool:
    """Whether a table has more than three rows and more than three columns, those with the names counted."""
    return len(table.rows) > LARGER_THAN and table.width > LARGER_THAN


def write_tables(tables: Iterable[CellGrid]) -> str:
    """Tables as raw text, a blank line between them."""
    return "\n\n".join(
        "\n".join([f"{table.name}:", *("| " + " | ".join(map(_cell, row)) + " |" for row in table.rows)])
        for table in tables
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
