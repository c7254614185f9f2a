"""Tools with their own data: news, a calendar, files and a database (scenarios RS, PL, AM and IR)."""

import re
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalsuite.benchmarks.tool_eyes.toolbox.numbers import (
    read_date,
    read_shipped_json,
    read_time,
    require_length,
    require_range,
)
from evalsuite.core.types import Sample
from evalsuite.tools import tool


class Bulletins:
    """News and weather of the fictional island of Farholm."""

    def __init__(self, sample: Sample) -> None:  # noqa: ARG002 - SUBJECTS pass the sample
        self.data: dict[str, Any] = read_shipped_json("bulletins")

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
        wanted = re.findall(r"\w+", require_length("keywords", keywords, 200).lower())
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
        raise ValueError(f"bulletin {number} does not exist")

    @tool
    def weather_forecast(self, town: str, day: str) -> dict[str, Any]:
        """Gives the weather forecast for a town of Farholm.

        Args:
            town: the town's name.
            day: the day, as YYYY-MM-DD; today or one of the two days after it.
        """
        towns = self.data["weather"]
        name = require_length("town", town, 100).strip().title()
        if name not in towns:
            raise ValueError(f"no forecast for this town; there are forecasts for {', '.join(sorted(towns))}")
        date = read_date(require_length("day", day, 30)).isoformat()
        if date not in towns[name]:
            raise ValueError(f"no forecast for {date}; there is one for {', '.join(sorted(towns[name]))}")
        return {"town": name, "day": date, **towns[name][date]}


_OPENS, _CLOSES = "08:00", "18:00"


class CalendarBook:
    """The user's appointments; a day lasts from 08:00 to 18:00."""

    def __init__(self, sample: Sample) -> None:  # noqa: ARG002 - SUBJECTS pass the sample
        self.events: list[dict[str, str]] = read_shipped_json("calendar")

    @tool
    def list_events(self, day: str) -> list[dict[str, str]]:
        """Lists the appointments of a day.

        Args:
            day: the day, as YYYY-MM-DD.
        """
        date = read_date(require_length("day", day, 30)).isoformat()
        return sorted((event for event in self.events if event["day"] == date), key=lambda event: event["start"])

    @tool
    def add_event(self, day: str, start: str, end: str, title: str) -> str:
        """Writes an appointment into the book.

        Args:
            day: the day, as YYYY-MM-DD.
            start: when it begins, as HH:MM.
            end: when it ends, as HH:MM.
            title: what it is.
        """
        date = read_date(require_length("day", day, 30)).isoformat()
        begins, ends = (read_time(require_length("time", text, 10)).strftime("%H:%M") for text in (start, end))
        if begins >= ends:
            raise ValueError("an appointment must end after it starts")
        for event in self.list_events(date):
            if begins < event["end"] and event["start"] < ends:
                raise ValueError(f"{event['title']!r} is already from {event['start']} to {event['end']}")
        require_range("the number of appointments", len(self.events), 0, 200)
        self.events.append({"day": date, "start": begins, "end": ends, "title": require_length("title", title, 200)})
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
        raise ValueError("no appointment has this title on this day")

    @tool
    def free_times(self, day: str) -> list[dict[str, str]]:
        """Lists the stretches of a day, between 08:00 and 18:00, without an appointment.

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


_MAX_FILES = 50


class Files:
    """A private folder with some files, deleted after the episode. Messages never show the folder's real path."""

    def __init__(self, sample: Sample) -> None:  # noqa: ARG002 - SUBJECTS pass the sample
        self._temporary = tempfile.TemporaryDirectory(prefix="tool-eyes-")
        self.folder = Path(self._temporary.name).resolve()
        for name, text in read_shipped_json("files").items():
            (self.folder / name).write_text(text, encoding="utf-8")

    def close(self) -> None:
        """Delete the folder."""
        self._temporary.cleanup()

    @tool
    def list_files(self) -> dict[str, int]:
        """Lists the files of your folder with their sizes in bytes."""
        return {path.name: path.stat().st_size for path in sorted(self.folder.iterdir())}

    @tool
    def read_file(self, name: str) -> str:
        """Reads a text file.

        Args:
            name: the file's name.
        """
        return self._find_existing_file(name).read_text(encoding="utf-8")

    @tool
    def write_file(self, name: str, text: str) -> str:
        """Writes a text file, in place of an older one of that name.

        Args:
            name: the file's name.
            text: the whole new content.
        """
        path = self._make_file_path(name)
        require_range("the number of files", len(list(self.folder.iterdir())), 0, _MAX_FILES - 1)
        path.write_text(require_length("text", text), encoding="utf-8")
        return f"{path.name} now has {path.stat().st_size} bytes"

    @tool
    def append_line(self, name: str, line: str) -> str:
        """Adds a line at the end of a text file.

        Args:
            name: the file's name.
            line: the line.
        """
        path = self._find_existing_file(name)
        text = path.read_text(encoding="utf-8")
        longer = f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"
        path.write_text(require_length("the file", longer), encoding="utf-8")
        return f"{path.name} now has {path.stat().st_size} bytes"

    @tool
    def rename_file(self, name: str, new_name: str) -> str:
        """Gives a file another name.

        Args:
            name: the file's name.
            new_name: a name that no file has yet.
        """
        old, new = self._find_existing_file(name), self._make_file_path(new_name)
        if new.exists():
            raise ValueError(f"there is already a file {new.name!r}")
        old.rename(new)
        return f"{old.name} is now {new.name}"

    @tool
    def delete_file(self, name: str) -> str:
        """Deletes a file.

        Args:
            name: the file's name.
        """
        path = self._find_existing_file(name)
        path.unlink()
        return f"{path.name} is deleted"

    def _make_file_path(self, name: str) -> Path:
        plain = name.isprintable() and not set(name) & set('/\\:*?"<>|') and name.strip(". ") != ""
        if not plain or len(name.encode()) > 100:
            raise ValueError(
                "a file's name must be a plain name of at most 100 bytes, without folders, such as notes.txt"
            )
        return self.folder / name

    def _find_existing_file(self, name: str) -> Path:
        path = self._make_file_path(name)
        if not path.is_file():
            raise ValueError(f"no file {name!r} exists")
        return path


_ROWS = 20
# Limit per query, in thousands of SQLite's virtual-machine steps. The limit is a count, not a time, so that a query has
# the same result on every machine.
_STEPS = 200
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


class Records:
    """A read-only SQLite database in memory: cities, and fictional companies and products."""

    def __init__(self, sample: Sample) -> None:  # noqa: ARG002 - SUBJECTS pass the sample
        # SQLite's thread check is unnecessary, because calls run in several threads but never at the same time.
        self.database = sqlite3.connect(":memory:", check_same_thread=False)
        self.database.row_factory = sqlite3.Row
        for table, content in read_shipped_json("records").items():
            self.database.execute(f"CREATE TABLE {table} ({', '.join(content['columns'])})")
            holes = ", ".join("?" for _ in content["columns"])
            self.database.executemany(f"INSERT INTO {table} VALUES ({holes})", content["rows"])  # noqa: S608 - names are ours
        self.database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
        self.database.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100)
        self.database.set_authorizer(_authorize_sql_action)

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    @tool
    def list_tables(self) -> dict[str, list[str]]:
        """Lists the tables of the database with their columns."""
        content = read_shipped_json("records")
        return {table: [column.split()[0] for column in content[table]["columns"]] for table in content}

    @tool
    def find_city(self, name: str) -> dict[str, Any]:
        """Looks up a city: its country, continent, and whether it is the country's capital.

        Args:
            name: the city's English name.
        """
        cities = self._select_rows("SELECT * FROM cities WHERE name = ? COLLATE NOCASE", name.strip())
        if not cities:
            raise ValueError("no city of this name is in the database")
        return cities[0]

    @tool
    def find_companies(self, city: str = "", sector: str = "") -> list[dict[str, Any]]:
        """Lists companies, if wanted only those of a city or a sector.

        Args:
            city: the city in which they are based.
            sector: what they do, such as energy, food, toys or transport.
        """
        return self._select_rows(
            "SELECT * FROM companies WHERE (? = '' OR city = ? COLLATE NOCASE)"
            " AND (? = '' OR sector = ? COLLATE NOCASE) ORDER BY name",
            *(city.strip(), city.strip(), sector.strip(), sector.strip()),
        )

    @tool
    def find_products(self, company: str, max_price: float | None = None) -> list[dict[str, Any]]:
        """Lists the products of a company, cheapest first.

        Args:
            company: the company's name.
            max_price: leave out what costs more than this many crowns.
        """
        return self._select_rows(
            "SELECT * FROM products WHERE company = ? COLLATE NOCASE AND (? IS NULL OR price <= ?) ORDER BY price",
            *(company.strip(), max_price, max_price),
        )

    @tool
    def run_select(self, query: str) -> list[dict[str, Any]]:
        """Runs one SELECT statement on the database; at most 20 rows are shown.

        Args:
            query: a statement in SQLite's SQL.
        """
        return self._select_rows(require_length("query", query, 2000))

    def _select_rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        left = iter(range(_STEPS))
        self.database.set_progress_handler(lambda: next(left, None) is None, 1000)
        try:
            rows: Sequence[sqlite3.Row] = self.database.execute(query, values).fetchmany(_ROWS)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise ValueError(f"the database refused: {error}") from error
        return [dict(row) for row in rows]


def _authorize_sql_action(action: int, *details: str | None) -> int:
    # Deny functions that could load code or allocate unbounded memory, and functions with random results.
    if details[1] in {"load_extension", "fts3_tokenizer", "randomblob", "random"}:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
