"""The command `evalsuite`: the table of its commands, each a file in `commands/`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from typing import TYPE_CHECKING

from evalsuite.core.errors import EvalsuiteError, in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMANDS = {
    "plan": "say what a suite will take, and which loss it can show, before anything is paid",
    "init": "write a first case, a gate and a CI workflow into a project of your own",
    "runs": "list the runs there are, the newest first",
    "show": "show one case: question, answer, target, scores and reasons",
    "diff": "list the cases that two runs answered differently",
    "prune": "remove old runs",
    "report": "print a run's report, made again from its records",
    "history": "show gated metrics over releases, and slow drift from a reference",
    "compare": "put runs side by side, the first being the baseline",
    "view": "show runs in the browser: an index with trends, or one run's page",
    "merge": "join the shards of a run into one run",
    "gate": "decide a run's gates, or others, again; the exit status is what the run would have had",
    "comment": "post a verdict on the pull request or merge request of this CI job",
    "doctor": "say what works here before a run spends anything: model, key, sandbox, extras, disk",
    "submit": "write a run's answers in the form that a benchmark's leaderboard takes",
    "export": "write cases or numbers for other tools: CSV, Parquet, LaTeX, JSON Lines, inspect, lm-eval",
    "paper": "write the LaTeX tables and the appendix of a paper that compares runs",
    "label": "write a sheet with a random part of a run's cases, for people to label",
    "judge": "judge a run's answers again, and say how far the judge can be trusted",
    "verify": "prove a run's report, or a bundle's, from its journal: checksums, records, every number",
    "bundle": "write a run as one file that can be verified and replayed offline",
    "gateway": "serve one gateway to many sessions, and to any OpenAI client: one store, one limit, one set of keys",
    "ray": "run a suite's shards on a Ray cluster, with one gateway, one report and one exit status",
    "build": "make a benchmark's data from its sources",
    "score": "score outputs that exist already",
    "metaeval": "measure metrics: against human ratings, and on known changes",
}
"""What each command does; it is the module of its name in `commands/`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; errors of evalsuite's own are one message and status 2."""
    command_line = sys.argv[1:] if arguments is None else arguments
    _write_what_can_be_written()
    parser = make_parser(command_line)
    options, further = parser.parse_known_args(command_line)
    if further and not options.takes_further:
        parser.error(f"unrecognized arguments: {' '.join(further)}")
    options.further = further
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except (EvalsuiteError, OSError) as error:
        sys.stderr.write(f"evalsuite: {in_words(error)}\n")
        return 2


def _write_what_can_be_written() -> None:
    """Lets characters that the output's encoding lacks (LANG=C, cp1252) be written as escapes, not end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def make_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """All commands; the module of one, with its options, is imported where it is named among the arguments."""
    parser = argparse.ArgumentParser(
        prog="evalsuite",
        description="Reads the runs that `pytest cases/` left in reports/, and builds benchmarks from their sources.",
    )
    parser.add_argument("--version", action="version", version=f"evalsuite {version('evalsuite')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name in arguments:
            module = import_module(f"evalsuite.commands.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run, takes_further=hasattr(module, "FURTHER"))
    return parser
