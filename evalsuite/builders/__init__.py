"""Builders for `evalsuite build NAME`: each makes the data of one benchmark from source files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

BUILDERS = {
    "head-to-tail": "questions from IMDb, Goodreads, MAG, DBLP or DBpedia",
    "struc-bench": (
        "items of Struc-Bench from box scores, from .tex and .html files; FormatCoT descriptions; statistics"
    ),
    "treb": "question-answer pairs from a folder of tables",
}
"""The product of each builder by command-line name; package names have underscores instead of hyphens."""


def add_build_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand with options for each builder."""
    builders = parser.add_subparsers(metavar="BENCHMARK", required=True)
    for name, made_of in BUILDERS.items():
        builder = builders.add_parser(name, help=made_of, description=f"Make {made_of}.")
        builder.set_defaults(builder=name)
        import_module(find_builder_module_name(name)).add_arguments(builder)


def find_builder_module_name(name: str) -> str:
    """Find the module of a builder by its name on the command line."""
    return f"evalsuite.builders.{name.replace('-', '_')}"


def run_build(options: argparse.Namespace) -> int:
    """Run the builder."""
    build: Callable[[argparse.Namespace], int] = import_module(find_builder_module_name(options.builder)).run_build
    return build(options)
