"""Write a blind sheet of runs' outputs for people to rate, and read the filled-in copies."""

from __future__ import annotations

import hashlib
import json
import math
import random
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.struc_bench.abilities import ERROR_TYPES
from evalsuite.benchmarks.struc_bench.items import ASPECTS, FORMAT_NAMES, RATINGS, extract_text
from evalsuite.builders.building import format_csv_sheet, open_build_folder, parse_csv_sheet, write_atomically
from evalsuite.core.errors import DatasetError, RunError, SettingsError
from evalsuite.core.option_values import declare_arguments, make_int_parser
from evalsuite.metrics.tables import FORMATS
from evalsuite.results.run_folders import find_run_folder
from evalsuite.results.runs import load_run
from evalsuite.samples.items import read_json, require_item

if TYPE_CHECKING:
    from evalsuite.core.types import Record

BENCHMARK = "struc_bench"
ID = "output"
COLUMNS = (ID, "markup", "text", "wanted", "answer", *ASPECTS, *ERROR_TYPES, "comment")


@declare_arguments(
    """
    runs=RUN+    names or folders of runs, or `last`
    --reports
    --to FILE    the CSV file to write
    --outputs N  number of outputs (default: all)
    --seed N     seed of choice and order (default: 0)

    Writes a CSV file with a random part of the outputs of one run or several, in random order: text, wanted table and
    answer, with empty columns for marks from 0 to 10 and for the paper's types of errors. The sheet shows no models,
    modes or scores. Each person fills in a copy of their own. NAME.key.json beside the sheet names each line's model:
    keep this file to yourself until all copies are back, for `evalsuite build struc-bench ratings`.
    """,
    required=("to",),
    outputs=make_int_parser(1),
    seed=0,
)
def run_sheet(args: Namespace) -> int:
    """Write the blind sheet, and a key file that states each output's sample and model."""
    if args.to.suffix != ".csv" or args.to.exists():
        problem = "exists and may contain ratings" if args.to.exists() else "is not the name of a .csv file"
        raise SettingsError(f"--to {args.to} {problem}; choose another name")
    records: dict[str, Record] = {}
    for name in args.runs:
        folder = find_run_folder(args.reports, name)
        for record in load_run(folder).records:
            # Take only the first epoch, because people rate one output per item and mode.
            if record.benchmark == BENCHMARK and record.transcript is not None and record.epoch == 1:
                output = hashlib.sha256(f"{folder.name}\n{record.case}".encode()).hexdigest()[:10]
                records[output] = record
    if not records:
        raise RunError(f"{', '.join(args.runs)}: no output of Struc-Bench to rate")
    chosen = random.Random(args.seed).sample(sorted(records), min(args.outputs or len(records), len(records)))  # noqa: S311 - not a secret
    key = args.to.with_suffix(".key.json")
    rated = {
        output: {"sample": f"{record.tags['cluster']}-{record.tags['mode']}", "model": record.model}
        for output, record in sorted(records.items())
        if output in chosen
    }
    rows = []
    for output in chosen:
        record = records[output]
        written = next(written for written in FORMATS if written == record.tags["format"])
        answer = record.transcript.answer if record.transcript else ""
        shown = (FORMAT_NAMES[written], extract_text(str(record.input), written), str(record.target), answer)
        rows.append([output, *shown, *[""] * (len(COLUMNS) - 1 - len(shown))])
    with open_build_folder(args.to) as build:
        write_atomically(format_csv_sheet(COLUMNS, rows), args.to, build)
        write_atomically(f"{json.dumps(rated, ensure_ascii=False, indent=1)}\n", key, build)
    sys.stdout.write(f"{len(chosen)} of {len(records)} outputs in {args.to}; their models are in {key}\n")
    return 0


HIGHEST = 10
YES = frozenset({"x", "yes", "y", "1", "true"})
NO = frozenset({"", "no", "n", "0", "false", "-"})


@declare_arguments(
    f"""
    sheets=SHEET+  filled-in copies, each named like its person
    --key FILE     the sheet's .key.json
    --to FILE      the JSON file to write, such as data/struc_bench/{RATINGS}

    Joins the filled-in copies of a sheet, each by one person, with the sheet's key, and writes {RATINGS}, which belongs
    beside the items. A line without marks is left out. An x, yes or 1 in its column marks a type of error; a sheet
    without error marks counts as not checked for errors.
    """,
    required=("key", "to"),
    sheets=Path,
)
def run_ratings(args: Namespace) -> int:
    """Write the ratings and print their number."""
    raters = [sheet.stem for sheet in args.sheets]
    if twice := next((rater for rater in raters if raters.count(rater) > 1), None):
        raise SettingsError(f"two sheets are called {twice}; name each sheet's file after the person who filled it in")
    outputs = {}
    for output, record in read_json(args.key, dict).items():
        item = require_item(record, args.key, f"output {output!r}")
        outputs[output] = {name: item.read(name, str) for name in ("sample", "model")}
    ratings = [rating for sheet in args.sheets for rating in read_sheet(sheet, outputs)]
    if not ratings:
        raise DatasetError(args.sheets[0], "", "no line with marks", "marks in the columns content and format")
    with open_build_folder(args.to) as build:
        write_atomically(f"{json.dumps(ratings, ensure_ascii=False, indent=1)}\n", args.to, build)
    rated = len({(rating["sample"], rating["model"]) for rating in ratings})
    sys.stdout.write(f"{len(ratings)} ratings of {rated} outputs by {len(raters)} people in {args.to}\n")
    return 0


def read_sheet(path: Path, outputs: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """Read one person's ratings as records of `human_scores.json`; `outputs` maps output ids to sample and model."""
    ratings: dict[str, dict[str, Any]] = {}
    for line, row in parse_csv_sheet(path, (ID, *ASPECTS, *ERROR_TYPES)):
        output = row[ID].strip()
        if output not in outputs or output in ratings:
            problem = f"output {output!r}{' again' if output in ratings else ''}"
            raise DatasetError(path, line, problem, "each output of the key once")
        marks = {aspect: _parse_optional_score(row[aspect], path, f"{line}, column {aspect}") for aspect in ASPECTS}
        errors = [name for name in ERROR_TYPES if _is_error_marked(row[name], path, f"{line}, column {name}")]
        if None not in marks.values():
            ratings[output] = {**outputs[output], "rater": path.stem, **marks, "errors": errors}
        elif any(mark is not None for mark in marks.values()):
            raise DatasetError(path, line, "a single mark", "marks for both content and format, or for neither")
    if not any(rating["errors"] for rating in ratings.values()):
        for rating in ratings.values():
            del rating["errors"]
    return list(ratings.values())


def _parse_optional_score(text: str, path: Path, where: str) -> float | None:
    if not text.strip():
        return None
    try:
        mark = float(text.strip().replace(",", "."))
    except ValueError:
        mark = math.nan
    if not 0 <= mark <= HIGHEST:
        raise DatasetError(path, where, repr(text)[:60], f"a number from 0 to {HIGHEST}")
    return mark


def _is_error_marked(text: str, path: Path, where: str) -> bool:
    word = text.strip().casefold()
    if word not in YES | NO:
        raise DatasetError(path, where, repr(text)[:60], "x or yes for an error, else nothing")
    return word in YES
