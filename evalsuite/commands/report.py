"""`evalsuite report RUN`: print a run's report, made again from its records."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder
from evalsuite.commands.report_again import add_target, report_again
from evalsuite.results.run_folders import REPORT

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, and whether the report is kept."""
    add_reports_folder(parser)
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`")
    add_target(parser)


def run(options: argparse.Namespace) -> int:
    """Print the report: as Markdown into a file or a pipe, without its escapes on a terminal."""
    from evalsuite.output.reports.markdown import in_terminal

    report = report_again(options, {})
    text = report.text()
    sys.stdout.write(f"{in_terminal(text)}\n" if sys.stdout.isatty() else text)
    if options.to is not None:
        sys.stdout.write(f"report: {options.to / REPORT}\n")
    return 0
