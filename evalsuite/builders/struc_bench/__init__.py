"""Make Struc-Bench's data from other sources; each step is a subcommand of `evalsuite build struc-bench`."""

from argparse import ArgumentParser, Namespace

from evalsuite.benchmarks.struc_bench.items import RATINGS
from evalsuite.builders.struc_bench import files, ratings, rotowire, texts
from evalsuite.core.option_values import ARGUMENTS, Command, declare_arguments

STEPS: dict[str, tuple[Command, str]] = {
    "rotowire": (rotowire.run_rotowire, "raw-text items from RotoWire's box scores and reports"),
    "files": (files.run_files, "LaTeX and HTML items from a folder of .tex and .html files"),
    "texts": (texts.run_texts, "texts by a model, which hold every value of their tables"),
    "format-cot": (
        texts.run_format_cot,
        "FormatCoT: a model's description of each table's format, and the instruction set",
    ),
    "statistics": (files.run_statistics, "items, format, mean rows and columns of files of items, as Markdown"),
    "sheet": (ratings.run_sheet, "a blind sheet of runs' outputs, for people to rate"),
    "ratings": (ratings.run_ratings, f"the file {RATINGS} from sheets that people filled in"),
}
"""The function and the one-line summary of each step."""


def _add_steps(parser: ArgumentParser) -> None:
    steps = parser.add_subparsers(metavar="STEP", required=True)
    for name, (run_step, what) in STEPS.items():
        step = steps.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        step.set_defaults(step=run_step)
        ARGUMENTS[run_step](step)


@declare_arguments("", extend_parser=_add_steps)
def run_build(options: Namespace) -> int:
    """Run the step."""
    status: int = options.step(options)
    return status
