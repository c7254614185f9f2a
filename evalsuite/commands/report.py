"""`evalsuite report RUN`: makes a run's report again from its records."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder, own_declarations
from evalsuite.results.runs import REPORT, find_folder

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the run."""
    add_reports_folder(parser)
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`")


def run(options: argparse.Namespace) -> int:
    """Rebuilds report, summary and pictures."""
    from evalsuite.reporting.write import write_run

    folder = find_folder(options.reports, options.name)
    verdict = write_run(folder, own_declarations())
    sys.stdout.write(f"{verdict.headline}\nreport: {folder.path / REPORT}\n")
    return 0
