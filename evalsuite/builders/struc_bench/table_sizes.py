"""Print the statistics of the paper's Table 1: `evalsuite build struc-bench statistics`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.items import FORMAT_NAMES, read_items
from evalsuite.builders.struc_bench.files import format_by_name
from evalsuite.metrics.tables import read_tables
from evalsuite.output.reports.section import Cell, Column, Table

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from evalsuite.benchmarks.struc_bench.items import TableItem
    from evalsuite.metrics.tables import Format

WHAT = "items, format, mean rows and columns of files of items, as Markdown"
ABOUT = """\
Prints the paper's Table 1 for files of items: one row for each set of files whose names differ only in `train` and
`test`, with one column of counts for each of the two. Rows and columns are means over all tables of the set, so an item
with a Team and a Player table counts twice. Rows and columns of names count, and so does a row or column that a cell
spans."""
SPLIT = re.compile("train|test", re.IGNORECASE)
COUNTS = (Column("Train", "count"), Column("Test", "count"), Column("Tables", "count"))
COLUMNS = (Column("Files"), Column("Format"), *COUNTS, Column("Rows", "number", 2), Column("Columns", "number", 2))
NOTE = "Rows and columns: means over all tables of the items, including rows and columns of names."


def count_items(written: Format, test: Sequence[TableItem], train: Sequence[TableItem] = ()) -> list[Cell]:
    """Return format, counts of items and tables, and mean rows and columns per table (None without any table)."""
    tables = [table for item in (*test, *train) for table in read_tables(item.output, written)]
    sizes = zip(*((len(table.rows), table.width) for table in tables), strict=True)
    means: list[Cell] = [fmean(counts) for counts in sizes] or [None, None]
    return [FORMAT_NAMES[written], len(train), len(test), len(tables), *means]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the step."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="files of items, named after their format: table_test.json, html_test.json, latex_test.json",
    )


def run(args: Namespace) -> int:
    """Print the table."""
    from evalsuite.output.reports.markdown import in_terminal, render_table

    names = [path.name for path in args.files]
    rows: list[list[Cell]] = [
        [", ".join(path.name if names.count(path.name) == 1 else str(path) for path in paths), *_count_set(paths)]
        for paths in _group_files(args.files)
    ]
    table = render_table(Table("", COLUMNS, rows, NOTE))
    sys.stdout.write(f"{in_terminal(table) if sys.stdout.isatty() else table}\n")
    return 0


def _group_files(paths: Sequence[Path]) -> list[list[Path]]:
    """Group files of one folder whose names differ only in `train` and `test`."""
    sets: dict[tuple[Path, str], list[Path]] = {}
    for path in paths:
        sets.setdefault((path.parent, SPLIT.sub("", path.name)), []).append(path)
    return list(sets.values())


def _count_set(paths: Sequence[Path]) -> list[Cell]:
    splits: dict[bool, list[TableItem]] = {True: [], False: []}
    for path in paths:
        splits["train" in path.stem.lower()] += read_items(path)
    return count_items(format_by_name(paths[0]), splits[False], splits[True])
