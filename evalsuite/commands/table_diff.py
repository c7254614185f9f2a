"""`evalsuite compare tables A B`: the cells in which a table differs from the wanted one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.commands.score import read_table, score_pair

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two tables and the form of the output."""
    parser.add_argument("first", type=Path, metavar="A", help="a file with a table, such as a model's answer")
    parser.add_argument("second", type=Path, metavar="B", help="the file with the wanted table")
    parser.add_argument("--format", metavar="MARKUP", help="markdown, html or latex (default: found in B)")
    parser.add_argument("--any-order", action="store_true", help="rows may stand in any order")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the diff as a page")
    parser.add_argument("--most", type=int, default=50, metavar="N", help="cells to list (default: 50)")


def run(options: argparse.Namespace) -> int:
    """Print the table with its differences, then a line for each cell that differs."""
    pair = {"prediction": read_table(options.first), "reference": read_table(options.second)}
    score = score_pair(pair, options.format, any_order=options.any_order)
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    differing = [cell for cell in score.cells if cell.state != "equal"]
    sys.stdout.write(f"{score.show(colour=colour)}\n\n")
    sys.stdout.writelines(f"{cell}\n" for cell in differing[: options.most])
    if len(differing) > options.most:
        sys.stdout.write(f"... and {len(differing) - options.most} more (--most)\n")
    if not differing:
        sys.stdout.write("no cell differs\n")
    if options.html:
        from evalsuite.metrics.tables.difference import html_page

        options.html.write_text(html_page(score), "utf-8")
    return 0
