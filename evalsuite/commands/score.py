"""`evalsuite score tables ...`: scores tables that exist already, with a diff of their cells in colour."""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import DatasetError, ScoringError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from evalsuite.metrics.tables import TableScore

FIELDS = ("pair", "value", "content", "form")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the tables, or a file of pairs, and the form of the output."""
    parser.add_argument("what", choices=["tables"], help="what is scored")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="the wanted table")
    parser.add_argument(
        "--prediction", type=Path, metavar="FILE", help="a model's answer, prose around it and all"
    )
    parser.add_argument(
        "--pairs",
        type=Path,
        metavar="FILE",
        help="JSON lines {prediction, reference}, each with or without id and format, in place of the two",
    )
    parser.add_argument(
        "--format", metavar="MARKUP", help="markdown, html or latex (default: found in the reference)"
    )
    parser.add_argument("--any-order", action="store_true", help="rows may stand in any order")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the diff as a page")
    parser.add_argument("--json", action="store_true", help="print JSON: one object per table")
    parser.add_argument("--csv", action="store_true", help="print a line of numbers per table")
    parser.set_defaults(parser=parser)


def run(options: argparse.Namespace) -> int:
    """Print the score, the checklist of form, the diff and the signature to cite; of pairs a line each."""
    if (options.pairs is None) == (options.reference is None or options.prediction is None):
        options.parser.error("give --reference and --prediction, or --pairs")
    if options.pairs is None:
        pair = {"prediction": read_table(options.prediction), "reference": read_table(options.reference)}
        scored = [(options.prediction.name, score_pair(pair, options.format, any_order=options.any_order))]
    else:
        scored = [
            (name, _score_line(options.pairs, name, pair, options)) for name, pair in _pairs(options.pairs)
        ]
    if options.json:
        sys.stdout.writelines(
            f"{json.dumps({'pair': name, **score.to_dict()}, ensure_ascii=False)}\n" for name, score in scored
        )
    elif options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows((name, *_numbers(score)) for name, score in scored)
    elif options.pairs is not None:
        _print_table(scored)
    else:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        sys.stdout.write(f"{scored[0][1].show(colour=colour)}\n")
    if options.html:
        from evalsuite.metrics.tables.difference import html_page

        options.html.write_text(html_page(*(score for _, score in scored)), "utf-8")
    return 0


def score_pair(pair: dict[str, Any], written: str | None, *, any_order: bool = False) -> TableScore:
    """Score one pair.

    Raises:
        ScoringError: the reference holds no readable table, or the format is unknown.
    """
    from evalsuite.metrics.tables import table_score

    try:
        return table_score(
            pair["prediction"],
            pair["reference"],
            format=pair.get("format") or written,
            row_order=not any_order,
        )
    except (TypeError, ValueError) as error:
        raise ScoringError(str(error)) from error


def read_table(path: Path) -> str:
    """Read a text file.

    Raises:
        DatasetError: the file is not UTF-8.
    """
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(
            path, f"byte {error.start}", "bytes that are not UTF-8", "a text file in UTF-8"
        ) from error


def _pairs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    lines = read_table(path).splitlines()
    if not any(line.strip() for line in lines):
        raise DatasetError(path, "", "no line", "JSON lines {prediction, reference}")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            pair = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DatasetError(path, f"line {number}", f"no JSON ({error})", "a JSON object") from error
        if not isinstance(pair, dict) or not {"prediction", "reference"} <= pair.keys():
            raise DatasetError(path, f"line {number}", "another value", "{prediction, reference}")
        yield str(pair.get("id", number)), pair


def _score_line(path: Path, name: str, pair: dict[str, Any], options: argparse.Namespace) -> TableScore:
    try:
        return score_pair(pair, options.format, any_order=options.any_order)
    except ScoringError as error:
        raise ScoringError(f"{path}, pair {name}: {error}") from error


def _numbers(score: TableScore) -> tuple[float, float, float]:
    return score.value, score.content, score.form


def _print_table(scored: Sequence[tuple[str, TableScore]]) -> None:
    from evalsuite.metrics.tables.difference import printable

    width = max(len("mean"), *(len(name) for name, _ in scored))
    means = [
        sum(column) / len(scored) for column in zip(*(_numbers(score) for _, score in scored), strict=True)
    ]
    write = sys.stdout.write
    write(f"{'pair':<{width}}  value  content  form\n")
    for name, numbers in [*((name, _numbers(score)) for name, score in scored), ("mean", means)]:
        value, content, form = numbers
        write(f"{printable(name):<{width}}  {value:.3f}    {content:.3f} {form:.3f}\n")
    write(f"\n{scored[0][1].signature}\n")
