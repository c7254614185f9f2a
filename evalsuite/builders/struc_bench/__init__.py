"""Struc-Bench made from other sources: the steps of `evalsuite build struc-bench`.

`rotowire` reads games and writes what their texts mention; `files` cuts tables out of pages and words their content;
`texts` has a model word it, or describe the format, through a gateway; `table_sizes` counts. `ratings` writes outputs
for people to rate, and reads what they filled in.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from evalsuite.builders.struc_bench import files, ratings, rotowire, table_sizes, texts

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["add_arguments", "run"]


class BuildStep(NamedTuple):
    """A step: its product in a line, its description, and its functions."""

    what: str
    about: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


STEPS = {
    "rotowire": BuildStep(rotowire.WHAT, rotowire.ABOUT, rotowire.add_arguments, rotowire.run),
    "files": BuildStep(files.WHAT, files.ABOUT, files.add_arguments, files.run),
    "texts": BuildStep(texts.TEXTS_WHAT, texts.TEXTS_ABOUT, texts.add_text_arguments, texts.run_texts),
    "format-cot": BuildStep(
        texts.FORMAT_COT_WHAT, texts.FORMAT_COT_ABOUT, texts.add_format_cot_arguments, texts.run_format_cot
    ),
    "statistics": BuildStep(table_sizes.WHAT, table_sizes.ABOUT, table_sizes.add_arguments, table_sizes.run),
    "sheet": BuildStep(ratings.SHEET_WHAT, ratings.SHEET_ABOUT, ratings.add_sheet_arguments, ratings.run_sheet),
    "ratings": BuildStep(
        ratings.RATINGS_WHAT, ratings.RATINGS_ABOUT, ratings.add_ratings_arguments, ratings.run_ratings
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the steps with their arguments."""
    steps = parser.add_subparsers(metavar="STEP", required=True)
    for name, step in STEPS.items():
        one = steps.add_parser(
            name,
            help=step.what,
            description=f"{step.what[0].upper()}{step.what[1:]}.\n\n{step.about}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        step.add_arguments(one)
        one.set_defaults(step=step.run)


def run(args: argparse.Namespace) -> int:
    """Run the step.

    Raises:
        EvalsuiteError: see the steps.
    """
    step: Callable[[argparse.Namespace], int] = args.step
    return step(args)
