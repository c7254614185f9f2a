"""`evalsuite gate RUN`: decides a run's gates again, with the exit status that the run would have had."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder, own_declarations
from evalsuite.reporting.markdown import decision_line
from evalsuite.results.runs import REPORT, find_folder

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the run, and what is decided instead of the run's own gates."""
    add_reports_folder(parser)
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`")
    parser.add_argument(
        "--gate", action="append", metavar="CONDITION", help="instead of the run's own; may be repeated"
    )
    parser.add_argument("--baseline", metavar="RUN", help="instead of the run's own")


def run(options: argparse.Namespace) -> int:
    """Prints the decisions and gives the exit status."""
    from evalsuite.decisions.gates import parse_gate
    from evalsuite.reporting.write import append_step_summary, write_run
    from evalsuite.results.runs import load_run

    folder = find_folder(options.reports, options.name)
    info = folder.info()
    given = {"gate": options.gate, "baseline": options.baseline}
    settings = info.get("settings", {}) | {name: value for name, value in given.items() if value}
    for text in settings.get("gate", ()):
        parse_gate(text)
    # What is wrong is told before the run's own file says it.
    load_run(folder)
    if settings.get("baseline"):
        load_run(find_folder(folder.path.parent, settings["baseline"]))
    info.pop("version", None)
    folder.write_info(info | {"settings": settings})
    verdict = write_run(folder, own_declarations())
    aside = append_step_summary(folder)
    for decision in verdict.decisions:
        sys.stdout.write(f"{decision_line(decision)}\n")
    for reason in (*verdict.reasons, *([aside] if aside else ())):
        sys.stdout.write(f"{reason}\n")
    sys.stdout.write(
        f"{verdict.headline} (exit status {int(verdict.status)})\nreport: {folder.path / REPORT}\n"
    )
    return int(verdict.status)
