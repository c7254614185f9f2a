"""Tables in raw text: any number of them, with or without names, separator rows and outer pipes."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.grid import CellGrid, tidy

if TYPE_CHECKING:
    from collections.abc import Iterator


LINE_END = re.compile(r"\n|<NEWLINE>|<newline>")
PIPE = re.compile(r"(?<!\\)((?:\\\\)*)\|")
SEPARATOR = re.compile(r":?-+:?|=+|")
GRID_RULE = re.compile(r"\+[-=+:]+\+")
FENCE = re.compile(r"[`~]{3,}")
QUOTED = re.compile(r"^>[> ]*+(?=\||[^|]*$)")
NAMED_ROW = re.compile(r"([^|\\:]{1,80}:)[*_ ]*(\|.*\|)")
BOLD = re.compile(r"(\*\*|__)\S[^*_]*\1")
LONGEST_NAME = 80


def read_markdown(text: str) -> list[CellGrid]:
    """Read all tables of a text in order; if it has no pipes, read tab- or comma-separated values.

    A table is a block of lines with pipes: at least two lines, or one that begins with a pipe. Its name is a
    short line right above it, or above it with only blank lines and code fences between. The text before the
    first pipe is also a name if it ends with a colon and the line below begins with a pipe.
    """
    tables: list[CellGrid] = []
    block = _Block()
    for line in _lines(text):
        if is_row(line) or (block.lines and GRID_RULE.fullmatch(line)):
            block.lines.append(line)
            continue
        tables += block.tables()
        if block.lines:
            block = _Block()
        if is_name(line):
            block.name = line
        elif line and not _is_ornament(line):
            block.name = ""
    return tables + block.tables() or read_delimited(text)


def _lines(text: str) -> Iterator[str]:
    """Strip lines and remove quotation marks; a name before a table's first row becomes a separate line."""
    lines = [QUOTED.sub("", raw.strip(), count=1).strip() for raw in LINE_END.split(text)]
    for line, below in zip_longest(lines, lines[1:], fillvalue=""):
        named = NAMED_ROW.fullmatch(line) if below.startswith("|") else None
        yield from (named[1], named[2]) if named else (line,)


def is_row(line: str) -> bool:
    """Tell whether a line can be a row of a table: it has a pipe that is not escaped."""
    return "|" in line and PIPE.search(line) is not None


def is_name(line: str) -> bool:
    """Tell whether a line without pipes can be the name of the table below it: short, and not a sentence."""
    return 0 < len(line) <= LONGEST_NAME and not line.endswith((".", "!", "?")) and not _is_ornament(line)


def is_table(lines: list[str]) -> bool:
    """Tell whether adjacent lines with pipes are a table, rather than a pipe within a sentence."""
    return len(lines) > 1 or any(line.startswith("|") for line in lines)


@dataclass(slots=True)
class _Block:
    """Adjacent lines with pipes, and the name above them."""

    name: str = ""
    lines: list[str] = field(default_factory=list)

    def tables(self) -> list[CellGrid]:
        """Return the block's tables; empty if the block is not a table."""
        if not is_table(self.lines):
            return []
        split = [_cells(line) for line in self.lines if not GRID_RULE.fullmatch(line)]
        separators = [_is_separator(place, row) for place, row in enumerate(split)]
        rows = [row for row, is_separator in zip(split, separators, strict=True) if any(row) and not is_separator]
        head = sum(map(any, split[: separators.index(True)])) if True in separators else 0
        bold = tuple(cell for row in rows for cell in row if BOLD.search(cell))
        return [CellGrid(tuple(rows), name=_plain(self.name), head_rows=head, bold=bold)] if rows else []


def _cells(line: str) -> tuple[str, ...]:
    cells = PIPE.sub(r"\1\n", line).split("\n") if "\\" in line else line.split("|")
    if not cells[0].strip() and line.startswith("|"):
        cells = cells[1:]
    if cells and not cells[-1].strip():
        cells = cells[:-1]
    return tuple(tidy(cell.replace("\\|", "|")) for cell in cells)


def _is_separator(place: int, row: tuple[str, ...]) -> bool:
    """Recognise a separator: dashes below the first row, or three dashes per cell in any row."""
    dashes = all(SEPARATOR.fullmatch(cell) for cell in row)
    return dashes and (place == 1 or all(len(cell) >= 3 for cell in row))


def _is_ornament(line: str) -> bool:
    return FENCE.match(line) is not None or GRID_RULE.fullmatch(line) is not None


def _plain(name: str) -> str:
    return tidy(name.lstrip("-+>").strip("#*_:` \t"))


DELIMITERS = "\t,;"
BLANK_LINES = re.compile(r"\n[ \t]*\n|^[ \t]*[`~]{3,}[^\n]*$", re.MULTILINE)
LONGEST_FIELD = 80
"""Maximum characters of a field; a longer one is prose, unless fields are separated by tabs."""
SENTENCE_END = re.compile(r"[a-z]{2}[.!?]$")


def read_delimited(text: str) -> list[CellGrid]:
    """Read all blocks of at least two lines that one delimiter splits into the same number of fields."""
    return [grid for block in BLANK_LINES.split(text) if (grid := _read_block(block.strip("\r\n")))]


def _read_block(block: str) -> CellGrid | None:
    lines = block.splitlines()
    for delimiter in DELIMITERS:
        # The line above may be the name of the table.
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
