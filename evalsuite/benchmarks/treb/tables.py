"""Read tables of text cells from CSV or Markdown, and write them as Markdown, HTML or CSV."""

import csv
import io
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

from evalsuite.core.errors import DatasetError, write_count
from evalsuite.samples.items import read_text

Cells = tuple[str, ...]
_BAR = re.compile(r"(?<!\\)\|")
# The line of dashes below a header. The pattern's possessive quantifiers prevent exponential backtracking.
_RULE = re.compile(r"\s*+\|?\s*+:?-++:?\s*+(\|\s*+:?-++:?\s*+)*+\|?\s*+")


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table's header rows (if any) and data rows; cells have no surrounding blanks, and all rows are equally long."""

    header: tuple[Cells, ...]
    rows: tuple[Cells, ...]
    left_out: int = 0  # Number of rows that were not read, because the file is large.

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return len((self.header or self.rows)[0]) if self.header or self.rows else 0

    def select_first_rows(self, row_count: int) -> "SourceTable":
        return replace(self, rows=self.rows[:row_count])

    def format_markdown(self) -> str:
        """Write a pipe table; all header rows but the first become data rows, because the syntax allows only one."""
        top, below = (self.header or (("",) * self.width,))[:1], self.header[1:]
        rule = f"|{'---|' * self.width}"
        return "\n".join([*map(_format_markdown_row, top), rule, *map(_format_markdown_row, (*below, *self.rows))])

    def format_html(self) -> str:
        """Write a `<table>` with the header rows in its `<thead>`."""
        head = f"<thead>{''.join(_make_html_row(cells, 'th') for cells in self.header)}</thead>" if self.header else ""
        return f"<table>{head}<tbody>{''.join(_make_html_row(cells, 'td') for cells in self.rows)}</tbody></table>"

    def format_csv(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows((*self.header, *self.rows))
        return text.getvalue()


def read_csv(file: Iterable[str], header_row_count: int, row_count: int | None = None) -> SourceTable:
    """Read lines of CSV; skip blank lines and fill short rows. After `row_count` data rows, only count the rows."""
    reader = csv.reader(file)
    lines = filter(None, reader)
    try:
        most = None if row_count is None else header_row_count + row_count
        table = _make_source_table(list(islice(lines, most)), header_row_count)
        return replace(table, left_out=sum(1 for _ in lines))
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error


def parse_markdown(text: str, header_row_count: int) -> SourceTable:
    r"""Read a pipe table without the lines that lack a bar and the line of dashes; `\|` is a bar within a cell."""
    lines = [line.strip() for line in text.splitlines() if "|" in line]
    # Drop only the first line of dashes, because a later one may be a data row.
    rule = next((index for index, line in enumerate(lines) if index and _RULE.fullmatch(line)), None)
    cells = [_split_markdown_row(line) for index, line in enumerate(lines) if index != rule]
    if header_row_count == 0 and cells and not any(cells[0]):
        cells = cells[1:]
    return _make_source_table(cells, header_row_count)


def _make_source_table(lines: Sequence[Sequence[str]], header_row_count: int) -> SourceTable:
    if len(lines) < header_row_count:
        raise ValueError(
            f"{write_count(len(lines), 'row')}, fewer than its {write_count(header_row_count, 'header row')}"
        )
    width = max(map(len, lines), default=0)
    full = tuple((*(cell.strip() for cell in line), *[""] * (width - len(line))) for line in lines)
    return SourceTable(full[:header_row_count], full[header_row_count:])


def _format_markdown_row(cells: Iterable[str]) -> str:
    shown = (_collapse_blanks(cell).replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(shown)} |"


def _split_markdown_row(line: str) -> list[str]:
    inner = line.removeprefix("|")
    if inner.endswith("|") and not inner.endswith(r"\|"):
        inner = inner[:-1]
    return [cell.strip().replace(r"\|", "|") for cell in _BAR.split(inner)]


def _make_html_row(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(_collapse_blanks(cell), quote=False)}</{tag}>' for cell in cells)}</tr>"


def _collapse_blanks(cell: str) -> str:
    return " ".join(cell.split())


LARGEST = 16 << 20  # Maximum bytes of a CSV file that is parsed as a whole.
FIRST_ROWS = 50  # Number of rows that are read from a larger CSV file.


def is_large_table(source: Mapping[str, Any]) -> bool:
    """Tell whether a record's CSV file is too large to be parsed as a whole."""
    path = source["csv"] and Path(source["csv"])
    return bool(path and path.is_file() and path.stat().st_size > LARGEST)


def read_table(source: Mapping[str, Any]) -> SourceTable:
    """Read a record's table from CSV (only the beginning of a large file) or, without a CSV file, from Markdown."""
    path, header_rows = source["csv"], source["header_rows"]
    try:
        if not path:
            return parse_markdown(source["markdown"], header_rows)
        if is_large_table(source):
            with _COUNTING:
                return _read_first_rows(path, header_rows)
        return read_csv(io.StringIO(read_text(Path(path)), newline=""), header_rows)
    except (OSError, ValueError) as error:
        expected = "a table as CSV in UTF-8" if path else "a table"
        raise DatasetError(path or "a table in Markdown", "", str(error), expected) from error


_COUNTING = threading.Lock()  # Held while a large file is read, so that concurrent cases do not all read the same file.


@lru_cache(maxsize=128)
def _read_first_rows(path: str, header_row_count: int) -> SourceTable:
    """Read the beginning of a large CSV file; cached, because counting the rows of 100 MB takes three seconds."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        return read_csv(file, header_row_count, FIRST_ROWS)
