"""`evalsuite runs merge RUN ... --to NAME`: join the shards of a run into one run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder, own_declarations
from evalsuite.results.run_folders import REPORT, check_name, find_folder

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shards, and the name of the joined run."""
    add_reports_folder(parser)
    parser.add_argument("names", metavar="RUN", nargs="+", help="all shards: names or folders")
    parser.add_argument("--to", required=True, metavar="NAME", help="name of the joined run")


def run(options: argparse.Namespace) -> int:
    """Join shards and write their report; the gates are then decided with `evalsuite gate`."""
    from evalsuite.output.reports.write import write_run
    from evalsuite.results.merge import merge_runs

    check_name(options.reports, options.to, otherwise="choose another --to")
    folders = [find_folder(options.reports, name) for name in options.names]
    joined = merge_runs(folders, options.reports / options.to)
    report = write_run(joined, own_declarations())
    sys.stdout.write(f"{report.verdict.headline}\nreport: {joined.path / REPORT}\n")
    return 0
