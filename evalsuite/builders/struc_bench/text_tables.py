"""Reports and tables in paired files: line n of `x.text` is a report, line n of `x.data` holds its tables.

The form: Wu, Zhang, Li, Text-to-Table (ACL 2022), whose RotoWire tables hold what the reports say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import read_text
from evalsuite.builders.struc_bench.raw_text import Game
from evalsuite.core.errors import DatasetError
from evalsuite.metrics.tables import read_tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalsuite.metrics.tables import CellGrid

NAMES = ("Team", "Player")


def read_text_tables(data: Path) -> Iterator[Game]:
    """The games of a pair of files.

    Args:
        data: the one with the tables; the reports are beside it.

    Raises:
        DatasetError: a file is missing, or not as published; the message names the line.
    """
    reports = data.with_suffix(".text")
    texts, tables = _lines(reports), _lines(data)
    if len(texts) != len(tables):
        raise DatasetError(data, "", f"{len(tables)} lines", f"{len(texts)}, one for each in {reports.name}")
    for number, (text, line) in enumerate(zip(texts, tables, strict=True), 1):
        if not text.strip():
            raise DatasetError(reports, f"line {number}", "nothing", "a report")
        yield Game(text.replace("<NEWLINE>", "\n").strip(), tuple(_tables(line, data, f"line {number}")))


def _lines(path: Path) -> list[str]:
    lines = read_text(path).split("\n")
    return lines[:-1] if not lines[-1].strip() else lines


def _tables(line: str, path: Path, where: str) -> Iterator[CellGrid]:
    tables = read_tables(line, "markdown")
    # Of some reports neither table holds anything, but both are named.
    if not tables and not all(f"{name}:" in line for name in NAMES):
        raise DatasetError(path, where, "no table", "Team: and Player: tables, rows between <NEWLINE>")
    for table in tables:
        name = next((name for name in NAMES if name.lower() == table.name.lower()), None)
        if name is None:
            raise DatasetError(path, where, f"a table named {table.name!r}", "Team or Player")
        for place, row in enumerate(table.rows, 1):
            if len(row) != len(table.columns):
                expected = f"{len(table.columns)} as in its first row"
                raise DatasetError(path, f"{where}, table {name}, row {place}", f"{len(row)} cells", expected)
        yield replace(table, name=name)
