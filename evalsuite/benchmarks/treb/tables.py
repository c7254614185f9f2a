"""A table as text cells: read from CSV or Markdown, written as Markdown, HTML or CSV."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from evalsuite.core.counted_nouns import number_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
Cells = tuple[str, ...]
_BAR = re.compile(r"(?<!\\)\|")
# Possessive: a line that is nearly a rule would otherwise be tried in very many ways.
_RULE = re.compile(r"\s*+\|?\s*+:?-++:?\s*+(\|\s*+:?-++:?\s*+)*+\|?\s*+")


@dataclass(frozen=True, slots=True)
class SourceTable:
    """Cells as written, without blanks around them; every row is as wide as the widest.

    Attributes:
        header: the header rows, of which there may be none.
        rows: the rows of data.
    """

    header: tuple[Cells, ...]
    rows: tuple[Cells, ...]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len((self.header or self.rows)[0]) if self.header or self.rows else 0

    def first(self, rows: int) -> SourceTable:
        """The same table with this many rows of data at most."""
        return replace(self, rows=self.rows[:rows])

    def markdown(self) -> str:
        """A pipe table; its syntax wants one header row, so further ones follow below the rule."""
        top, below = (self.header or (("",) * self.width,))[:1], self.header[1:]
        rule = f"|{'---|' * self.width}"
        return "\n".join([*map(_bars, top), rule, *map(_bars, (*below, *self.rows))])

    def html(self) -> str:
        """A `<table>` with the header rows in its `<thead>`."""
        head = f"<thead>{''.join(_tags(cells, 'th') for cells in self.header)}</thead>" if self.header else ""
        body = "".join(_tags(cells, "td") for cells in self.rows)
        return f"<table>{head}<tbody>{body}</tbody></table>"

    def csv(self) -> str:
        """Comma-separated values."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows((*self.header, *self.rows))
        return text.getvalue()


def from_csv(text: str, header_rows: int) -> SourceTable:
    """Reads CSV text; blank lines are passed over and short rows filled up.

    Raises:
        ValueError: it is no CSV, or has fewer rows than headers; the message says where.
    """
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        lines = [line for line in reader if line]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error
    return _table(lines, header_rows)


def from_markdown(text: str, header_rows: int) -> SourceTable:
    r"""Reads a pipe table: lines without a bar and the rule are passed over; `\|` is a bar.

    Raises:
        ValueError: it has fewer rows than headers.
    """
    lines = [line.strip() for line in text.splitlines() if "|" in line]
    # Only the first such line is the rule: a row of data may hold nothing but dashes.
    rule = next((index for index, line in enumerate(lines) if index and _RULE.fullmatch(line)), None)
    cells = [_unbarred(line) for index, line in enumerate(lines) if index != rule]
    if header_rows == 0 and cells and not any(cells[0]):
        cells = cells[1:]
    return _table(cells, header_rows)


def _table(lines: Sequence[Sequence[str]], header_rows: int) -> SourceTable:
    if len(lines) < header_rows:
        raise ValueError(
            f"{number_of(len(lines), 'row')}, fewer than its {number_of(header_rows, 'header row')}"
        )
    width = max(map(len, lines), default=0)
    full = tuple((*(cell.strip() for cell in line), *[""] * (width - len(line))) for line in lines)
    return SourceTable(full[:header_rows], full[header_rows:])


def _bars(cells: Iterable[str]) -> str:
    shown = (_line(cell).replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(shown)} |"


def _unbarred(line: str) -> list[str]:
    inner = line.removeprefix("|")
    if inner.endswith("|") and not inner.endswith(r"\|"):
        inner = inner[:-1]
    return [cell.strip().replace(r"\|", "|") for cell in _BAR.split(inner)]


def _tags(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(_line(cell), quote=False)}</{tag}>' for cell in cells)}</tr>"


def _line(cell: str) -> str:
    return " ".join(cell.split())
