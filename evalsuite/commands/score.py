"""`evalsuite score tables ...`: scores a table that exists already, with a diff of its cells in colour."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two files and how they are written."""
    parser.add_argument("what", choices=["tables"], help="what is scored")
    parser.add_argument("--reference", required=True, type=Path, metavar="FILE", help="the wanted table")
    parser.add_argument(
        "--prediction",
        required=True,
        type=Path,
        metavar="FILE",
        help="a model's answer, prose around it and all",
    )
    parser.add_argument(
        "--format", required=True, choices=["markdown", "html", "latex"], help="how the reference is written"
    )
    parser.add_argument("--any-order", action="store_true", help="rows may stand in any order")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the diff as a page")


def run(options: argparse.Namespace) -> int:
    """Print the score, the checklist of form, the diff and the signature to cite."""
    from tabulate import tabulate

    from evalsuite.metaeval.cell_diff import LEGEND, diff_cells, diff_page, show_cell
    from evalsuite.metrics.tables import table_score

    prediction, reference = _read(options.prediction), _read(options.reference)
    score = table_score(prediction, reference, format=options.format, row_order=not options.any_order)
    tables = diff_cells(score)
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    write = sys.stdout.write
    write(f"table score {score.value:.3f}   content {score.content:.3f}   form {score.form:.3f}\n\n")
    for fact in score.facts:
        write(f"{'[x]' if fact.fulfilled else '[ ]'} {_printable(fact.text)}\n")
    for rows in tables:
        shown = [[show_cell(cell, colour=colour) for cell in row] for row in rows]
        write(f"\n{tabulate(shown, tablefmt='presto', disable_numparse=True)}\n")
    write(f"\n{LEGEND}\n\n{score.signature}\n")
    if options.html:
        options.html.write_text(diff_page(tables, score), "utf-8")
    return 0


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(
            path, f"byte {error.start}", "bytes that are not UTF-8", "a text file in UTF-8"
        ) from error
