"""Text that a spreadsheet takes for text."""

from __future__ import annotations

from typing import TypeVar

Exported = TypeVar("Exported")

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet take a cell for a formula; such a text gets an apostrophe in front."""


def inert(value: Exported) -> Exported | str:
    """A cell's value, which no spreadsheet runs as a formula; numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
