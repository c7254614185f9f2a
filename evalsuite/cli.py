"""The command `evalsuite`: a table of its subcommands, which are implemented by functions in `commands/`."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NamedTuple

from evalsuite import __version__
from evalsuite.core.errors import EvalsuiteError, describe_exception
from evalsuite.core.option_values import ARGUMENTS, split_help_table


class CommandForm(NamedTuple):
    """A subcommand such as `gate`, or a second-level subcommand such as `gate attack`."""

    name: str  # The function `run_NAME` implements the form with this name.
    summary: str  # What the command does, in one line.
    takes_more: bool = False  # Whether the command passes unknown options to pytest.


MODULES = {
    "attack": "commands.attack", "benchmark": "commands.score_benchmark",
    "cases": "commands.export", "doctor": "commands.suites", "label": "commands.judge_sheet",
    "plan": "commands.suites", "rank": "commands.rank", "ray": "commands.gateway", "traces": "commands.traces",
}  # fmt: skip
"""Modules of the subcommands that are not implemented in the module `commands.COMMAND`."""

TABLE = """
init                       write a first case and a gate into a project; with --ci, write and prove a CI workflow
doctor                     check, before a run spends anything, what works here: model, key, sandbox, extras, disk
plan                       estimate, before anything is paid, what a suite will cost and which loss it can show
report                     print a run's report, computed again from its records
report case=show           show one case: question, answer, target, scores and reasons
report page=view           show runs in the browser: an index with trends, or one run's page
gate                       decide a run's gates, or other gates, again; the exit status is that of a run with these
    gates
gate attack                put faults into a replay of a green run, and list those that its gates do not notice
gate comment               post a verdict on the pull request or merge request of this CI job
baseline                   show which run a baseline is, and who promoted it, when and why
baseline promote           make a run that passed the baseline of later runs
compare                    put runs side by side, the first being the baseline
compare cases=diff         list the cases that two runs answered differently
compare tables=table_diff  list the cells in which a table differs from the wanted table
compare history            show gated metrics over releases, and slow drift from a reference
runs                       list the runs, the newest first
runs merge                 join the shards of a run into one run
runs prune                 remove old runs
runs verify                prove the report of a run or a bundle from the journal: checksums, records, every number
export                     write cases or numbers for other tools: CSV, Parquet, LaTeX, JSON Lines, inspect, lm-eval
export cases               write a run's cases as samples, with targets to fill in; --failed: the failed ones
export paper               write the LaTeX tables and the appendix of a paper that compares runs
export bundle              write a run as one file that can be verified and replayed offline
export submission=submit   write a run's answers in the form that a benchmark's leaderboard takes
judge                      judge a run's answers again, and measure how far the judge can be trusted
judge rank                 let a judge compare the answers of two runs or more: win rates and ratings
judge sheet=label          write a sheet with a random part of a run's cases, which people label
score                      score existing outputs
score traces+              score traces and chat logs with a suite's benchmarks
score benchmark            compare a benchmark's scores with the verdicts of its own checker, read from files
score metrics=metaeval     compare metrics with human ratings, and with known changes of tables
build                      make a benchmark's data from its sources
gateway                    serve one gateway to many sessions, and to any OpenAI client: one store, one limit, one set
    of keys
ray+                       run a suite's shards on a Ray cluster, with one gateway, one report and one exit status
"""
"""Each form of a command, with its summary. `=NAME` sets a name other than the last word, and `+` sets `takes_more`."""


def _parse_command_table() -> dict[str, dict[str, CommandForm]]:
    """Map each command's first word, then its second word ("" if it has none), to a form of `TABLE`."""
    commands: dict[str, dict[str, CommandForm]] = {}
    for spec, summary in split_help_table(TABLE):
        words, _, name = spec.rstrip("+").partition("=")
        command, _, word = words.partition(" ")
        form = CommandForm(name or word or command, summary, spec.endswith("+"))
        commands.setdefault(command, {})[word] = form
    return commands


COMMANDS = _parse_command_table()
"""Each command with its forms; the word after the command's name selects a form, and no word selects the first."""

FORMER_COMMANDS = {"verify-benchmark": "score benchmark"} | {
    form.name: f"{command} {word}"
    for command, forms in COMMANDS.items()
    for word, form in forms.items()
    if form.name not in COMMANDS
}
"""Present command names by former names; the former names still work."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; an error of evalsuite itself prints its message and returns 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # Escape characters that the output's encoding (such as cp1252) lacks.
            stream.reconfigure(errors="backslashreplace")
    options = parse_command(sys.argv[1:] if arguments is None else arguments)
    try:
        status: int = options.run(options)
    except (EvalsuiteError, OSError) as error:
        sys.stderr.write(f"evalsuite: {describe_exception(error)}\n")
        return 2
    return status


def parse_command(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of a command; the attribute `run` of the result is the function that executes it."""
    words = list(arguments)
    if words[:2] == ["diff", "tables"]:
        words[:1] = ["compare"]
    if words[:1] == ["attack-gate"]:
        words[:1] = ["gate", "attack"]
    against = any(word.partition("=")[0] == "--against" for word in words)
    if words[:1] == ["judge"] and words[1:2] != ["rank"] and against:
        words[:1] = ["judge", "rank"]
    if words and words[0] in FORMER_COMMANDS:
        sys.stderr.write(f"evalsuite {words[0]} is now: evalsuite {FORMER_COMMANDS[words[0]]}\n")
        words[:1] = FORMER_COMMANDS[words[0]].split()
    if not words or words[0] not in COMMANDS:
        return _make_overview_parser().parse_args(words)
    forms = COMMANDS[words[0]]
    word = words[1] if len(words) > 1 and words[1] in forms else ""
    form = forms[word]
    parser = make_form_parser(words[0], word)
    # Only `build` has subparsers, and `parse_known_intermixed_args` refuses a parser with subparsers.
    parse = parser.parse_known_args if form.name == "build" else parser.parse_known_intermixed_args
    options, further = parse(words[2 if word else 1 :])
    if further and not form.takes_more:
        parser.error(f"unrecognized arguments: {' '.join(further)}")
    options.further, options.parser = further, parser
    options.run = _import_command(words[0], form)
    return options


def make_form_parser(name: str, subcommand: str = "") -> argparse.ArgumentParser:
    """Make the parser of a command, or of one of its second-level subcommands."""
    forms = COMMANDS[name]
    summary = forms[subcommand].summary
    parser = argparse.ArgumentParser(
        prog=f"evalsuite {name} {subcommand}".rstrip(), description=f"{summary[0].upper()}{summary[1:]}."
    )
    ARGUMENTS[_import_command(name, forms[subcommand])](parser)
    if not subcommand and len(forms) > 1:
        others = "; ".join(f"`evalsuite {name} {other}`: {form.summary}" for other, form in forms.items() if other)
        parser.epilog = f"{parser.epilog or ''} Further forms: {others}.".strip()
    return parser


def _import_command(command: str, form: CommandForm) -> Any:
    module = MODULES.get(form.name) or MODULES.get(command, f"commands.{command}")
    return getattr(import_module(f"evalsuite.{module}"), f"run_{form.name}")


def _make_overview_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="evalsuite",
        description="Reads the runs that `pytest cases/` wrote to reports/, and builds benchmarks from their sources.",
        epilog="`evalsuite COMMAND --help` shows a command's options.",
    )
    parser.add_argument("--version", action="version", version=f"evalsuite {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, forms in COMMANDS.items():
        words = ", ".join(word for word in forms if word)
        commands.add_parser(name, help=forms[""].summary + (f" (also: {words})" if words else ""))
    return parser
