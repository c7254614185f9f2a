"""Keeps what simulated tools and users said, so that the same call gets the same observation in every run."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from typing import TYPE_CHECKING, Any

from evalsuite.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

FILE = "tool_observations.sqlite"
# One row a distinct question to a simulating model. `key` is the SHA-256 of the question as canonical JSON;
# the question itself is kept to be read. Nothing is ever overwritten: the first answer counts.
SCHEMA = """
CREATE TABLE IF NOT EXISTS observations (
  key TEXT PRIMARY KEY,
  question TEXT NOT NULL,
  observation TEXT NOT NULL
) WITHOUT ROWID
"""


class ObservationLibrary:
    """Observations by question, in one SQLite file that outlives the run.

    Several processes may use one file: each statement is a transaction of its own.

    Args:
        folder: where the file `tool_observations.sqlite` lies; None keeps everything in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._connection: sqlite3.Connection | None = None

    def find(self, question: Any) -> str | None:
        """The observation kept for a question, which is plain JSON data; None where there is none.

        Raises:
            ToolError: the file cannot be used.
        """
        try:
            found = self._connect().execute(
                "SELECT observation FROM observations WHERE key = ?", (_key(question),)
            )
            row = found.fetchone()
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error
        return row[0] if row else None

    def keep(self, question: Any, observation: str) -> str:
        """Keeps an observation, and returns the one that is kept: the first one for this question.

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
            connection.execute(SCHEMA)
            self._connection = connection
        return self._connection

    def _unusable(self, error: Exception) -> ToolError:
        place = self._folder / FILE if self._folder else "in memory"
        return ToolError(
            f"the library of tool observations ({place}) cannot be used: {error}; "
            "if the file is damaged, delete it, and simulated tools will be asked afresh"
        )


def _canonical(question: Any) -> str:
    return json.dumps(question, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _key(question: Any) -> str:
    return hashlib.sha256(_canonical(question).encode()).hexdigest()
