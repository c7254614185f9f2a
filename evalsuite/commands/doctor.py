"""`evalsuite doctor`: says what works here, before a run spends anything."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import demand_suite
from evalsuite.core.settings import OPTIONS

if TYPE_CHECKING:
    import argparse

ASKED = (
    "model",
    "model_base_url",
    "model_key_env",
    "judge_model",
    "judge_base_url",
    "judge_key_env",
    "user_model",
    "user_base_url",
    "user_key_env",
    "reports",
    "data",
    "sandbox",
    "program_env",
)
"""The settings that can be wrong on a machine; what ini files say of them counts, too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the suite, and those of pytest's options that matter here."""
    parser.description = (
        "Says in a table what works here, for a run with the same options: the model and its key (the server's list "
        "of models is read, which costs nothing; no model is asked), the judge, the model that plays users, the "
        "sandbox for model-written programs, the extras that are installed, the folder of the runs and its disk. "
        "Options that are not given come from the suite's ini file, as in a run. Exit status: 0 where all that a run "
        "needs is there, else 1."
    )
    parser.add_argument("suite", nargs="*", metavar="PATH", help="the suite, as for pytest: cases/")
    for option in OPTIONS:
        if option.name in ASKED:
            parser.add_argument(option.flag, dest=option.name, metavar=option.metavar, help=option.help)
    parser.add_argument(
        "--without-programs",
        action="store_true",
        help="a missing sandbox is not a fault: no case runs programs that a model writes",
    )


def run(options: argparse.Namespace) -> int:
    """Print the table, from within pytest: its ini files and conftests are those of a run."""
    demand_suite(*options.suite)
    options_given = [
        f"{option.flag}={getattr(options, option.name)}"
        for option in OPTIONS
        if option.name in ASKED and getattr(options, option.name)
    ]
    quietly = ["-p", "evalsuite.plugin", "-p", "evalsuite.plugin.doctor", "-p", "no:cacheprovider"]
    more = ["--doctor-without-programs"] if options.without_programs else []
    command = [sys.executable, "-m", "pytest", *quietly, *more, *options_given, *options.suite]
    # The command line is the user's own, passed on without a shell.
    return subprocess.run(command, check=False).returncode  # noqa: S603 - see above
