"""What is made of a run afterwards: printed, and written to a folder of its own where one is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.commands.arguments import own_declarations
from evalsuite.core.errors import SettingsError
from evalsuite.results.run_folders import COMMENT, REPORT, SUMMARY, find_folder, is_run
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from evalsuite.output.reports.write import RunReport

AGAIN = "again"
"""The folder, in that of a run, for judgements that are made of it afterwards."""


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add `--to`."""
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="also write report.md, report.html, summary.json, comment.md and pictures to this folder; "
        "what the run itself decided and wrote stays as it is",
    )


def report_again(options: argparse.Namespace, instead: Mapping[str, Any]) -> RunReport:
    """Make the report of the run that a command names, and write it to the folder of `--to`.

    Args:
        options: the command's; `name`, `reports` and `to` are used.
        instead: settings that take the place of the run's own.

    Raises:
        RunError: the run, or its baseline, cannot be read.
        SettingsError: `--to` names a run.
    """
    from evalsuite.output.reports.write import make_report, write_report

    if options.to is not None:
        _empty(options.to)
    run = load_run(find_folder(options.reports, options.name), own_declarations())
    settings = {**run.info.get("settings", {}), **instead}
    report = make_report(replace(run, info={**run.info, "settings": settings}))
    if options.to is not None:
        write_report(report, options.to)
    return report


def _empty(target: Path) -> None:
    """Remove an earlier verdict, so that a command that fails leaves none behind for others to post."""
    from evalsuite.output.page.write import PAGE

    if is_run(target):
        raise SettingsError(f"--to {target}: this is a run, which keeps its own report; name another folder")
    for name in (COMMENT, SUMMARY, REPORT, PAGE):
        (target / name).unlink(missing_ok=True)
