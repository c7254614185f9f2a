"""Stores in the journal which batch contains each request, so that no request is sent or paid for twice."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from evalsuite.journal.database import Database

OPEN = "open"


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A row of the table `batches`; see `database.SCHEMA`."""

    number: int
    path: str
    mark: str
    file: str | None
    batch: str | None
    created: float


class StoredBatches:
    """The batches of a run."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record_batch(self, backend_and_model: str, path: str, mark: str, keys: Iterable[str]) -> StoredBatch:
        """Record a batch before any part of it is sent, and return its row."""
        row = (backend_and_model, path, mark, time.time(), OPEN)
        with self._database.transaction() as db:
            statement = "INSERT INTO batches (asked, path, mark, created, state) VALUES (?, ?, ?, ?, ?)"
            number = db.execute(statement, row).lastrowid
            db.executemany("INSERT INTO batch_lines VALUES (?, ?, NULL, 0)", ((number, key) for key in keys))
        return StoredBatch(number or 0, path, mark, None, None, row[3])

    def store_server_id(self, number: int, kind: Literal["file", "batch"], server_id: str) -> None:
        """Store the id that the server gave to a batch, or to the file with its requests."""
        self._database.write((f"UPDATE batches SET {kind} = ? WHERE number = ?", (server_id, number)))  # noqa: S608

    def delete_batch(self, number: int) -> None:
        """Delete a batch that the server never received."""
        self._database.write(
            ("DELETE FROM batches WHERE number = ?", (number,)), ("DELETE FROM batch_lines WHERE number = ?", (number,))
        )

    def list_open_batches(self, backend_and_model: str) -> list[StoredBatch]:
        """List the batches of a backend and model that were not yet read, oldest first."""
        columns = "number, path, mark, file, batch, created"
        query = f"SELECT {columns} FROM batches WHERE asked = ? AND state = ? ORDER BY number"  # noqa: S608 - a constant
        return [StoredBatch(*row) for row in self._database.read_rows(query, backend_and_model, OPEN)]

    def list_unanswered_keys(self, number: int) -> list[str]:
        """List the keys of a batch's requests that have no result yet, in the order of the batch's lines."""
        query = "SELECT key FROM batch_lines WHERE number = ? AND result IS NULL ORDER BY rowid"
        return [row[0] for row in self._database.read_rows(query, number)]

    def list_undelivered_keys(self) -> set[str]:
        """List the keys of all batched requests whose result no caller has received yet."""
        return {row[0] for row in self._database.read_rows("SELECT key FROM batch_lines WHERE NOT taken")}

    def find_undelivered_result(self, key: str) -> str | None:
        """Find the latest undelivered result of a request; None if all were delivered or none arrived."""
        query = "SELECT result FROM batch_lines WHERE key = ? AND NOT taken AND result IS NOT NULL ORDER BY number DESC"
        row = self._database.read_row(query, key)
        return None if row is None else str(row[0])

    def store_results(self, number: int, results: Sequence[tuple[str, str]]) -> None:
        """Store the results of a batch by key, before any caller receives them."""
        statement = "UPDATE batch_lines SET result = ? WHERE number = ? AND key = ?"
        with self._database.transaction() as db:
            db.executemany(statement, ((result, number, key) for key, result in results))

    def mark_delivered(self, key: str) -> None:
        """Mark a request's failure as delivered to its caller; the request may then be sent again."""
        self._database.write(("UPDATE batch_lines SET taken = 1 WHERE key = ?", (key,)))

    def close_batch(self, number: int, state: str) -> None:
        """Mark a batch as finished and completely read."""
        self._database.write(
            ("UPDATE batches SET state = ? WHERE number = ?", (state, number)),
            ("DELETE FROM batch_lines WHERE number = ? AND result IS NULL", (number,)),
        )

    def mark_batched_calls_unbilled(self) -> None:
        """Record calls in batches as not billed, because the cost is counted by the session that reads the answers."""
        statement = (
            "UPDATE attempts SET state = 'refused', words = 'goes on in a batch' WHERE state IN ('sent', 'failed') "
            "AND key IN (SELECT key FROM batch_lines WHERE NOT taken)"
        )
        self._database.write((statement, ()))

    def delete_answered_results(self) -> None:
        ended = "result IS NOT NULL AND (taken OR key IN (SELECT key FROM answers))"
        self._database.write((f"DELETE FROM batch_lines WHERE {ended}", ()))  # noqa: S608 - a constant
