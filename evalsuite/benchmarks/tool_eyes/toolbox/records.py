"""IR: a small SQLite database of cities, and of companies and products that do not exist."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.tool_eyes.toolbox.limits import short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.types import Sample

_DATA = Path(__file__).parent.parent / "data" / "records.json"
_ROWS = 20
# Work allowed to one query, in thousands of SQLite's virtual-machine steps: a count, not a time, so that the
# same query ends the same way on every machine.
_STEPS = 200
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


class Records:
    """A database in memory, filled anew for each episode and read-only from then on."""

    def __init__(self, sample: Sample) -> None:  # noqa: ARG002 - every subject is made with the sample
        # Tools run in threads, one call at a time.
        self.database = sqlite3.connect(":memory:", check_same_thread=False)
        self.database.row_factory = sqlite3.Row
        for table, content in json.loads(_DATA.read_text(encoding="utf-8")).items():
            columns = ", ".join(content["columns"])
            self.database.execute(f"CREATE TABLE {table} ({columns})")
            holes = ", ".join("?" for _ in content["columns"])
            self.database.executemany(f"INSERT INTO {table} VALUES ({holes})", content["rows"])  # noqa: S608 - names are ours
        self.database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
        self.database.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100)
        self.database.set_authorizer(_authorize)

    def close(self) -> None:
        """Closes the database."""
        self.database.close()

    @tool
    def list_tables(self) -> dict[str, list[str]]:
        """Lists the tables of the database with their columns."""
        content = json.loads(_DATA.read_text(encoding="utf-8"))
        return {table: [column.split()[0] for column in content[table]["columns"]] for table in content}

    @tool
    def find_city(self, name: str) -> dict[str, Any]:
        """Looks up a city: its country, continent, and whether it is the country's capital.

        Args:
            name: the city's English name.
        """
        cities = self._rows("SELECT * FROM cities WHERE name = ? COLLATE NOCASE", name.strip())
        if not cities:
            raise ValueError("no city of this name is in the database")
        return cities[0]

    @tool
    def find_companies(self, city: str = "", sector: str = "") -> list[dict[str, Any]]:
        """Lists companies, if wanted only those of a city or a sector.

        Args:
            city: where they are based.
            sector: what they do, such as energy, food, toys or transport.
        """
        return self._rows(
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
        return self._rows(
            "SELECT * FROM products WHERE company = ? COLLATE NOCASE"
            " AND (? IS NULL OR price <= ?) ORDER BY price",
            *(company.strip(), max_price, max_price),
        )

    @tool
    def run_select(self, query: str) -> list[dict[str, Any]]:
        """Runs one SELECT statement on the database; at most 20 rows are shown.

        Args:
            query: a statement in SQLite's SQL.
        """
        return self._rows(short("query", query, 2000))

    def _rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        left = iter(range(_STEPS))
        self.database.set_progress_handler(lambda: next(left, None) is None, 1000)
        try:
            rows: Sequence[sqlite3.Row] = self.database.execute(query, values).fetchmany(_ROWS)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise ValueError(f"the database refused: {error}") from error
        return [dict(row) for row in rows]


def _authorize(action: int, *details: str | None) -> int:
    # The functions that could load code or claim memory without bounds; only SELECT is let through at all.
    if details[1] in {"load_extension", "fts3_tokenizer", "randomblob", "random"}:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
