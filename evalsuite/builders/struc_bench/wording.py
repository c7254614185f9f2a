"""A table's content in plain sentences, by rule: the text that the table can be made from again."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.metrics.tables import CellGrid

PLACES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def word(tables: Sequence[CellGrid]) -> str:
    """All tables, one paragraph each: the caption, the names of the columns, and each row in order.

    Every text of the tables is in it. A row with one text across all columns is given as such; rows like this at the
    top are titles, and the head below them names the columns (of several head rows the texts above one another). Any
    other cell that spans several places counts in each, blank cells are left out, and a column without a name is
    called by its number.
    """
    return "\n\n".join(
        "\n".join(_sentences(table, place, len(tables))) for place, table in enumerate(tables, 1)
    )


def _sentences(table: CellGrid, place: int, count: int) -> Iterator[str]:
    if count > 1:
        yield f"Table {place} of {count}."
    if table.name:
        yield f"The caption: {table.name}"
    rows, head = list(table.rows), table.head_rows
    while len(rows) > 1 and _is_one_text(rows[0]):
        yield _across(rows.pop(0))
        head -= 1
    head = head if 0 < head < len(rows) else 1
    columns = [
        " ".join(dict.fromkeys(filter(None, names))) for names in zip_longest(*rows[:head], fillvalue="")
    ]
    rows = rows[head:]
    yield f"The columns: {'; '.join(name or '(no name)' for name in columns)}."
    for row in rows:
        yield _across(row) if _is_one_text(row) else _row(row, columns)


def _is_one_text(row: Sequence[str]) -> bool:
    return len(row) > 1 and bool(row[0]) and len(set(row)) == 1


def _across(row: Sequence[str]) -> str:
    return f"Across all columns: {row[0]}"


def _row(row: Sequence[str], columns: Sequence[str]) -> str:
    """`Name: column is value; column is value.`; a row without a name is a row."""
    facts = [f"{_called(columns, place)} is {cell}" for place, cell in enumerate(row[1:], 1) if cell]
    name = (row[0] if row else "") or "(a row with no name)"
    return f"{name}: {'; '.join(facts)}." if facts else f"{name}."


def _called(columns: Sequence[str], place: int) -> str:
    if place < len(columns) and columns[place]:
        return columns[place]
    return f"the {PLACES[place]} column" if place < len(PLACES) else f"column {place + 1}"
