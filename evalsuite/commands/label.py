"""`evalsuite judge sheet RUN`: a sheet with a random part of a run's cases, for people to fill in."""

from __future__ import annotations

import argparse
import csv
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder
from evalsuite.core.errors import RunError
from evalsuite.output.exports import inert
from evalsuite.results.run_folders import find_folder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalsuite.core.types import Record

COLUMNS = ("case", "input", "answer", "label")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, how many cases, and where the sheet goes."""
    add_reports_folder(parser)
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`")
    parser.add_argument("--cases", type=_count, default=50, metavar="N", help="how many (default: 50)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the choice (default: 0)")
    parser.add_argument("--benchmark", metavar="NAME", help="of this benchmark alone")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("labels.csv"), metavar="FILE", help="default: labels.csv"
    )
    parser.epilog = (
        "The sheet shows neither scores nor the model. Each person fills in the column `label` of a copy of their own: "
        "yes or no, or a number. `evalsuite judge RUN --people FILE` then says how far a judge agrees with them."
    )


def run(options: argparse.Namespace) -> int:
    """Write the sheet; one that is there already may hold labels and is left alone."""
    folder = find_folder(options.reports, options.name)
    run = load_run(folder)
    names = [options.benchmark] if options.benchmark else list(run.benchmarks)
    if unknown := [name for name in names if name not in run.benchmarks]:
        raise RunError(f"{folder.path} has no benchmark {unknown[0]}; it has {', '.join(run.benchmarks)}")
    cases = [row.case for name in names for row in run.benchmarks[name].tally]
    records = chosen((run.read(case) for case in cases), options.cases, options.seed)
    if not records:
        raise RunError(f"{folder.path} has no case with an answer to label")
    try:
        with options.output.open("x", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *map(_row, records)])
    except FileExistsError as error:
        raise RunError(
            f"{options.output} already exists and may hold labels; choose another file with -o"
        ) from error
    sys.stdout.write(f"{options.output}: {len(records)} of {len(cases)} cases to label\n")
    return 0


def chosen(records: Iterable[Record], count: int, seed: int) -> list[Record]:
    """Choose a random part of the cases that have an answer, in random order."""
    answered = [record for record in records if record.transcript is not None]
    return random.Random(seed).sample(answered, min(count, len(answered)))  # noqa: S311 - a random part, no secret


def _row(record: Record) -> list[str]:
    answer = record.transcript.answer if record.transcript else ""
    return [inert(record.case), inert(record.input), inert(answer), ""]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of cases from 1; got {text!r}")
    return int(text)
