"""RS: news and weather of a made-up island on a made-up day."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.tool_eyes.toolbox.limits import read_date, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

_DATA = Path(__file__).parent.parent / "data" / "bulletins.json"


class Bulletins:
    """The news service of the island of Farholm."""

    def __init__(self, sample: Sample) -> None:  # noqa: ARG002 - every subject is made with the sample
        self.data: dict[str, Any] = json.loads(_DATA.read_text(encoding="utf-8"))

    @tool
    def today(self) -> str:
        """Says which day it is on Farholm, as YYYY-MM-DD."""
        return str(self.data["today"])

    @tool
    def search_bulletins(self, keywords: str) -> list[dict[str, Any]]:
        """Searches the headlines and texts of Farholm's news for words; the newest come first.

        Args:
            keywords: words that all must occur.
        """
        wanted = re.findall(r"\w+", short("keywords", keywords, 200).lower())
        if not wanted:
            raise ValueError("give at least one word to search for")
        matching = [
            {"number": entry["number"], "date": entry["date"], "headline": entry["headline"]}
            for entry in self.data["bulletins"]
            if all(word in f"{entry['headline']} {entry['text']}".lower() for word in wanted)
        ]
        return sorted(matching, key=lambda entry: entry["date"], reverse=True)

    @tool
    def read_bulletin(self, number: int) -> dict[str, Any]:
        """Shows the whole text of one of Farholm's news bulletins.

        Args:
            number: the bulletin's number, as a search lists it.
        """
        for entry in self.data["bulletins"]:
            if entry["number"] == number:
                return dict(entry)
        raise ValueError(f"there is no bulletin {number}")

    @tool
    def weather_forecast(self, town: str, day: str) -> dict[str, Any]:
        """Gives the weather forecast for a town of Farholm.

        Args:
            town: the town's name.
            day: the day, as YYYY-MM-DD; today or one of the two days after it.
        """
        towns = self.data["weather"]
        name = short("town", town, 100).strip().title()
        if name not in towns:
            raise ValueError(f"no forecast for this town; there are forecasts for {', '.join(sorted(towns))}")
        date = read_date(short("day", day, 30)).isoformat()
        if date not in towns[name]:
            raise ValueError(f"no forecast for {date}; there is one for {', '.join(sorted(towns[name]))}")
        return {"town": name, "day": date, **towns[name][date]}
