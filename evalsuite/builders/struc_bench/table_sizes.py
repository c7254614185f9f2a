"""The statistics of the paper's Table 1: items, format, mean rows and columns of the wanted tables."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.items import read_items
from evalsuite.benchmarks.struc_bench.prompts import FORMAT_NAMES
from evalsuite.builders.struc_bench.naming import told
from evalsuite.metrics.tables import read_tables
from evalsuite.reporting.section import Cell, Column, Table

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence

    from evalsuite.benchmarks.struc_bench.items import TableItem
    from evalsuite.metrics.tables import Format

WHAT = "items, format, mean rows and columns of files of items, as Markdown"
ABOUT = """\
Prints the paper's Table 1 for files of items: a row a file. Rows and columns are means over tables, so that an item
with a Team and a Player table counts twice; rows and columns that hold names count, and a row or column that a cell
spans counts as it would be seen."""
COLUMNS = (
    Column("File"),
    Column("Format"),
    Column("Items", "count"),
    Column("Tables", "count"),
    Column("Rows", "number", 2),
    Column("Columns", "number", 2),
)
NOTE = "Rows and columns: means over all tables of the items, those with names counted."


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the wanted tables of a set of items are like.

    Attributes:
        format: how they are written.
        items: number of items.
        tables: number of tables that can be read in them.
        rows: mean number of rows a table, the one with the columns' names counted; None without any table.
        columns: mean number of columns a table, that is of cells in its widest row; likewise.
    """

    format: Format
    items: int
    tables: int
    rows: float | None
    columns: float | None


def statistics(items: Sequence[TableItem], format: Format) -> Statistics:  # noqa: A002 - the word of the contract
    """Counts items, and the rows and columns of their tables."""
    tables = [table for item in items for table in read_tables(item.output, format)]
    rows = _mean([len(table.rows) for table in tables])
    return Statistics(format, len(items), len(tables), rows, _mean([table.width for table in tables]))


def statistics_table(counted: Mapping[str, Statistics]) -> Table:
    """The paper's Table 1.

    Args:
        counted: by the name that stands in the first column.
    """
    return Table("", COLUMNS, [_row(name, one) for name, one in counted.items()], NOTE)


def add_arguments(parser: ArgumentParser) -> None:
    """Adds what `run` needs to know."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a file of items; its name tells its format: table_test.json, html_test.json, latex_test.json",
    )


def run(args: Namespace) -> int:
    """Prints the table.

    Raises:
        DatasetError: a file is missing, damaged or not what it should be.
    """
    from evalsuite.reporting.markdown import render_table

    names = [path.name for path in args.files]
    counted = {
        path.name if names.count(path.name) == 1 else str(path): statistics(read_items(path), told(path))
        for path in args.files
    }
    sys.stdout.write(f"{render_table(statistics_table(counted))}\n")
    return 0


def _row(name: str, one: Statistics) -> Sequence[Cell]:
    return name, FORMAT_NAMES[one.format], one.items, one.tables, one.rows, one.columns


def _mean(counts: Sequence[int]) -> float | None:
    return math.fsum(counts) / len(counts) if counts else None
