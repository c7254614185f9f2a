"""Tab-separated and comma-separated values in raw text."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.grid import CellGrid, tidy

if TYPE_CHECKING:
    from collections.abc import Iterator

DELIMITERS = "\t,;"
BLANK_LINES = re.compile(r"\n[ \t]*\n|^[ \t]*[`~]{3,}[^\n]*$", re.MULTILINE)
LONGEST_FIELD = 80
"""Characters; a longer one is prose, unless tabs part the fields."""
SENTENCE_END = re.compile(r"[a-z]{2}[.!?]$")


def read_delimited(text: str) -> list[CellGrid]:
    """All blocks of at least two lines that one delimiter parts into equally many fields."""
    return [grid for block in BLANK_LINES.split(text) if (grid := _read_block(block.strip("\r\n")))]


def _read_block(block: str) -> CellGrid | None:
    lines = block.splitlines()
    for delimiter in DELIMITERS:
        # The line above may be a name, and is no part of the table.
        for first in (0, 1):
            rows = list(_rows("\n".join(lines[first:]), delimiter))
            if len(rows) > 1 and _is_table(rows, delimiter):
                return CellGrid(tuple(tuple(map(tidy, row)) for row in rows), name=_name(lines[:first]))
    return None


def _rows(block: str, delimiter: str) -> Iterator[list[str]]:
    try:
        yield from (row for row in csv.reader(block.splitlines(), delimiter=delimiter) if row)
    except csv.Error:
        return


def _is_table(rows: list[list[str]], delimiter: str) -> bool:
    if len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return False
    if delimiter == "\t":
        return True
    longest = max(len(field) for row in rows for field in row)
    return longest <= LONGEST_FIELD and not any(SENTENCE_END.search(row[-1]) for row in rows)


def _name(above: list[str]) -> str:
    return tidy(above[0].strip("#*_:` \t")) if above else ""
