"""The published benchmarks, one folder each, and the reading of their files."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalsuite.protocols import Benchmark

SHIPPED = ("head_to_tail", "struc_bench", "treb", "chat_eval", "tool_eyes")
"""The names of the benchmarks that come with evalsuite."""


def shipped(name: str) -> Benchmark | None:
    """A shipped benchmark by its name, imported now; None where the name is a user's own."""
    if name not in SHIPPED:
        return None
    found: Benchmark = getattr(import_module(f"evalsuite.benchmarks.{name}"), name.upper())
    return found
