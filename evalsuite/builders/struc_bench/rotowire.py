"""`evalsuite build struc-bench rotowire`: raw-text items from the box scores and reports of basketball games."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import read_text
from evalsuite.benchmarks.struc_bench.items import TableItem, items_json
from evalsuite.builders.building import BuildProgress, building, bytes_of, ending_cleanly, write
from evalsuite.builders.struc_bench.box_scores import Game, is_large, read_box_scores, write_tables
from evalsuite.builders.struc_bench.files import must_tell
from evalsuite.core.errors import DatasetError
from evalsuite.core.phrases import number_of
from evalsuite.metrics.tables import read_tables

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from evalsuite.metrics.tables import CellGrid


NAMES = ("Team", "Player")


def read_text_tables(data: Path) -> Iterator[Game]:
    """Read the games of a pair of files.

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


WHAT = "raw-text items from RotoWire's box scores and reports"
ABOUT = """\
Reads RotoWire's JSON (box_score, home_line, vis_line, summary) or the paired .text and .data files of
text-to-table. Tables keep of a box score what the report mentions: rows and columns with at least one mentioned
value, other cells blank; .data files hold just that already. Every game whose report fills a table becomes an item;
with --larger-than-3x3 only games with a table of more than 3 rows and 3 columns, counting those that hold names."""
INSTRUCTION = (
    "Make tables of the basketball report below: a table Team with a row for each team and a table Player with a "
    "row for each player, as far as the report gives their figures. Leave a cell empty where it says nothing."
)
A_TABLE = "a table that holds anything"
A_LARGE_TABLE = "a table larger than 3 x 3"
EXPECTED = "RotoWire's *.json, or pairs of *.text and *.data"


def add_arguments(parser: ArgumentParser) -> None:
    """Add what `run` needs to know."""
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        required=True,
        metavar="FILE_OR_DIR",
        help=f"{EXPECTED}, or a folder",
    )
    parser.add_argument(
        "--to",
        type=Path,
        required=True,
        metavar="FILE",
        help="the JSON file to write, such as table_test.json",
    )
    parser.add_argument(
        "--larger-than-3x3",
        dest="large_only",
        action="store_true",
        help="keep only games with a table of more than 3 rows and 3 columns",
    )


def run(args: Namespace) -> int:
    """Builds, and reports what was built.

    Raises:
        DatasetError: a file is missing, damaged or not what it should be, or nothing comes of it.
        SettingsError: the output cannot be written, or its name stands for another format.
    """
    must_tell(args.to, "markdown")
    files = source_files(args.source)
    wanted, fits = (A_LARGE_TABLE, is_large) if args.large_only else (A_TABLE, _is_filled)
    items, passed_over = list[TableItem](), 0
    with ending_cleanly(), building(args.to) as folder, BuildProgress(bytes_of(files), "B") as progress:
        for path in files:
            progress.begin(path.name)
            for game in _games(path):
                is_kept = any(map(fits, game.tables))
                passed_over += not is_kept
                if is_kept:
                    items.append(TableItem(INSTRUCTION, game.text, write_tables(game.tables)))
            progress.advance(path.stat().st_size)
        if not items:
            raise DatasetError(args.source, "", f"no game with {wanted}", "at least one")
        write(items_json(items), args.to, folder)
    sys.stdout.write(
        f"{number_of(len(items), 'item')} in {args.to}; "
        f"{number_of(passed_over, 'game')} passed over for lack of {wanted}\n"
    )
    return 0


def _is_filled(table: CellGrid) -> bool:
    return any(table.cells)


def source_files(source: Path) -> list[Path]:
    """List the files to read; of a pair, the one with the tables.

    Raises:
        DatasetError: there are none.
    """
    if not source.is_dir():
        return [source.with_suffix(".data") if source.suffix == ".text" else source]
    paths = {path.with_suffix(".data") if path.suffix == ".text" else path for path in source.iterdir()}
    if files := sorted(path for path in paths if path.suffix in {".json", ".data"}):
        return files
    raise DatasetError(source, "", "no such file", EXPECTED)


def _games(path: Path) -> Iterator[Game]:
    return read_text_tables(path) if path.suffix == ".data" else read_box_scores(path)
