"""Bounds on arguments that the tools share, so that a call is neither slow nor large."""

from __future__ import annotations

from datetime import date, time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

MAX_TEXT = 20_000


def check_range(name: str, value: int, low: int, high: int) -> int:
    """Return the value if it lies within the bounds.

    Raises:
        ValueError: the value is out of bounds.
    """
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}")
    return value


def short(name: str, text: str, limit: int = MAX_TEXT) -> str:
    """Return the text if it is not too long.

    Raises:
        ValueError: the text is too long.
    """
    if len(text) > limit:
        raise ValueError(f"{name} must have at most {limit} characters")
    return text


def read_date(text: str) -> date:
    """Parse a date written as YYYY-MM-DD.

    Raises:
        ValueError: the text is not such a date.
    """
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:30]!r} is not a date; write it as YYYY-MM-DD") from None


def read_time(text: str) -> time:
    """Parse a time of day written as HH:MM.

    Raises:
        ValueError: the text is not such a time.
    """
    try:
        hours, minutes = text.strip().split(":")
        return time(int(hours), int(minutes))
    except ValueError:
        raise ValueError(f"{text[:30]!r} is not a time of day; write it as HH:MM") from None


class Stateless:
    """Base of subjects without state, which are made with the sample like all others."""

    def __init__(self, sample: Sample) -> None:
        pass
