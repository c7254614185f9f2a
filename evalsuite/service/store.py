"""The stores of gateway services: an SQLite file, or a PostgreSQL database that several gateways share."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from evalsuite.core.errors import BackendUnavailable, RunError
from evalsuite.core.json_codec import decode_completion, dumps, encode_completion, encode_request
from evalsuite.core.redaction import redact
from evalsuite.journal.answers import OLDER, Answers, compute_oldest_time
from evalsuite.journal.database import Database
from evalsuite.journal.lease import LockedError, RunLock
from evalsuite.journal.planned import compute_checksum
from evalsuite.service.clients import CURRENT_CLIENT, Client

if TYPE_CHECKING:
    import psycopg

    from evalsuite.core.types import Completion, Request, Usage

T = TypeVar("T")


def open_store(place: str, clients: Iterable[Client], max_age: float | None) -> ServiceStore:
    """Open a PostgreSQL store if `place` is a PostgreSQL address; otherwise, open an SQLite file.

    Args:
        max_age: seconds for which a stored answer is reused; None means no limit.
    """
    if place.startswith(("postgresql://", "postgres://")):
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


ADD_CLIENT = """
INSERT INTO sessions (started, command) SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE command = ?)
"""
"""Adds a client, which is a row of the table `sessions`, unless an earlier gateway has added it."""


class SqliteStore(Answers):
    """A gateway's store in one SQLite file. An answer is written to the file before any client receives it."""

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
        self.max_age = max_age
        # The gateway stores no outcomes of requests, because the sessions that run the cases store them.
        self.outcomes = None
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._database.write(*((ADD_CLIENT, (now, client.name, client.name)) for client in clients))
        # The numbers that identify the clients in the table of calls.
        self._numbers = dict(self._database.read_rows("SELECT command, min(id) FROM sessions GROUP BY command"))

    def read_paid_amounts(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return US dollars by client, and the part of them that is reserved for calls in flight at other gateways.

        The amounts are what a client paid or may have to pay, except for calls in flight at this gateway.
        """
        # No other gateway uses this file.
        return {name: float(cost) for name, cost in self._database.read_rows(PAID)}, {}

    def read_latest_calls(self, client: str, seconds: float) -> list[tuple[float, float]]:
        """List a client's calls within the last `seconds`, oldest first, as pairs of age in seconds and tokens."""
        now = time.time()
        return [(now - sent, tokens) for sent, tokens in self._database.read_rows(LATEST, client, now - seconds)]

    async def store_completion(self, key: str, request: Request, completion: Completion) -> Completion:
        """Store an answer (see `Answers.store_completion`); an expired answer is replaced."""
        self._database.session = self._numbers.get(CURRENT_CLIENT.get().name)
        if self.max_age is not None:
            expired = "DELETE FROM answers WHERE key = ? AND created < ?", (key, compute_oldest_time(self.max_age))
            self._queue.queue_write(lambda db: db.execute(*expired))
        return await super().store_completion(key, request, completion)

    def record_call_start(self, key: str, reserved: float = 0.0) -> int:
        self._database.session = self._numbers.get(CURRENT_CLIENT.get().name)
        return super().record_call_start(key, reserved)

    def check_health(self) -> None:
        """Raise a RunError if the store does not answer."""
        self._database.read_row("SELECT 1")

    def close(self) -> None:
        """Close the file, and release its lock, so that another gateway can open it."""
        super().close()
        self._lease.release()


VERSION = 1  # Version of the tables in PostgreSQL.
LOCK = 4747_0001  # Number of the advisory lock that lets only one gateway create the tables.

SCHEMA = """
CREATE SCHEMA IF NOT EXISTS evalsuite;
SET search_path TO evalsuite;
CREATE TABLE IF NOT EXISTS version (version integer NOT NULL);
-- Amount that each client paid for calls that ended; `attempts` holds the parts.
CREATE TABLE IF NOT EXISTS clients (name text PRIMARY KEY, spent double precision NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS requests (key text PRIMARY KEY, request text NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    key         text PRIMARY KEY,
    completion  text NOT NULL,              -- JSON as the model's answer has it, which jsonb would not keep
    checksum    text NOT NULL,
    client      text NOT NULL,
    created     double precision NOT NULL   -- seconds since 1970
);
CREATE TABLE IF NOT EXISTS attempts (
    id                 bigserial PRIMARY KEY,
    key                text NOT NULL,
    client             text NOT NULL,
    gateway            text NOT NULL,       -- host and process
    sent               double precision NOT NULL,
    ended              double precision,
    state              text NOT NULL,       -- sent, answered, failed (may be billed), refused (is not billed)
    reserved           double precision NOT NULL,
    cost               double precision,
    prompt_tokens      bigint,
    completion_tokens  bigint,
    words              text NOT NULL
);
CREATE INDEX IF NOT EXISTS attempts_under_way ON attempts (client) WHERE state = 'sent';
"""

PAID_OR_RESERVED = """
SELECT name, spent + coalesce(sum(reserved), 0), coalesce(sum(reserved) FILTER (WHERE sent > %s), 0)
FROM clients LEFT JOIN attempts ON client = name AND state = 'sent' AND gateway <> %s GROUP BY name
"""
"""Amount that each client paid, plus the amount for unfinished calls of other gateways, including dead gateways; and
the part of it that is reserved for calls in flight at other gateways."""

LOST_AFTER_SECONDS = 1800.0  # Seconds until an unfinished call counts as lost, and its maximum cost as paid.

RESTART, RETRY = 5.0, 0.05
"""Seconds to wait for a server that restarts, and seconds between two attempts; meanwhile all requests wait."""

ENDED = """
WITH done AS (
    UPDATE attempts SET ended = %s, state = %s, cost = %s, prompt_tokens = %s, completion_tokens = %s, words = %s
    WHERE id = %s AND state = 'sent'
    RETURNING client, coalesce(cost, CASE WHEN state = 'failed' THEN reserved ELSE 0 END) AS cost
) UPDATE clients SET spent = spent + done.cost FROM done WHERE name = done.client
"""


class PostgresStore:
    """Answers, calls and spending in a PostgreSQL database that several gateways may share.

    Each method blocks until the database server answers, a few tenths of a millisecond if it runs on the same host. As
    with SQLite, commits do not wait for the disk. A killed gateway therefore loses nothing, but a power failure of the
    database's host may lose the latest data.
    """

    read_only, shared = False, True
    # Both are None, because a gateway runs no cases: the sessions that run them store outcomes and tool calls.
    outcomes: Any = None
    tool_calls: Any = None

    def __init__(self, url: str, clients: Iterable[Client], max_age: float | None) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise BackendUnavailable(
                "--store postgresql://...: needs psycopg: pip install 'evalsuite[postgres]'"
            ) from error
        self._psycopg, self._url, self._max_age = psycopg, url, max_age
        self._gateway = f"{platform.node()} {os.getpid()}"
        self._connection: psycopg.Connection[Any] | None = None
        self._down = True  # True until the first connection, and after an attempt that did not reach the server.
        names = sorted(client.name for client in clients)
        self._run_with_reconnect(lambda db: self._create_tables_and_clients(db, names))
        self.has_older_keys = bool(self._execute_and_fetch_rows(OLDER))

    def _create_tables_and_clients(self, db: psycopg.Connection[Any], clients: list[str]) -> None:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            db.execute(SCHEMA.encode())
            row = db.execute("SELECT version FROM version").fetchone()
            if row is None:
                db.execute("INSERT INTO version VALUES (%s)", (VERSION,))
            elif row[0] != VERSION:
                raise RunError(
                    f"--store {redact(self._url)}: version {row[0]} of the tables; this evalsuite has {VERSION}"
                )
        for name in clients:
            db.execute("INSERT INTO clients (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))

    def _run_with_reconnect(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Call a function with the connection. During an outage, only the first call waits until it can reconnect."""
        until = time.monotonic() + (0.0 if self._down else RESTART)
        retried = False
        while True:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
                    self._connection.execute("SET synchronous_commit TO off; SET search_path TO evalsuite")
                result = work(self._connection)
            except self._psycopg.Error as error:
                broken = self._connection is None or self._connection.closed
                if not broken or (retried and time.monotonic() > until):
                    self._down = True
                    raise RunError(f"--store {redact(self._url)}: {redact(str(error)).strip()}") from error
                # Retry at once the first time, because the connection may have broken while it was idle.
                time.sleep(RETRY if retried else 0.0)
                retried = True
            else:
                self._down = False
                return result

    def _execute_and_fetch_rows(self, statement: str, *values: object) -> list[Any]:
        def execute_statement(db: psycopg.Connection[Any]) -> list[Any]:
            cursor = db.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

        return self._run_with_reconnect(execute_statement)

    def read_paid_amounts(self) -> tuple[dict[str, float], dict[str, float]]:
        rows = self._execute_and_fetch_rows(PAID_OR_RESERVED, time.time() - LOST_AFTER_SECONDS, self._gateway)
        return {name: paid for name, paid, _ in rows}, {name: elsewhere for name, _, elsewhere in rows if elsewhere}

    def read_latest_calls(self, client: str, seconds: float) -> list[tuple[float, float]]:
        now = time.time()
        rows = self._execute_and_fetch_rows(
            "SELECT sent, coalesce(prompt_tokens + completion_tokens, 0) FROM attempts "
            "WHERE client = %s AND sent > %s AND state <> 'refused' ORDER BY sent",
            client,
            now - seconds,
        )
        return [(now - sent, float(tokens)) for sent, tokens in rows]

    def get(self, key: str) -> Completion | None:
        """Read an answer (see `Store.get`); a damaged or expired answer counts as missing."""
        rows = self._execute_and_fetch_rows(
            "SELECT request, completion, checksum FROM answers JOIN requests USING (key) "
            "WHERE key = %s AND created >= %s",
            key,
            compute_oldest_time(self._max_age),
        )
        if not rows or compute_checksum(key, rows[0][0], rows[0][1]) != rows[0][2]:
            return None
        return decode_completion(json.loads(rows[0][1]))

    async def store_completion(self, key: str, request: Request, completion: Completion) -> Completion:
        """Store an answer (see `Store.store_completion`); an answer that another gateway has stored stays."""
        asked, answered = dumps(encode_request(request)), dumps(encode_completion(completion))
        self._execute_and_fetch_rows(
            "WITH asked AS (INSERT INTO requests VALUES (%s, %s) ON CONFLICT DO NOTHING) "
            "INSERT INTO answers VALUES (%s, %s, %s, %s, %s) ON CONFLICT (key) DO UPDATE SET "
            "completion = excluded.completion, checksum = excluded.checksum, client = excluded.client, "
            "created = excluded.created WHERE answers.created < %s",
            *(key, asked, key, answered, compute_checksum(key, asked, answered)),
            *(CURRENT_CLIENT.get().name, time.time()),
            compute_oldest_time(self._max_age),
        )
        return self.get(key) or completion

    def record_call_start(self, key: str, reserved: float = 0.0) -> int:
        rows = self._execute_and_fetch_rows(
            "INSERT INTO attempts (key, client, gateway, sent, state, reserved, words) "
            "VALUES (%s, %s, %s, %s, 'sent', %s, '') RETURNING id",
            *(key, CURRENT_CLIENT.get().name, self._gateway, time.time(), reserved),
        )
        return int(rows[0][0])

    def record_call_end(
        self, attempt: int, state: Literal["answered", "failed", "refused"], usage: Usage | None = None, error: str = ""
    ) -> None:
        counts = (usage.cost, usage.prompt_tokens, usage.completion_tokens) if usage else (None, None, None)
        plain = error[:500].replace("\x00", "").encode("utf-8", "replace").decode()
        self._execute_and_fetch_rows(ENDED, time.time(), state, *counts, plain, attempt)

    def check_health(self) -> None:
        # Check with a write, because only a write detects a full disk.
        self._execute_and_fetch_rows("UPDATE version SET version = version")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


ServiceStore = SqliteStore | PostgresStore
"""A gateway's store that also records what each client has spent."""
