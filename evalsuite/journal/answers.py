"""Stores requests, attempts, answers and tool calls, so that no answer is paid for twice and every cost is known."""

import json
import math
import sqlite3
import time
from pathlib import Path
from typing import Any, Literal

from evalsuite.core.errors import RequestRefused, RunError
from evalsuite.core.json_codec import decode_completion, dumps, encode_completion, encode_request
from evalsuite.core.types import Completion, Request, Usage
from evalsuite.journal.database import Database, join_large_strings, split_large_strings
from evalsuite.journal.planned import compute_checksum

LONGEST_DELAY = 0.05  # Maximum seconds before the record of a free call is stored, so that records share transactions.
OLDER = "SELECT 1 FROM answers WHERE key < '2-' OR key >= '2.' LIMIT 1"
"""Finds an answer whose key does not include a draw; see `gateway.concealment.KEY_MARK`."""

COPIED_TABLES = ("parts", "requests", "answers", "tool_calls", "outcomes")


def compute_oldest_time(max_age: float | None) -> float:
    """Return the earliest time, in seconds since 1970, from which stored answers are used; see `Answers.max_age`."""
    return -math.inf if max_age is None else time.time() - max_age


class Answers:
    """A gateway's stored answers and tool calls. An answer is written to the file before the caller receives it.

    Attributes:
        damaged: number of damaged answers found; their requests are sent again.
        has_older_keys: whether some answers have an older version's keys, which are the same for equal requests.
        tool_calls: the stored tool calls.
        outcomes: requests that ended without an answer; None if this process does not run cases.
        max_age: seconds for which a stored answer is reused; None means no limit.
    """

    max_age: float | None = None

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tool_calls = StoredToolCalls(database)
        self.outcomes: UnansweredRequests | None = UnansweredRequests(database)
        self.damaged = 0
        self.has_older_keys = database.read_row(OLDER) is not None
        self._queue = database.queue
        # The keys of all stored answers; None (unknown) if the file was opened read-only or already contained answers.
        looked_for = database.read_only or database.read_row("SELECT 1 FROM answers LIMIT 1")
        self._kept: set[str] | None = None if looked_for else set()
        self._attempts = 0 if database.read_only else database.read_row("SELECT coalesce(max(id), 0) FROM attempts")[0]

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> "Answers":
        """Open the answers of a journal, without starting a session of a run."""
        return cls(Database(path, read_only=read_only))

    @property
    def read_only(self) -> bool:
        """Whether writing is disabled, as in a replay."""
        return self._database.read_only

    def get(self, key: str) -> Completion | None:
        """Read the completion stored under this key; None if it is missing or damaged."""
        if self._kept is not None and key not in self._kept:
            return None
        query = (
            "SELECT request, completion, checksum FROM answers JOIN requests USING (key) WHERE key = ? AND created >= ?"
        )
        try:
            row = self._database.read_row(query, key, compute_oldest_time(self.max_age))
        except RunError:
            # A read error means that a page of the file is damaged.
            self.damaged += 1
            return None
        if row is None:
            return None
        if compute_checksum(key, row[0], row[1]) == row[2]:
            return decode_completion(json.loads(row[1]))
        self.damaged += 1
        if not self._database.read_only:
            self._database.write(
                ("DELETE FROM answers WHERE key = ?", (key,)), ("DELETE FROM requests WHERE key = ?", (key,))
            )
        return None

    async def store_completion(self, key: str, request: Request, completion: Completion) -> Completion:
        """Store a completion with the next transaction, unless the key already has a completion."""
        asked, parts = split_large_strings(dumps(encode_request(request)))
        answered = dumps(encode_completion(completion))
        row = (key, answered, compute_checksum(key, asked, answered), self._database.session, time.time())
        stays = False

        def write_answer(db: sqlite3.Connection) -> None:
            nonlocal stays
            db.executemany("INSERT OR IGNORE INTO parts VALUES (?, ?)", parts)
            db.execute("INSERT OR IGNORE INTO requests VALUES (?, ?)", (key, asked))
            stays = db.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", row).rowcount == 1

        await self._queue.commit(write_answer)
        if self._kept is not None:
            self._kept.add(key)
        return decode_completion(json.loads(answered)) if stays else self.get(key) or completion

    def record_call_start(self, key: str, reserved: float = 0.0) -> int:
        """Record a call before it is sent; return the call's number for `record_call_end`.

        Args:
            reserved: the highest cost of the call, in US dollars; unless it is 0, write to the file at once.
        """
        self._attempts += 1
        values = (self._attempts, key, self._database.session, time.time(), reserved)
        statement = "INSERT INTO attempts VALUES (?, ?, ?, ?, NULL, 'sent', ?, NULL, NULL, NULL, '')"
        self._queue.queue_write(lambda db: db.execute(statement, values))
        self._queue.flush_within(0.0 if reserved else LONGEST_DELAY)
        return self._attempts

    def record_call_end(
        self, attempt: int, state: Literal["answered", "failed", "refused"], usage: Usage | None = None, error: str = ""
    ) -> None:
        """Record how a call ended; a `failed` call may have been billed, a `refused` call was not."""
        counts = (usage.cost, usage.prompt_tokens, usage.completion_tokens) if usage else (None, None, None)
        values = (time.time(), state, *counts, error[:500], attempt)
        statement = (
            "UPDATE attempts SET ended = ?, state = ?, cost = ?, prompt_tokens = ?, completion_tokens = ?, "
            "words = ? WHERE id = ?"
        )
        self._queue.queue_write(lambda db: db.execute(statement, values))
        self._queue.flush_within(LONGEST_DELAY)

    def sum_spending(self) -> float:
        """Sum the US dollars that all sessions of the run paid, or may have to pay for failed calls."""
        self._queue.flush()
        spent = "coalesce(cost, CASE WHEN state IN ('sent', 'failed') THEN reserved ELSE 0 END)"
        return float(self._database.read_row(f"SELECT coalesce(sum({spent}), 0) FROM attempts")[0])  # noqa: S608

    def summarise_calls(self) -> tuple[int, int, float]:
        """Count all calls and those refused with status 429; add up the US dollars of calls without a used answer.

        An answer is not used if the model refused, a filter withheld it, it was lost, or its case cancelled the call.
        """
        self._queue.flush()
        # The status is in the words of `models.protocol.make_status_error`.
        refused = "coalesce(sum(state = 'refused' AND words LIKE '% answered 429: %'), 0)"
        cancelled = "SELECT key FROM outcomes WHERE cancelled IS NOT NULL"
        unused = "CASE WHEN state IN ('sent', 'failed') THEN coalesce(cost, reserved) "
        unused += f"WHEN key IN ({cancelled}) THEN cost END"
        query = f"SELECT count(*), {refused}, coalesce(sum({unused}), 0) FROM attempts"  # noqa: S608
        calls: tuple[int, int, float] = self._database.read_row(query)
        return calls

    def copy_answers_from(self, other: Path) -> None:
        """Copy another journal's answers and tool calls into this journal, without replacing existing entries."""
        source = Database(other, read_only=True)
        self._kept = None
        try:
            with self._database.transaction() as db:
                for table in COPIED_TABLES:
                    places = ", ".join("?" for _ in db.execute(f"PRAGMA table_info({table})"))
                    db.executemany(
                        f"INSERT OR IGNORE INTO {table} VALUES ({places})",  # noqa: S608 - constants
                        source.iterate_rows(f"SELECT * FROM {table}"),  # noqa: S608 - likewise
                    )
        finally:
            source.close()
        self.has_older_keys = self._database.read_row(OLDER) is not None

    def list_damaged_keys(self) -> list[str]:
        query = "SELECT key, request, completion, checksum FROM answers JOIN requests USING (key)"
        rows = self._database.read_rows(query)
        return sorted(key for key, request, answer, kept in rows if compute_checksum(key, request, answer) != kept)

    def __len__(self) -> int:
        return int(self._database.read_row("SELECT count(*) FROM answers")[0])

    def close(self) -> None:
        """Close the file after all queued writes are stored."""
        self._database.close()


class UnansweredRequests:
    """Requests that ended without an answer because they failed permanently or their case cancelled them.

    Attributes:
        cancelled: seconds until the cancellation, by the key of the request that a case cancelled.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        cancelled = database.read_rows("SELECT key, cancelled FROM outcomes WHERE cancelled IS NOT NULL")
        self.cancelled: dict[str, float] = dict(cancelled)
        self._holds_errors = database.read_row("SELECT 1 FROM outcomes WHERE error IS NOT NULL LIMIT 1") is not None

    def find_error(self, key: str, case: str) -> Any | None:
        """Find the stored error of a request, as JSON data; None if the request must be sent.

        A replay returns every stored error. A resumed run returns an error only if the server refused the request in an
        earlier session, because the server would refuse it again. If the case ended in an error, the resumed run sends
        the case's refused requests again.

        Args:
            case: the name of the case that sends the request.
        """
        query = "SELECT error, session IS ? FROM outcomes WHERE key = ? AND error IS NOT NULL"
        row = self._database.read_row(query, self._database.session, key) if self._holds_errors else None
        if row is None:
            return None
        error, is_of_this_session = json.loads(row[0]), row[1]
        was_refused_earlier = error["kind"] == RequestRefused.__name__ and not is_of_this_session
        repeats = self._database.read_only or (was_refused_earlier and not self._has_case_ended_in_error(case))
        return error if repeats else None

    def _has_case_ended_in_error(self, case: str) -> bool:
        escaped = case.encode("unicode_escape").decode("ascii")
        query = 'SELECT record FROM records WHERE "case" IN (?, ?) ORDER BY number DESC LIMIT 1'
        row = self._database.read_row(query, case, escaped)
        # Accept control characters: they mark names that stand for large strings (`database.split_large_strings`).
        return row is not None and json.loads(row[0], strict=False)["outcome"] == "error"

    async def store_error(self, key: str, error: Any) -> None:
        """Store why a request failed, as JSON data, before its case receives the error."""
        await self._store_outcome("error", key, dumps(error))

    async def store_cancellation(self, key: str, seconds: float) -> None:
        """Store how long a case waited before it cancelled a request; the case waits as long if it runs again."""
        self.cancelled[key] = seconds
        await self._store_outcome("cancelled", key, seconds)

    async def _store_outcome(self, column: str, key: str, value: object) -> None:
        """Set one column of a request's row in the table `outcomes`, and keep the row's other column."""
        statement = (
            f"INSERT INTO outcomes (key, {column}, session) VALUES (?, ?, ?) "  # noqa: S608 - a constant
            f"ON CONFLICT (key) DO UPDATE SET {column} = excluded.{column}, session = excluded.session"
        )
        values = (key, value, self._database.session)
        await self._database.queue.commit(lambda db: db.execute(statement, values))


class StoredToolCalls:
    """Stored arguments and results of tool calls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def read_only(self) -> bool:
        return self._database.read_only

    def get(self, case: str, epoch: int, number: int) -> tuple[str, Any, Any] | None:
        """Read the name, arguments and result of a call; None if the journal does not contain it."""
        query = 'SELECT name, arguments, result FROM tool_calls WHERE "case" = ? AND epoch = ? AND number = ?'
        row = self._database.read_row(query, case, epoch, number)
        if row is None:
            return None
        return row[0], json.loads(row[1]), json.loads(join_large_strings(row[2], self._database.find_large_string))

    def store_call(self, case: str, epoch: int, number: int, name: str, arguments: Any, result: Any) -> None:
        """Store a tool call; an earlier call with the same number is replaced."""
        written, parts = split_large_strings(json.dumps(result, ensure_ascii=False))
        arguments = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
        row = (case, epoch, number, name, arguments, written, self._database.session, time.time())
        self._database.write(
            *(("INSERT OR IGNORE INTO parts VALUES (?, ?)", part) for part in parts),
            ("INSERT OR REPLACE INTO tool_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row),
        )
