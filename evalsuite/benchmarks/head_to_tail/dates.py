"""Dates as answers, in the usual English formats."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_NUMBER_OF = {name[:3].lower(): number for number, name in enumerate(_MONTHS, 1)}
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_MONTH = r"(?P<month>[A-Za-z]{3,9})\.?"
_YEAR = r"(?P<year>\d{4})"
_WRITTEN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})",
        rf"{_DAY}(?: of)? {_MONTH},? {_YEAR}",
        rf"{_MONTH} {_DAY},? {_YEAR}",
    )
)


def date_variants(answer: str) -> Iterable[str]:
    """Other ways to write an answer that is a date; none if it is not a date.

    Read are 1990-07-16, 16 July 1990 and July 16, 1990, with month names cut short or not. Figures alone in
    another order (07/16/1990) mean different days in different countries and are left alone.
    """
    if (day := _parsed(answer.strip())) is None:
        return
    month, nth = _MONTHS[day.month - 1], f"{day.day}{_ordinal(day.day)}"
    yield day.isoformat()
    for name in dict.fromkeys((month, month[:3])):
        for number in (str(day.day), nth):
            yield f"{number} {name} {day.year}"
            yield f"{name} {number}, {day.year}"
    yield f"{nth} of {month} {day.year}"


def _parsed(answer: str) -> date | None:
    written = next((match for pattern in _WRITTEN if (match := pattern.fullmatch(answer))), None)
    if written is None:
        return None
    month = written["month"]
    number = int(month) if month.isdigit() else _month(month.lower())
    try:
        return date(int(written["year"]), number, int(written["day"]))
    except ValueError:  # no such month, or no such day in it
        return None


def _month(name: str) -> int:
    number = _NUMBER_OF.get(name[:3], 0)
    return number if number and _MONTHS[number - 1].lower().startswith(name) else 0


def _ordinal(day: int) -> str:
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if day not in (11, 12, 13) else 0, "th")
