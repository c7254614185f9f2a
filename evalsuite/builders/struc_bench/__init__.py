"""Struc-Bench made from other sources: the steps of `evalsuite build struc-bench`.

`rotowire` reads games and writes what their texts mention; `files` cuts tables out of pages and words their content;
`texts` has a model word it, and `format_cot` has one describe the format, both through a gateway; `table_sizes` counts.
`rating_sheet` writes outputs for people to rate, and `ratings` reads what they filled in.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evalsuite.builders.struc_bench import (
    files,
    format_cot,
    rating_sheet,
    ratings,
    rotowire,
    table_sizes,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["add_arguments", "run"]


STEPS = {
    "rotowire": rotowire,
    "files": files,
    "texts": texts,
    "format-cot": format_cot,
    "statistics": table_sizes,
    "sheet": rating_sheet,
    "ratings": ratings,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the steps with their arguments."""
    steps = parser.add_subparsers(metavar="STEP", required=True)
    for name, step in STEPS.items():
        one = steps.add_parser(
            name,
            help=step.WHAT,
            description=f"{step.WHAT[0].upper()}{step.WHAT[1:]}.\n\n{step.ABOUT}",
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
