"""The statistics of the paper's Table 1: items, format, mean rows and columns of the wanted tables."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.items import FORMAT_NAMES, read_items
from evalsuite.builders.struc_bench.files import format_by_name
from evalsuite.metrics.tables import read_tables
from evalsuite.output.reports.section import Cell, Column, Table

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence

    from evalsuite.benchmarks.struc_bench.items import TableItem
    from evalsuite.metrics.tables import Format

WHAT = "items, format, mean rows and columns of files of items, as Markdown"
ABOUT = """\
Prints the paper's Table 1 for files of items: a row for each set, whose files with `train` and with `test` in their
names are its two columns of counts. Rows and columns are means over the tables of both, so that an item with a Team
and a Player table counts twice; rows and columns that hold names count, and a row or column that a cell spans counts
as it would be seen."""
SPLIT = re.compile("train|test", re.IGNORECASE)
COLUMNS = (
    Column("Files"),
    Column("Format"),
    Column("Train", "count"),
    Column("Test", "count"),
    Column("Tables", "count"),
    Column("Rows", "number", 2),
    Column("Columns", "number", 2),
)
NOTE = "Rows and columns: means over all tables of the items, those with names counted."


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a set of items and of their tables.

    Attributes:
        format: how they are written.
        train: how many of them are for training.
        rows: mean number of rows a table, the one with the columns' names counted; None without any table.
        columns: mean number of columns a table, that is of cells in its widest row; likewise.
    """

    format: Format
    items: int
    train: int
    tables: int
    rows: float | None
    columns: float | None


def statistics(
    items: Sequence[TableItem],
    format: Format,  # noqa: A002 - the word of the contract
    train: Sequence[TableItem] = (),
) -> Statistics:
    """Count items, and the rows and columns of their tables."""
    tables = [table for item in (*items, *train) for table in read_tables(item.output, format)]
    rows = _mean([len(table.rows) for table in tables])
    columns = _mean([table.width for table in tables])
    return Statistics(format, len(items) + len(train), len(train), len(tables), rows, columns)


def statistics_table(counted: Mapping[str, Statistics]) -> Table:
    """Return the paper's Table 1."""
    return Table("", COLUMNS, [_row(name, one) for name, one in counted.items()], NOTE)


def add_arguments(parser: ArgumentParser) -> None:
    """Add what `run` needs to know."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="files of items, named after their format: table_test.json, html_test.json, latex_test.json",
    )


def run(args: Namespace) -> int:
    """Print the table.

    Raises:
        DatasetError: a file is missing, damaged or not what it should be.
    """
    from evalsuite.output.reports.markdown import in_terminal, render_table

    names = [path.name for path in args.files]
    counted = {
        ", ".join(path.name if names.count(path.name) == 1 else str(path) for path in paths): _count(paths)
        for paths in _sets(args.files)
    }
    table = render_table(statistics_table(counted))
    sys.stdout.write(f"{in_terminal(table) if sys.stdout.isatty() else table}\n")
    return 0


def _sets(paths: Sequence[Path]) -> list[list[Path]]:
    """Return the files of each set: those in one folder whose names differ in `train` and `test` alone."""
    sets: dict[tuple[Path, str], list[Path]] = {}
    for path in paths:
        sets.setdefault((path.parent, SPLIT.sub("", path.name)), []).append(path)
    return list(sets.values())


def _count(paths: Sequence[Path]) -> Statistics:
    splits: dict[bool, list[TableItem]] = {True: [], False: []}
    for path in paths:
        splits["train" in path.stem.lower()] += read_items(path)
    return statistics(splits[False], format_by_name(paths[0]), splits[True])


def _row(name: str, one: Statistics) -> Sequence[Cell]:
    return name, FORMAT_NAMES[one.format], one.train, one.items - one.train, one.tables, one.rows, one.columns


def _mean(counts: Sequence[int]) -> float | None:
    return math.fsum(counts) / len(counts) if counts else None
