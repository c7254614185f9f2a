"""`evalsuite build BENCHMARK ...`: make a benchmark's data from its sources."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from evalsuite.builders import BUILDERS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add all builders with their options."""
    builders = parser.add_subparsers(metavar="BENCHMARK", required=True)
    for name, made_of in BUILDERS.items():
        builder = builders.add_parser(name, help=made_of, description=f"Makes {made_of}.")
        builder.set_defaults(builder=name)
        import_module(module_of(name)).add_arguments(builder)


def module_of(name: str) -> str:
    """Find the module of a builder by its name on the command line."""
    return f"evalsuite.builders.{name.replace('-', '_')}"


def run(options: argparse.Namespace) -> int:
    """Run the builder."""
    build: Callable[[argparse.Namespace], int] = import_module(module_of(options.builder)).run
    return build(options)
