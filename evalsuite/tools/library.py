"""Stores the observations of simulated tools and users, so that equal calls get equal observations in every run."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import weakref
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

FILE = "tool_observations.sqlite"
# One row for each distinct question to a simulating model. `key` is the SHA-256 of the question as canonical
# JSON; the question itself is stored for people to read. Rows are never overwritten: the first answer counts.
SCHEMA = """
CREATE TABLE IF NOT EXISTS observations (
  key TEXT PRIMARY KEY,
  question TEXT NOT NULL,
  observation TEXT NOT NULL
) WITHOUT ROWID
"""


class ObservationLibrary:
    """Observations by question, in one SQLite file that outlives the run.

    Several processes may share the file: each statement is its own transaction.

    Args:
        folder: holds the file `tool_observations.sqlite`; None keeps everything in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._connection: sqlite3.Connection | None = None

    def find(self, question: Any) -> str | None:
        """The stored observation for a question (plain JSON data), or None.

        Raises:
            ToolError: the file cannot be used.
        """
        try:
            rows = self._connect().execute(
                "SELECT observation FROM observations WHERE key = ?", (_key(question),)
            )
            row = rows.fetchone()
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error
        return row[0] if row else None

    def keep(self, question: Any, observation: str) -> str:
        """Stores an observation unless the question has one already; returns the stored one.

        Raises:
            ToolError: the file cannot be used.
        """
        row = (_key(question), _canonical(question), observation)
        try:
            with self._connect() as connection:
                connection.execute("INSERT OR IGNORE INTO observations VALUES (?, ?, ?)", row)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error
        return self.find(question) or observation

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        if self._connection:
            self._connection.close()
            self._connection = None

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            place = ":memory:"
            if self._folder:
                self._folder.mkdir(parents=True, exist_ok=True)
                place = str(self._folder / FILE)
            connection = sqlite3.connect(place, timeout=30, check_same_thread=False)
            # Python 3.13 warns of a connection that nobody closed, wherever it is collected.
            weakref.finalize(self, connection.close)
            connection.execute(SCHEMA)
            self._connection = connection
        return self._connection

    def _unusable(self, error: Exception) -> ToolError:
        place = self._folder / FILE if self._folder else "in memory"
        return ToolError(
            f"the library of tool observations ({place}) cannot be used: {error}; "
            "if the file is damaged, delete it and simulated tools will be asked again"
        )


def _canonical(question: Any) -> str:
    return json.dumps(question, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _key(question: Any) -> str:
    return hashlib.sha256(_canonical(question).encode()).hexdigest()
