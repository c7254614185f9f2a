"""AM: counting with dates."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.toolbox.limits import bounded, read_date, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Dates:
    """Has no state."""

    def __init__(self, sample: Sample) -> None:
        """Every subject is made with the sample, whether it needs it or not."""

    @tool
    def weekday(self, day: str) -> str:
        """Says which day of the week a date is.

        Args:
            day: the date, as YYYY-MM-DD.
        """
        return _DAYS[read_date(short("day", day, 30)).weekday()]

    @tool
    def days_between(self, first: str, last: str) -> int:
        """Counts the days from one date to another; negative if the second one is earlier.

        Args:
            first: the one date, as YYYY-MM-DD.
            last: the other date, as YYYY-MM-DD.
        """
        return (read_date(short("last", last, 30)) - read_date(short("first", first, 30))).days

    @tool
    def add_days(self, day: str, days: int) -> str:
        """Adds a number of days to a date.

        Args:
            day: the date, as YYYY-MM-DD.
            days: how many days later; negative for earlier.
        """
        bounded("days", days, -100_000, 100_000)
        try:
            return (read_date(short("day", day, 30)) + timedelta(days=days)).isoformat()
        except OverflowError:
            raise ValueError("the result lies outside of the years 1 to 9999") from None

    @tool
    def is_leap_year(self, year: int) -> bool:
        """Says whether a year of the Gregorian calendar has 366 days.

        Args:
            year: 1583 to 9999.
        """
        bounded("year", year, 1583, 9999)
        return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
