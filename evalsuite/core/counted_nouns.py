"""A number with its noun, for messages and reports."""

from __future__ import annotations


def number_of(count: int, noun: str) -> str:
    """So many of something: `1 case`, `2,000 cases`; for nouns with a plural in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
