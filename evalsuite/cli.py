"""The command `evalsuite`: reports again, compares runs, decides gates, builds benchmarks from their sources."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks import shipped
from evalsuite.errors import EvalsuiteError, in_words
from evalsuite.reporting.markdown import decision_line
from evalsuite.reporting.runs import REPORT, find_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BUILDERS = {
    "head-to-tail": (
        "evalsuite.benchmarks.head_to_tail.build",
        "questions from IMDb, Goodreads, MAG, DBLP or DBpedia",
    ),
    "struc-bench": (
        "evalsuite.benchmarks.struc_bench.build",
        "items of Struc-Bench from box scores, from .tex and .html files; FormatCoT descriptions; statistics",
    ),
    "treb": ("evalsuite.benchmarks.treb.build", "question-answer pairs from a folder of CSV tables"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; errors of evalsuite's own are one message and status 2."""
    given = sys.argv[1:] if arguments is None else arguments
    options = make_parser(given).parse_args(given)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except (EvalsuiteError, OSError) as error:
        sys.stderr.write(f"evalsuite: {in_words(error)}\n")
        return 2


def make_parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """All commands with their options; those of a builder are loaded where it is among the arguments."""
    parser = argparse.ArgumentParser(
        prog="evalsuite",
        description="Reads the runs that `pytest cases/` left in reports/, and builds benchmarks from their sources.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_report(commands)
    _add_compare(commands)
    _add_merge(commands)
    _add_gate(commands)
    _add_build(commands, given)
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    what: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
    parser.set_defaults(run=run)
    parser.add_argument(
        "--reports",
        type=Path,
        default=Path("reports"),
        metavar="DIR",
        help="folder of the runs (default: reports)",
    )
    return parser


def _add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "report", report, "make a run's report again from its records")
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`")


def report(options: argparse.Namespace) -> int:
    """Rebuilds report, summary and pictures."""
    from evalsuite.reporting.write import write_run

    folder = find_folder(options.reports, options.name)
    verdict = write_run(folder, shipped)
    sys.stdout.write(f"{verdict.headline}\nreport: {folder.path / REPORT}\n")
    return 0


def _add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "compare", compare, "put runs side by side, the first being the baseline")
    parser.add_argument(
        "names", metavar="RUN", nargs="+", help="two runs or more: names or folders, or `last`"
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="DIR",
        help="folder for comparison.md and its pictures (default: reports/compare-A-B)",
    )


def compare(options: argparse.Namespace) -> int:
    """Writes the comparison."""
    from evalsuite.reporting.compare import write_comparison

    folders = [find_folder(options.reports, name) for name in options.names]
    target = options.to or options.reports / ("compare-" + "-".join(folder.name for folder in folders))[:120]
    file = write_comparison(folders, target, shipped)
    sys.stdout.write(f"comparison: {file}\n")
    return 0


def _add_merge(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "merge", merge, "join the shards of a run into one run")
    parser.add_argument("names", metavar="RUN", nargs="+", help="all shards: names or folders")
    parser.add_argument("--to", required=True, metavar="NAME", help="name of the joined run")


def merge(options: argparse.Namespace) -> int:
    """Joins shards and writes their report; the gates are then decided with `evalsuite gate`."""
    from evalsuite.reporting.merge import merge_runs
    from evalsuite.reporting.runs import check_name
    from evalsuite.reporting.write import write_run

    check_name(options.reports, options.to)
    folders = [find_folder(options.reports, name) for name in options.names]
    joined = merge_runs(folders, options.reports / options.to)
    verdict = write_run(joined, shipped)
    sys.stdout.write(f"{verdict.headline}\nreport: {joined.path / REPORT}\n")
    return 0


def _add_gate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    what = "decide a run's gates again, with the exit status that the run would have had"
    parser = _command(commands, "gate", gate, what)
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`")
    parser.add_argument(
        "--gate", action="append", metavar="CONDITION", help="instead of the run's own; may be repeated"
    )
    parser.add_argument("--baseline", metavar="RUN", help="instead of the run's own")


def gate(options: argparse.Namespace) -> int:
    """Prints the decisions and gives the exit status."""
    from evalsuite.reporting.gates import parse_gate
    from evalsuite.reporting.runs import load_run
    from evalsuite.reporting.write import append_step_summary, write_run

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
    verdict = write_run(folder, shipped)
    aside = append_step_summary(folder)
    for decision in verdict.decisions:
        sys.stdout.write(f"{decision_line(decision)}\n")
    for reason in (*verdict.reasons, *([aside] if aside else ())):
        sys.stdout.write(f"{reason}\n")
    sys.stdout.write(
        f"{verdict.headline} (exit status {int(verdict.status)})\nreport: {folder.path / REPORT}\n"
    )
    return int(verdict.status)


def _add_build(commands: argparse._SubParsersAction[argparse.ArgumentParser], given: Sequence[str]) -> None:
    what = "make a benchmark's data from its sources"
    parser = commands.add_parser("build", help=what, description=what[0].upper() + what[1:] + ".")
    builders = parser.add_subparsers(metavar="BENCHMARK", required=True)
    for name, (module, made_of) in BUILDERS.items():
        builder = builders.add_parser(name, help=made_of, description=f"Makes {made_of}.")
        if name in given:
            found = import_module(module)
            found.add_arguments(builder)
            builder.set_defaults(run=found.run)


if __name__ == "__main__":
    sys.exit(main())
