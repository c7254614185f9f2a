"""Bounds that the tools share, so that no argument can make them slow or large."""

from __future__ import annotations

from datetime import date, time

MAX_TEXT = 20_000


def bounded(name: str, value: int, low: int, high: int) -> int:
    """The value itself, if it lies between the bounds.

    Raises:
        ValueError: it does not.
    """
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}")
    return value


def short(name: str, text: str, limit: int = MAX_TEXT) -> str:
    """The text itself, if it is not too long.

    Raises:
        ValueError: it is.
    """
    if len(text) > limit:
        raise ValueError(f"{name} must have at most {limit} characters")
    return text


def read_date(text: str) -> date:
    """A date written as YYYY-MM-DD.

    Raises:
        ValueError: it is none.
    """
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:30]!r} is no date; write it as YYYY-MM-DD") from None


def read_time(text: str) -> time:
    """A time of day written as HH:MM.

    Raises:
        ValueError: it is none.
    """
    try:
        hours, minutes = text.strip().split(":")
        return time(int(hours), int(minutes))
    except ValueError:
        raise ValueError(f"{text[:30]!r} is no time of day; write it as HH:MM") from None
