"""Builders for `evalsuite build NAME`: each makes the data of one benchmark from source files."""

import argparse
from importlib import import_module

from evalsuite.core.option_values import ARGUMENTS, declare_arguments

BUILDERS = {
    "head-to-tail": "questions from IMDb, Goodreads, MAG, DBLP or DBpedia",
    "struc-bench": (
        "items of Struc-Bench from box scores, from .tex and .html files; FormatCoT descriptions; statistics"
    ),
    "treb": "question-answer pairs from a folder of tables",
}
"""The product of each builder by command-line name; package names have underscores instead of hyphens."""


def _add_builders(parser: argparse.ArgumentParser) -> None:
    builders = parser.add_subparsers(metavar="BENCHMARK", required=True)
    for name, made_of in BUILDERS.items():
        builder = builders.add_parser(name, help=made_of, description=f"Make {made_of}.")
        build = import_module(f"evalsuite.builders.{name.replace('-', '_')}").run_build
        builder.set_defaults(build=build)
        ARGUMENTS[build](builder)


@declare_arguments("", extend_parser=_add_builders)
def run_build(options: argparse.Namespace) -> int:
    """Run the builder."""
    status: int = options.build(options)
    return status
