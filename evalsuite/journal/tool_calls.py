"""The tool calls of a run, in the journal's table `tool_calls`."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalsuite.journal.database import Database


class ToolCalls:
    """Arguments and results of tool calls.

    Args:
        database: of the journal.
        session: which session of the run makes the calls; None outside a run.
    """

    def __init__(self, database: Database, session: int | None = None) -> None:
        self._database, self._session = database, session

    @property
    def read_only(self) -> bool:
        """Whether these are the calls of a run that is being replayed."""
        return self._database.read_only

    def get(self, case: str, epoch: int, number: int) -> tuple[str, Any, Any] | None:
        """Name, arguments and result of a call, or None if the journal does not contain it.

        Raises:
            RunError: the file cannot be read.
        """
        row = self._database.one(
            'SELECT name, arguments, result FROM tool_calls WHERE "case" = ? AND epoch = ? AND number = ?',
            case,
            epoch,
            number,
        )
        return (row[0], json.loads(row[1]), json.loads(row[2])) if row else None

    def put(self, case: str, epoch: int, number: int, name: str, arguments: Any, result: Any) -> None:
        """Stores a call; it replaces one with the same number.

        Raises:
            RunError: it cannot be written.
        """
        row = (
            case,
            epoch,
            number,
            name,
            json.dumps(arguments, ensure_ascii=False, sort_keys=True),
            json.dumps(result, ensure_ascii=False),
            self._session,
            time.time(),
        )
        self._database.write(("INSERT OR REPLACE INTO tool_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row))
