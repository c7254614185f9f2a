"""`evalsuite export submission BENCHMARK RUN`: write a run's answers in the form that a leaderboard takes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder
from evalsuite.core.errors import RunError
from evalsuite.core.phrases import number_of
from evalsuite.results.run_folders import find_folder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark, the run, the modes that are handed in, and where the file goes."""
    add_reports_folder(parser)
    parser.add_argument("benchmark", choices=["treb"], help="the benchmark, which is that of the leaderboard")
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`")
    parser.add_argument(
        "--mode",
        action="append",
        default=[],
        help="of a question that ran in several modes, the answer in this one; may be repeated, in order of preference",
    )
    parser.add_argument(
        "--model-name", metavar="NAME", help="as the leaderboard is to show it (default: the run's)"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: RUN.jsonl, in the present folder"
    )
    parser.epilog = (
        "Each line has id, model_name, question, generation and pred_answer. Questions without references are run like "
        "any others: they are answered, and not scored. Exit status 1 where an answer is missing."
    )


def run(options: argparse.Namespace) -> int:
    """Write the file; a case in error has no answer to submit."""
    from evalsuite.benchmarks.treb.report import choose_rows, write_line

    folder = find_folder(options.reports, options.name)
    loaded = load_run(folder)
    if options.benchmark not in loaded.benchmarks:
        raise RunError(
            f"{folder.path} has no case of {options.benchmark}; it has {', '.join(loaded.benchmarks)}"
        )
    bench = loaded.benchmarks[options.benchmark]
    rows = choose_rows(bench.tally, options.mode)
    answered = [row for row in rows if row.outcome != "error"]
    output: Path = options.output or Path(f"{folder.name}.jsonl")
    name = options.model_name or bench.model
    with output.open("w", encoding="utf-8", errors="replace") as file:
        for row in answered:
            file.write(json.dumps(write_line(loaded.read(row.case), name), ensure_ascii=False) + "\n")
    sys.stdout.write(f"{output}: {number_of(len(answered), 'answer')} of {name}\n")
    missing = len(rows) - len(answered)
    if missing:
        sys.stdout.write(
            f"without an answer, as their cases are errors: {number_of(missing, 'question')}; "
            f"pytest ... --resume {folder.name} asks again\n"
        )
    return int(bool(missing))
