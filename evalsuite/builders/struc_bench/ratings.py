"""`evalsuite build struc-bench ratings`: sheets that people filled in, as `human_scores.json`."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import expect, read_json, read_text, take
from evalsuite.benchmarks.struc_bench.abilities import ERROR_TYPES
from evalsuite.benchmarks.struc_bench.human_scores import ASPECTS, FILE
from evalsuite.builders.building import building, ending_cleanly, write
from evalsuite.builders.struc_bench.rating_sheet import ID
from evalsuite.core.errors import DatasetError, SettingsError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Mapping

WHAT = f"{FILE} from sheets that people filled in"
ABOUT = f"""\
Joins the filled-in copies of a sheet, each by one person, with its key, and writes {FILE}, which belongs beside the
items. A line without marks is left out. A type of error is there where its column has an x, yes or 1; in a sheet in
which no error is marked at all, nobody looked for them."""
HIGHEST = 10
YES = frozenset({"x", "yes", "y", "1", "true"})
NO = frozenset({"", "no", "n", "0", "false", "-"})


def add_arguments(parser: ArgumentParser) -> None:
    """Add what `run` needs to know."""
    parser.add_argument(
        "sheets",
        nargs="+",
        type=Path,
        metavar="SHEET",
        help="filled-in copies; a file's name names the person",
    )
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="the sheet's .key.json")
    parser.add_argument(
        "--to", type=Path, required=True, metavar="FILE", help=f"such as data/struc_bench/{FILE}"
    )


def run(args: Namespace) -> int:
    """Write the ratings and print their number.

    Raises:
        DatasetError: a sheet or the key is not as it should be; the message names the line.
        SettingsError: two sheets are called the same, or the output cannot be written.
    """
    raters = [sheet.stem for sheet in args.sheets]
    if twice := next((rater for rater in raters if raters.count(rater) > 1), None):
        raise SettingsError(f"two sheets are called {twice}: a file's name names the person")
    outputs = _read_key(args.key)
    ratings = [rating for sheet in args.sheets for rating in read_sheet(sheet, outputs)]
    if not ratings:
        raise DatasetError(
            args.sheets[0], "", "no line with marks", "marks in the columns content and format"
        )
    with ending_cleanly(), building(args.to) as folder:
        write(f"{json.dumps(ratings, ensure_ascii=False, indent=1)}\n", args.to, folder)
    rated = len({(rating["sample"], rating["model"]) for rating in ratings})
    sys.stdout.write(f"{len(ratings)} ratings of {rated} outputs by {len(raters)} people in {args.to}\n")
    return 0


def read_sheet(path: Path, outputs: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """Read one person's ratings in the form of `human_scores.json`.

    `outputs` holds sample and model by the output's id.

    Raises:
        DatasetError: a column is missing, an output is unknown or rated twice, or a mark is none.
    """
    ratings: dict[str, dict[str, Any]] = {}
    for line, row in _lines(path):
        output = (row[ID] or "").strip()
        if output not in outputs or output in ratings:
            problem = f"output {output!r}{' again' if output in ratings else ''}"
            raise DatasetError(path, line, problem, "each output of the key once")
        marks = {aspect: _mark(row[aspect], path, f"{line}, column {aspect}") for aspect in ASPECTS}
        errors = [name for name in ERROR_TYPES if _is_there(row[name], path, f"{line}, column {name}")]
        if None not in marks.values():
            ratings[output] = {**outputs[output], "rater": path.stem, **marks, "errors": errors}
        elif any(mark is not None for mark in marks.values()):
            raise DatasetError(
                path, line, "one mark of two", "marks for both content and format, or for neither"
            )
    if not any(rating["errors"] for rating in ratings.values()):
        for rating in ratings.values():
            del rating["errors"]
    return list(ratings.values())


def _read_key(path: Path) -> dict[str, dict[str, str]]:
    outputs = {}
    for output, record in read_json(path, dict).items():
        where = f"output {output!r}"
        fields = expect(record, dict, path, where)
        outputs[output] = {name: take(fields, name, str, path, where) for name in ("sample", "model")}
    return outputs


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    text = read_text(path).removeprefix("\ufeff")
    # Spreadsheets of some countries part fields by semicolons.
    delimiter = ";" if text.partition("\n")[0].count(";") > text.partition("\n")[0].count(",") else ","
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    columns = (ID, *ASPECTS, *ERROR_TYPES)
    try:
        if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
            raise DatasetError(path, "line 1", f"no column {missing[0]}", f"the columns {', '.join(columns)}")
        for row in reader:
            yield f"line {reader.line_num}", row
    except csv.Error as error:
        raise DatasetError(path, f"line {reader.line_num}", str(error), "a sheet in CSV") from error


def _mark(text: str | None, path: Path, where: str) -> float | None:
    if not (text or "").strip():
        return None
    try:
        mark = float(str(text).strip().replace(",", "."))
    except ValueError:
        mark = math.nan
    if not 0 <= mark <= HIGHEST:
        raise DatasetError(path, where, repr(text)[:60], f"a number from 0 to {HIGHEST}")
    return mark


def _is_there(text: str | None, path: Path, where: str) -> bool:
    word = (text or "").strip().casefold()
    if word not in YES | NO:
        raise DatasetError(path, where, repr(text)[:60], "x or yes where the error is there, else nothing")
    return word in YES
