"""`evalsuite build struc-bench sheet`: outputs of runs as a sheet for people to rate, which shows no system's name."""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.abilities import ERROR_TYPES
from evalsuite.benchmarks.struc_bench.human_scores import ASPECTS
from evalsuite.benchmarks.struc_bench.items import FORMAT_NAMES, text_of
from evalsuite.builders.building import building, ending_cleanly, write
from evalsuite.core.errors import RunError, SettingsError
from evalsuite.metrics.tables import FORMATS
from evalsuite.output.exports import inert
from evalsuite.results.run_folders import find_folder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Iterator, Sequence

    from evalsuite.core.types import Record

WHAT = "a blind sheet of runs' outputs, for people to rate"
ABOUT = """\
Writes a CSV file with a random part of the outputs of one run or several, in random order: text, wanted table and
answer, with empty columns for marks from 0 to 10 and for the paper's types of errors. It shows neither model nor mode
nor any score. Each person fills in a copy of their own. Beside it goes NAME.key.json, which says whose output each
line is: keep it to yourself until all copies are back, for `evalsuite build struc-bench ratings`."""
BENCHMARK = "struc_bench"
ID = "output"
COLUMNS = (ID, "markup", "text", "wanted", "answer", *ASPECTS, *ERROR_TYPES, "comment")


def add_arguments(parser: ArgumentParser) -> None:
    """Add what `run` needs to know."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="names or folders of runs, or `last`")
    parser.add_argument(
        "--reports",
        type=Path,
        default=Path("reports"),
        metavar="DIR",
        help="folder of the runs (default: reports)",
    )
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="the CSV file to write")
    parser.add_argument("--outputs", type=count_of, metavar="N", help="how many (default: all)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of choice and order (default: 0)")


def count_of(text: str) -> int:
    """Parse a whole number of at least 1, for argparse."""
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1; got {text!r}")
    return int(text)


def run(args: Namespace) -> int:
    """Write the sheet and its key.

    Raises:
        RunError: a run is missing, or has no output of Struc-Bench.
        SettingsError: the sheet is there already and may hold ratings, or cannot be written.
    """
    if args.to.suffix != ".csv" or args.to.exists():
        problem = (
            "is there already and may hold ratings" if args.to.exists() else "is not the name of a .csv file"
        )
        raise SettingsError(f"--to {args.to} {problem}; name another")
    records = {_output_id(name, record): record for name, record in _answered_rows(args.reports, args.runs)}
    if not records:
        raise RunError(f"{', '.join(args.runs)}: no output of Struc-Bench to rate")
    chosen = _chosen(records, args.outputs or len(records), args.seed)
    with ending_cleanly(), building(args.to) as folder:
        write(_sheet((output, records[output]) for output in chosen), args.to, folder)
        write(_key((output, records[output]) for output in chosen), key_path(args.to), folder)
    sys.stdout.write(
        f"{len(chosen)} of {len(records)} outputs in {args.to}; whose they are is in {key_path(args.to)}\n"
    )
    return 0


def key_path(sheet: Path) -> Path:
    """Name the file that says whose output each line of a sheet is."""
    return sheet.with_suffix(".key.json")


def _answered_rows(reports: Path, names: Iterable[str]) -> Iterator[tuple[str, Record]]:
    for name in names:
        folder = find_folder(reports, name)
        for record in load_run(folder).records:
            # Of an answer asked for several times, the first is rated: ratings are of outputs by item and mode.
            if record.benchmark == BENCHMARK and record.transcript is not None and record.epoch == 1:
                yield folder.name, record


def _output_id(run: str, record: Record) -> str:
    return hashlib.sha256(f"{run}\n{record.case}".encode()).hexdigest()[:10]


def _chosen(outputs: Iterable[str], count: int, seed: int) -> list[str]:
    every = sorted(outputs)
    return random.Random(seed).sample(every, min(count, len(every)))  # noqa: S311 - a random part, no secret


def _sheet(records: Iterable[tuple[str, Record]]) -> str:
    stream = io.StringIO()
    # Spreadsheets tell UTF-8 by its mark.
    stream.write("\ufeff")
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    writer.writerows(_row(output, record) for output, record in records)
    return stream.getvalue().encode("utf-8", "replace").decode()


def _row(output: str, record: Record) -> Sequence[str]:
    written = next(written for written in FORMATS if written == record.tags["format"])
    answer = record.transcript.answer if record.transcript else ""
    shown = (FORMAT_NAMES[written], text_of(str(record.input), written), str(record.target), answer)
    return [output, *map(inert, shown), *[""] * (len(COLUMNS) - 1 - len(shown))]


def _key(records: Iterable[tuple[str, Record]]) -> str:
    rated = {
        output: {"sample": f"{record.tags['cluster']}-{record.tags['mode']}", "model": record.model}
        for output, record in records
    }
    return f"{json.dumps(dict(sorted(rated.items())), ensure_ascii=False, indent=1)}\n"
