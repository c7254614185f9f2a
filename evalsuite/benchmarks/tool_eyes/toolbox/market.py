"""FT: daily closing prices of shares that do not exist, and what is read off them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.toolbox.limits import bounded, read_date, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

_DATA = Path(__file__).parent.parent / "data" / "prices.json"


class Market:
    """A made-up stock exchange."""

    def __init__(self, sample: Sample) -> None:  # noqa: ARG002 - every subject is made with the sample
        data = json.loads(_DATA.read_text(encoding="utf-8"))
        self.names: dict[str, str] = data["names"]
        self.days: list[str] = data["days"]
        self.closes: dict[str, list[float]] = data["closes"]

    @tool
    def list_symbols(self) -> dict[str, str]:
        """Lists the shares that are traded: the company's name by its symbol."""
        return self.names

    @tool
    def price_history(self, symbol: str, first: str, last: str) -> dict[str, float]:
        """Gives the closing prices of a share for the trading days of a period.

        Args:
            symbol: the share's symbol.
            first: the first day, as YYYY-MM-DD.
            last: the last day, as YYYY-MM-DD.
        """
        begin, end = (read_date(short("day", day, 30)).isoformat() for day in (first, last))
        prices = zip(self.days, self._closes(symbol), strict=True)
        within = {day: price for day, price in prices if begin <= day <= end}
        if not within:
            raise ValueError(f"no trading in this period; prices go from {self.days[0]} to {self.days[-1]}")
        return within

    @tool
    def moving_average(self, symbol: str, days: int) -> float:
        """Gives the mean of a share's last closing prices.

        Args:
            symbol: the share's symbol.
            days: how many of the last trading days.
        """
        closes = self._closes(symbol)[-bounded("days", days, 1, len(self.days)) :]
        return round(sum(closes) / len(closes), 4)

    @tool
    def relative_strength_index(self, symbol: str, days: int = 14) -> float:
        """Gives the relative strength index of a share, 0 to 100, from its last daily changes.

        It is 100 times the sum of the rises, divided by the sum of all rises and falls.

        Args:
            symbol: the share's symbol.
            days: how many of the last changes.
        """
        closes = self._closes(symbol)[-bounded("days", days, 1, len(self.days) - 1) - 1 :]
        changes = [after - before for before, after in pairwise(closes)]
        moved = sum(abs(change) for change in changes)
        return round(100 * sum(change for change in changes if change > 0) / moved, 2) if moved else 50.0

    @tool
    def highest_and_lowest(self, symbol: str) -> dict[str, dict[str, float | str]]:
        """Gives the highest and the lowest closing price of a share, with their days.

        Args:
            symbol: the share's symbol.
        """
        closes = self._closes(symbol)
        extremes = {"highest": max(closes), "lowest": min(closes)}
        return {
            name: {"day": self.days[closes.index(price)], "price": price} for name, price in extremes.items()
        }

    def _closes(self, symbol: str) -> list[float]:
        closes = self.closes.get(symbol.strip().upper())
        if closes is None:
            raise ValueError(f"no such share; there are {', '.join(self.closes)}")
        return closes
