"""Make Struc-Bench's data from other sources; each step is a subcommand of `evalsuite build struc-bench`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable

from evalsuite.builders.struc_bench import files, ratings, rotowire, texts

BuildStep = tuple[str, str, "Callable[[ArgumentParser], None]", "Callable[[Namespace], int]"]
"""A one-line summary, a description, the function that adds the step's options, and the function that runs the step."""
STEPS: dict[str, BuildStep] = {
    "rotowire": (rotowire.WHAT, rotowire.ABOUT, rotowire.add_arguments, rotowire.run_build),
    "files": (files.WHAT, files.ABOUT, files.add_arguments, files.run_build),
    "texts": (texts.TEXTS_WHAT, texts.TEXTS_ABOUT, texts.add_text_arguments, texts.run_texts),
    "format-cot": (texts.FORMAT_COT_WHAT, texts.FORMAT_COT_ABOUT, texts.add_format_cot_arguments, texts.run_format_cot),
    "statistics": (files.STATISTICS_WHAT, files.STATISTICS_ABOUT, files.add_statistics_arguments, files.run_statistics),
    "sheet": (ratings.SHEET_WHAT, ratings.SHEET_ABOUT, ratings.add_sheet_arguments, ratings.run_sheet),
    "ratings": (ratings.RATINGS_WHAT, ratings.RATINGS_ABOUT, ratings.add_ratings_arguments, ratings.run_ratings),
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add a subcommand with options for each step."""
    steps = parser.add_subparsers(metavar="STEP", required=True)
    for name, (what, about, add_options, run_step) in STEPS.items():
        description = f"{what[0].upper()}{what[1:]}.\n\n{about}"
        step = steps.add_parser(name, help=what, description=description, formatter_class=RawDescriptionHelpFormatter)
        add_options(step)
        step.set_defaults(step=run_step)


def run_build(args: Namespace) -> int:
    """Run the step."""
    step: Callable[[Namespace], int] = args.step
    return step(args)
