"""`evalsuite plan SUITE --baseline RUN --detect 0.02`: what a suite will cost, and which loss it can show."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import demand_suite

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the suite and the options of the plan."""
    parser.epilog = "It is `pytest --plan SUITE`; any other option of pytest may follow after --."
    parser.add_argument(
        "suite", metavar="SUITE", nargs="?", help="folder or file of cases (default: pytest's own)"
    )
    parser.add_argument(
        "--baseline", metavar="RUN", help="earlier run whose usage and variance are expected again"
    )
    parser.add_argument(
        "--detect",
        metavar="LOSS",
        help="loss to be shown with a power of 80%%, as a share of a metric's range (default 0.02)",
    )
    parser.add_argument("--model", metavar="MODEL", help="the model to be asked, for its price")
    parser.add_argument("--epochs", metavar="K", help="times each sample is to be asked")
    parser.add_argument("--limit", metavar="N", help="samples per benchmark at most")
    parser.add_argument("--reports", metavar="DIR", help="folder of the runs (default: reports)")
    parser.add_argument("rest", metavar="-- OPTION", nargs="*", help="further options of pytest")


def run(options: argparse.Namespace) -> int:
    """Has pytest collect the suite and print the plan."""
    demand_suite(*([options.suite] if options.suite else []))
    named = ("baseline", "detect", "model", "epochs", "limit", "reports")
    arguments = [f"--{name}={value}" for name in named if (value := getattr(options, name)) is not None]
    suite = [options.suite] if options.suite else []
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--plan",
        "-qq",
        "--no-header",
        *arguments,
        *suite,
        *options.rest,
    ]
    # The command line is the user's own, passed on without a shell.
    return subprocess.run(command, check=False).returncode  # noqa: S603 - see above
