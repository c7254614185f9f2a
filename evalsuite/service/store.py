"""The additional methods of a gateway service's store, and the function that opens the store."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evalsuite.core.errors import RunError
from evalsuite.gateway.gateway import Store
from evalsuite.journal.answers import Answers
from evalsuite.journal.database import Database
from evalsuite.journal.lease import LockedError, RunLock
from evalsuite.service.clients import CURRENT_CLIENT, Client

if TYPE_CHECKING:
    from evalsuite.core.types import Completion, Request


class ServiceStore(Store, Protocol):
    """A gateway's store that also records what each client has spent."""

    shared: bool  # Whether other gateways may use the store at the same time.

    def read_paid_amounts(self) -> dict[str, float]:
        """Return US dollars by client: what it paid or may have to pay, except for calls in flight at this gateway."""

    def read_amounts_reserved_elsewhere(self) -> dict[str, float]:
        """Return by client the part of `read_paid_amounts` that is reserved for calls in flight at other gateways."""

    def read_latest_calls(self, client: str, seconds: float) -> list[tuple[float, float]]:
        """List a client's calls within the last `seconds`, oldest first, as pairs of age in seconds and tokens."""

    def check_health(self) -> None:
        """Check whether the store answers."""


def open_store(place: str, clients: Iterable[Client], max_age: float | None) -> ServiceStore:
    """Open a PostgreSQL store if `place` is a PostgreSQL address; otherwise, open an SQLite file.

    Args:
        max_age: seconds for which a stored answer is reused; None means no limit.
    """
    if place.startswith(("postgresql://", "postgres://")):
        from evalsuite.service.postgres_store import PostgresStore

        return PostgresStore(place, clients, max_age)
    return SqliteStore(Path(place), clients, max_age)


PAID = """
SELECT command, coalesce(sum(CASE WHEN cost IS NOT NULL THEN cost
                                  WHEN state IN ('sent', 'failed') THEN reserved ELSE 0 END), 0)
FROM attempts JOIN sessions ON sessions.id = session GROUP BY command
"""
"""Amount that each client paid, plus the greatest possible bill of calls that were never answered."""


LATEST = """
SELECT sent, coalesce(prompt_tokens + completion_tokens, 0) FROM attempts JOIN sessions ON sessions.id = session
WHERE command = ? AND sent > ? AND state <> 'refused' ORDER BY sent
"""


class SqliteStore(Answers):
    """A gateway's store in one SQLite file. An answer is written to the file before any client receives it.

    Args:
        max_age: seconds for which a stored answer is reused; None means no limit.
    """

    shared = False

    def __init__(self, path: Path, clients: Iterable[Client], max_age: float | None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lease = RunLock(path.parent, f".{path.name}.lock")
        except LockedError as error:
            raise RunError(
                f"--store {path}: another gateway serves from this file; point sessions to that one, or share a "
                "store of PostgreSQL between both"
            ) from error
        super().__init__(Database(path))
        self._max_age = max_age
        # The gateway stores no outcomes of requests, because the sessions that run the cases store them.
        self.outcomes = None
        self._numbers = {client.name: self._get_client_number(client.name) for client in clients}

    def _get_client_number(self, client: str) -> int:
        """Return the number that identifies a client in the store's table of calls."""
        row = self._database.read_row("SELECT id FROM sessions WHERE command = ?", client)
        if row is None:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self._database.write(("INSERT INTO sessions (started, command) VALUES (?, ?)", (now, client)))
            return self._get_client_number(client)
        return int(row[0])

    def read_paid_amounts(self) -> dict[str, float]:
        return {name: float(cost) for name, cost in self._database.read_rows(PAID)}

    def read_amounts_reserved_elsewhere(self) -> dict[str, float]:
        """Return an empty mapping, because no other gateway uses this file."""
        return {}

    def read_latest_calls(self, client: str, seconds: float) -> list[tuple[float, float]]:
        now = time.time()
        return [(now - sent, tokens) for sent, tokens in self._database.read_rows(LATEST, client, now - seconds)]

    def get(self, key: str) -> Completion | None:
        """Read an answer (see `Answers.get`); an expired answer counts as missing."""
        if self._max_age is not None:
            row = self._database.read_row("SELECT created FROM answers WHERE key = ?", key)
            if row is not None and row[0] < time.time() - self._max_age:
                return None
        return super().get(key)

    async def store_completion(self, key: str, request: Request, completion: Completion) -> Completion:
        """Store an answer (see `Answers.store_completion`); an expired answer is replaced."""
        self._session = self._numbers.get(CURRENT_CLIENT.get().name)
        if self._max_age is not None:
            bound = time.time() - self._max_age
            self._queue.queue_write(
                lambda db: db.execute("DELETE FROM answers WHERE key = ? AND created < ?", (key, bound))
            )
        return await super().store_completion(key, request, completion)

    def record_call_start(self, key: str, reserved: float = 0.0) -> int:
        self._session = self._numbers.get(CURRENT_CLIENT.get().name)
        return super().record_call_start(key, reserved)

    def check_health(self) -> None:
        self._database.read_row("SELECT 1")

    def close(self) -> None:
        """Close the file, and release its lock, so that another gateway can open it."""
        super().close()
        self._lease.release()
