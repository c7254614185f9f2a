"""Read the tables in a user's folder: delimited text in any usual encoding, workbook sheets, SQLite tables.

Cells become text. Numbers are rewritten so that pandas and people read the same value: `1,200` becomes `1200`. In a
file with decimal commas, `1.200,5` becomes `1200.5`.
"""

from __future__ import annotations

import csv
import io
import re
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime, time
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from evalsuite.benchmarks.treb.tables import SourceTable
from evalsuite.builders.building import decode_text, find_delimiter
from evalsuite.builders.treb.sheet import LONGEST, MISSING, Sheet, find_defect, is_number
from evalsuite.core.errors import DatasetError
from evalsuite.samples.files import open_database, read_rows, read_table_sql

TEXTS, WORKBOOKS, DATABASES = (".csv", ".tsv", ".tab"), (".xlsx", ".xlsm"), (".db", ".sqlite", ".sqlite3")
MOST_BYTES = 4 * LONGEST  # Maximum bytes of a text file, because a character has at most four bytes.
MOST_UNPACKED = 32 << 20  # Maximum unpacked bytes of a workbook.
MOST_CELLS = 1 << 20  # Maximum cells of a table; the limit of characters does not count empty cells.
TOO_LONG = f"it has more than {LONGEST} characters of content"


def list_table_files(folder: Path) -> list[Path]:
    """List a folder's files of the types that hold tables, sorted by name.

    Raises:
        DatasetError: the folder does not exist, or contains no file that may hold tables.
    """
    kinds = (*TEXTS, *WORKBOOKS, *DATABASES)
    if folder.is_dir() and (files := sorted(path for path in folder.iterdir() if path.suffix.lower() in kinds)):
        return files
    problem = "no table" if folder.is_dir() else "a file" if folder.exists() else "no such folder"
    raise DatasetError(folder, "", problem, f"a folder of tables as {', '.join(f'*{kind}' for kind in kinds)}")


def read_sheets(path: Path) -> Iterator[tuple[str, Sheet | str]]:
    """Yield the name and the sheet of each usable table in a file; for an unusable table, its source and the reason."""
    kind = path.suffix.lower()
    read = _read_workbook if kind in WORKBOOKS else _read_database if kind in DATABASES else _read_text_file
    try:
        if not path.is_file():
            raise ValueError("it is not a regular file")
        for part, rows, delimiter in read(path):
            name, source = path.stem, path.name
            if part:
                shown = re.sub(r"[^\w .()-]+", "_", part)[:60]
                name, source = f"{name}_{shown}", f"{source}, {shown}"
            found = make_sheet(name, rows, delimiter) if not isinstance(rows, str) else rows
            yield (source if isinstance(found, str) else name), found
    except (OSError, ValueError, csv.Error, sqlite3.Error, BadZipFile) as error:
        yield path.name, getattr(error, "strerror", None) or str(error)


# The name of a table, its rows (or the reason why they cannot be read), and the file's delimiter.
TablePart = tuple[str, "Sequence[Sequence[str]] | str", str]


def make_sheet(name: str, rows: Sequence[Sequence[str]], delimiter: str) -> Sheet | str:
    """Make a table from rows; the first row is the header; return the reason if the table is unsuitable."""
    cells = [[cell.strip() for cell in row] for row in rows]
    cells = [row for row in cells if any(row)]
    width = max(map(len, cells), default=0)
    columns = [[*column] for column in zip(*(row + [""] * (width - len(row)) for row in cells), strict=True)]
    columns = _normalise_numbers([column for column in columns if any(column)], decimal_commas=delimiter != ",")
    lines = list(zip(*columns, strict=True))
    if not lines:
        return "it has no rows"
    table = SourceTable((lines[0],), tuple(lines[1:]))
    return find_defect(table) or Sheet(name, table)


_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}([.\u00a0\u202f]\d{3})+|\d+)(,\d+)?")


def _normalise_numbers(columns: list[list[str]], *, decimal_commas: bool) -> list[list[str]]:
    """Remove thousands separators from columns of numbers, and replace decimal commas by points."""

    def has_only_numbers(column: list[str], *, decimal_comma: bool) -> bool:
        present = [cell for cell in column[1:] if cell not in MISSING]
        read = _COMMA_NUMBER.fullmatch if decimal_comma else lambda cell: is_number(cell) or _THOUSANDS.fullmatch(cell)
        return bool(present) and all(map(read, present))

    # If any column is numeric only when commas are read as decimal points, read the whole file in this way.
    comma = decimal_commas and any(
        has_only_numbers(column, decimal_comma=True) and not has_only_numbers(column, decimal_comma=False)
        for column in columns
    )
    removed, point = (r"[.\u00a0\u202f](?=\d)", ",") if comma else (",", ".")

    def normalise_cell(cell: str) -> str:
        return cell if cell in MISSING else re.sub(removed, "", cell).replace(point, ".")

    return [
        [column[0], *map(normalise_cell, column[1:])] if has_only_numbers(column, decimal_comma=comma) else column
        for column in columns
    ]


def _read_text_file(path: Path) -> Iterator[TablePart]:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(TOO_LONG)
    text = decode_text(path.read_bytes())
    if mark := re.match(r"sep=(.)\r?\n", text):  # A line that tells Excel the delimiter.
        text = text[mark.end() :]
    delimiter = mark[1] if mark else find_delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        yield "", list(reader), delimiter
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error


def _read_workbook(path: Path) -> Iterator[TablePart]:
    with ZipFile(path) as parts:
        if sum(part.file_size for part in parts.infolist()) > MOST_UNPACKED:
            raise ValueError(f"its parts have more than {MOST_UNPACKED >> 20} MiB")
    try:
        from openpyxl import load_workbook  # type: ignore[import-untyped]  # it ships no types
    except ImportError as error:
        raise ValueError("workbooks need openpyxl: pip install 'evalsuite[sandbox]'") from error
    try:
        with (
            warnings.catch_warnings(action="ignore"),  # openpyxl warns of styles and validations that are not read.
            closing(load_workbook(path, read_only=True, data_only=True)) as book,
        ):
            for sheet in book.worksheets:
                title = sheet.title if len(book.worksheets) > 1 else ""
                yield title, _convert_rows_to_text(sheet.iter_rows(values_only=True)), ","
    # A damaged workbook can raise any exception.
    except Exception as error:
        raise ValueError(f"it is not a readable workbook: {str(error) or type(error).__name__}") from error


def _read_database(path: Path) -> Iterator[TablePart]:
    with open_database(path) as database:
        for name in read_table_sql(database):
            try:
                rows = _convert_rows_to_text(read_rows(database, name))
            except sqlite3.Error as error:
                rows = str(error)
            yield name, rows, ","


def _convert_rows_to_text(rows: Iterable[Sequence[Any]]) -> list[list[str]] | str:
    """Return the rows that are not empty, as texts, or the reason why the table cannot be used."""
    collected, length, cells = [], 0, 0
    for row in rows:
        if any(isinstance(cell, bytes) for cell in row):
            return "it has binary cells"
        texts = [_format_cell(cell) for cell in row]
        length, cells = length + sum(map(len, texts)), cells + len(texts)
        if length > LONGEST or cells > MOST_CELLS:
            return TOO_LONG
        if any(texts):
            collected.append(texts)
    return collected


def _format_cell(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, datetime):
        return str(cell.date() if cell.time() == time() else cell)
    return "" if cell is None else str(cell)
