"""What is made of a run afterwards: printed, and kept only where asked for, beside what the run itself decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalsuite.commands.arguments import own_declarations
from evalsuite.results.run_folders import REPORT, find_folder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from evalsuite.output.reports.write import RunReport

AGAIN = "again"
"""The folder, in that of a run, for what is made of it afterwards."""


def add_save(parser: argparse.ArgumentParser, name: str) -> None:
    """Adds `--save`."""
    parser.add_argument(
        "--save",
        action="store_true",
        help=f"also write report.md, report.html, summary.json and pictures to RUN/{AGAIN}/{name}/; "
        "what the run itself decided and wrote stays as it is",
    )


def report_again(options: argparse.Namespace, instead: Mapping[str, Any]) -> RunReport:
    """The report of the run that a command names.

    Args:
        options: of the command; `name` and `reports` are used.
        instead: settings that take the place of the run's own.

    Raises:
        RunError: the run, or its baseline, cannot be read.
    """
    from evalsuite.output.reports.write import make_report

    run = load_run(find_folder(options.reports, options.name), own_declarations())
    settings = {**run.info.get("settings", {}), **instead}
    return make_report(replace(run, info={**run.info, "settings": settings}))


def save(report: RunReport, options: argparse.Namespace, name: str) -> str:
    """With `--save`, writes a report into a folder of its own; a line that says where, or nothing."""
    if not options.save:
        return ""
    from evalsuite.output.reports.write import write_report

    target = report.run.folder.path / AGAIN / name
    write_report(report, target)
    return f"report: {target / REPORT}\n"
