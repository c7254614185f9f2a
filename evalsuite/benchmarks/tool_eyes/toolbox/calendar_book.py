"""PL: an appointment book."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.toolbox.limits import bounded, read_date, read_time, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

_DATA = Path(__file__).parent.parent / "data" / "calendar.json"
_OPENS, _CLOSES = "08:00", "18:00"


class CalendarBook:
    """The user's appointments; a day lasts from 08:00 to 18:00."""

    def __init__(self, sample: Sample) -> None:  # noqa: ARG002 - every subject is made with the sample
        self.events: list[dict[str, str]] = json.loads(_DATA.read_text(encoding="utf-8"))

    @tool
    def list_events(self, day: str) -> list[dict[str, str]]:
        """Lists the appointments of a day.

        Args:
            day: the day, as YYYY-MM-DD.
        """
        date = read_date(short("day", day, 30)).isoformat()
        return sorted(
            (event for event in self.events if event["day"] == date), key=lambda event: event["start"]
        )

    @tool
    def add_event(self, day: str, start: str, end: str, title: str) -> str:
        """Writes an appointment into the book.

        Args:
            day: the day, as YYYY-MM-DD.
            start: when it begins, as HH:MM.
            end: when it ends, as HH:MM.
            title: what it is.
        """
        date = read_date(short("day", day, 30)).isoformat()
        begins, ends = (read_time(short("time", text, 10)).strftime("%H:%M") for text in (start, end))
        if begins >= ends:
            raise ValueError("an appointment must end after it starts")
        for event in self.list_events(date):
            if begins < event["end"] and event["start"] < ends:
                raise ValueError(f"{event['title']!r} is already from {event['start']} to {event['end']}")
        bounded("the number of appointments", len(self.events), 0, 200)
        self.events.append({"day": date, "start": begins, "end": ends, "title": short("title", title, 200)})
        return f"added {title!r} on {date} from {begins} to {ends}"

    @tool
    def cancel_event(self, day: str, title: str) -> str:
        """Takes an appointment out of the book.

        Args:
            day: its day, as YYYY-MM-DD.
            title: its title.
        """
        for event in self.list_events(day):
            if event["title"].lower() == title.strip().lower():
                self.events.remove(event)
                return f"cancelled {event['title']!r} on {event['day']}"
        raise ValueError("there is no appointment of this title on this day")

    @tool
    def free_times(self, day: str) -> list[dict[str, str]]:
        """Lists the stretches of a day, between 08:00 and 18:00, in which there is no appointment.

        Args:
            day: the day, as YYYY-MM-DD.
        """
        free, at = [], _OPENS
        for event in self.list_events(day):
            if event["start"] > at:
                free.append({"start": at, "end": min(event["start"], _CLOSES)})
            at = max(at, event["end"])
        if at < _CLOSES:
            free.append({"start": at, "end": _CLOSES})
        return free
