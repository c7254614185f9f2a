"""`evalsuite gate RUN`: decide a run's gates, or others, again; the exit status is what a run would have had."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder
from evalsuite.commands.report_again import add_target, report_again
from evalsuite.commands.verdict_lines import print_verdict
from evalsuite.results.run_folders import REPORT

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, and what is decided instead of the run's own gates."""
    add_reports_folder(parser)
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`")
    parser.add_argument(
        "--gate", action="append", metavar="CONDITION", help="instead of the run's own; may be repeated"
    )
    parser.add_argument(
        "--baseline", action="append", metavar="RUN", help="instead of the run's own; may be repeated"
    )
    parser.add_argument(
        "--on-undecided",
        choices=("pass", "fail"),
        help="instead of the run's own: what happens when a comparison with a baseline decides nothing",
    )
    add_target(parser)


def run(options: argparse.Namespace) -> int:
    """Print the decisions and the verdict's id, and return the exit status; the run keeps what it decided."""
    from evalsuite.decisions.conditions import parse_gates
    from evalsuite.output.reports.write import append_step_output, append_step_summary, comment

    parse_gates(options.gate)
    overrides = {"gate": options.gate, "baseline": options.baseline, "on_undecided": options.on_undecided}
    given = {name: value for name, value in overrides.items() if value}
    report = report_again(options, {**given, "decides": True})
    verdict = report.verdict
    asides = (append_step_summary(report.text(), comment(report)), append_step_output(verdict))
    print_verdict(verdict, int(verdict.status), *filter(None, asides))
    sys.stdout.write(f"verdict: {verdict.id}\n")
    if options.to is not None:
        sys.stdout.write(f"report: {options.to / REPORT}\n")
    return int(verdict.status)
