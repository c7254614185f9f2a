"""`evalsuite compare A B ...`: puts runs side by side, the first being the baseline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder, own_declarations
from evalsuite.results.run_folders import find_folder

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, and where the comparison goes."""
    add_reports_folder(parser)
    parser.add_argument(
        "names", metavar="RUN", nargs="+", help="two runs or more: names or folders, or `last`"
    )
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME",
        help="what a run is called; once for each run, in their order (default: its model)",
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="DIR",
        help="folder for comparison.md, .html and .json and the pictures (default: reports/compare-A-B)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the comparison."""
    from evalsuite.output.reports.compare import write_comparison

    folders = [find_folder(options.reports, name) for name in options.names]
    target = options.to or options.reports / ("compare-" + "-".join(folder.name for folder in folders))[:120]
    written = write_comparison(folders, target, own_declarations(), options.label)
    sys.stdout.write(f"{written.at_a_glance()}\n\ncomparison: {written.file}\n")
    sys.stdout.write(f"page:       {written.file.with_suffix('.html')}\n")
    return 0
