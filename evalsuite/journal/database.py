"""The journal's tables and its SQLite file: opened, checked, repaired, and written by one thread at a time."""

from __future__ import annotations

import asyncio
import hashlib
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import RunError

if TYPE_CHECKING:
    Work = Callable[[sqlite3.Connection], object]
    Done = Callable[[RunError | None], object]

VERSION = 4  # Version 1 stored answers; version 2 added large parts of messages, version 3 batches, version 4 outcomes.
OLDEST = 3  # The oldest version that can still be read.

OUTCOMES = """
-- One row per request that failed for good, or that its case cancelled; see `answers.UnansweredRequests`.
CREATE TABLE outcomes (
    key        TEXT PRIMARY KEY,
    error      TEXT,              -- JSON: class and message; an answer under the same key is newer
    cancelled  REAL,              -- seconds after which the case cancelled it
    session    INTEGER
);
"""

SCHEMA = """
-- One row per pytest session that wrote here: the first one, and each that resumed the run.
CREATE TABLE sessions (
    id        INTEGER PRIMARY KEY,
    started   TEXT NOT NULL,     -- ISO 8601 with its offset
    ended     TEXT,              -- NULL: it is still running, or was killed
    command   TEXT NOT NULL,     -- without secrets
    stopped   TEXT,              -- why it ended early
    exported  INTEGER            -- records.jsonl holds all records up to this number
);
-- What each session planned, before anything was asked.
CREATE TABLE cases (
    session       INTEGER NOT NULL,
    position      INTEGER NOT NULL,  -- in the session's order, from 0; from 2^32 in the second part of a run
    "case"        TEXT NOT NULL,     -- pytest's node id
    benchmark     TEXT NOT NULL,
    sample        TEXT NOT NULL,
    epoch         INTEGER NOT NULL,
    tags          TEXT NOT NULL,     -- JSON object
    source        TEXT NOT NULL,
    declared      TEXT NOT NULL,     -- where the benchmark's code is
    selected      INTEGER NOT NULL,  -- 0: collected, but left out by -k, -m or --lf
    fingerprints  TEXT NOT NULL,     -- JSON object: those known before the case runs
    same          TEXT NOT NULL,     -- planned.digest_fingerprints of them
    PRIMARY KEY (session, "case")
);
-- Large parts of messages (pictures, recordings, files), each once.
CREATE TABLE parts (
    name    TEXT PRIMARY KEY,   -- SHA-256 of the content
    content TEXT NOT NULL       -- Base64, of a data URL or by itself
);
-- One row per distinct request.
CREATE TABLE requests (
    key      TEXT PRIMARY KEY,  -- concealment.make_request_keys: backend, model, all parameters, messages, tools, epoch
    request  TEXT NOT NULL      -- json_codec.encode_request, for people, taken apart; contains no secret
);
-- One row per call to a server. A call that was sent and never ended may have been billed.
CREATE TABLE attempts (
    id                 INTEGER PRIMARY KEY,
    key                TEXT NOT NULL,
    session            INTEGER,
    sent               REAL NOT NULL,     -- seconds since 1970
    ended              REAL,
    state              TEXT NOT NULL,     -- sent, answered, failed (may be billed), refused (is not billed)
    reserved           REAL NOT NULL,     -- US dollars, the most it may cost
    cost               REAL,              -- US dollars, what it cost
    prompt_tokens      INTEGER,
    completion_tokens  INTEGER,
    words              TEXT NOT NULL      -- message of the error
);
-- One row per request that was answered completely.
CREATE TABLE answers (
    key         TEXT PRIMARY KEY,
    completion  TEXT NOT NULL,     -- json_codec.encode_completion
    checksum    TEXT NOT NULL,     -- planned.compute_checksum of key, request and completion
    session     INTEGER,
    created     REAL NOT NULL      -- seconds since 1970
);
-- One row per call of a tool.
CREATE TABLE tool_calls (
    "case"     TEXT NOT NULL,
    epoch      INTEGER NOT NULL,
    number     INTEGER NOT NULL,  -- within the case, from 1
    name       TEXT NOT NULL,
    arguments  TEXT NOT NULL,     -- JSON
    result     TEXT NOT NULL,     -- JSON
    session    INTEGER,
    created    REAL NOT NULL,
    PRIMARY KEY ("case", epoch, number)
);
-- One row per case that ended, in this order; if a case ran twice, the later row counts.
CREATE TABLE records (
    number    INTEGER PRIMARY KEY,
    session   INTEGER NOT NULL,
    "case"    TEXT NOT NULL,
    same      TEXT NOT NULL,     -- planned.digest_fingerprints of its fingerprints
    record    TEXT NOT NULL,     -- json_codec.encode_record, a line of records.jsonl, taken apart
    checksum  TEXT NOT NULL,     -- planned.compute_checksum of case and record
    created   REAL NOT NULL
);
CREATE INDEX records_by_case ON records ("case", same);
-- Requests that were sent together to a server's batch interface, which answers within a day.
CREATE TABLE batches (
    number   INTEGER PRIMARY KEY,
    asked    TEXT NOT NULL,      -- backend and model
    path     TEXT NOT NULL,      -- /v1/chat/completions and the like
    mark     TEXT NOT NULL,      -- sent along, so that a batch is found again if its id was never received
    file     TEXT,               -- the server's id of the file with the requests
    batch    TEXT,               -- the server's id of the batch
    created  REAL NOT NULL,      -- seconds since 1970
    state    TEXT NOT NULL       -- open, or the server's word: completed, expired, failed, cancelled
);
-- One row per request in a batch.
CREATE TABLE batch_lines (
    number  INTEGER NOT NULL,
    key     TEXT NOT NULL,      -- of the request; the line's custom_id
    result  TEXT,               -- the server's line, JSON; NULL until the batch is read
    taken   INTEGER NOT NULL,   -- 1: a failure that was delivered, so that the request may be sent again
    PRIMARY KEY (number, key)
);
CREATE INDEX batch_lines_by_key ON batch_lines (key);
"""
SCHEMA += OUTCOMES
TABLES = re.findall(r"CREATE TABLE (\w+)", SCHEMA)

LARGE = 4096  # Minimum length of a Base64 string that is stored as a separate part, in characters.
_MARK = "\x1e"  # The names of large parts contain control characters, which JSON text never contains.
_WHOLE = re.compile(rf'"((?:data:[\w.+-]+/[\w.+-]+;base64,)?[A-Za-z0-9+/]{{{LARGE},}}={{0,2}})"')
_NAME = re.compile(rf"{_MARK}([0-9a-f]{{64}}){_MARK}")


def split_large_strings(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Replace the large Base64 strings in JSON by names; return the new text, and each string with its name."""
    if len(text) < LARGE:
        return text, []
    parts: dict[str, str] = {}

    def replace_by_name(match: re.Match[str]) -> str:
        name = hashlib.sha256(match[1].encode()).hexdigest()
        parts[name] = match[1]
        return f"{_MARK}{name}{_MARK}"

    return _WHOLE.sub(replace_by_name, text), list(parts.items())


def join_large_strings(text: str, find: Callable[[str], str | None]) -> str:
    """Replace the names in a text by the large strings; `find` returns the string with a given name."""

    def restore_string(match: re.Match[str]) -> str:
        string = find(match[1])
        if string is None or hashlib.sha256(string.encode()).hexdigest() != match[1]:
            raise RunError(f"the journal has lost a part of a message, {match[1][:16]}")
        return f'"{string}"'

    return _NAME.sub(restore_string, text) if _MARK in text else text


AT_ONCE = 500  # Maximum number of rows per fetch.
PATIENCE = 60.0  # Seconds to wait for a file that another process has locked.


class Database:
    """An open journal file, which any thread may use.

    Args:
        read_only: True opens the file, which must exist, for reading only.

    Attributes:
        lost_rows: the number of rows that could not be recovered when the file was repaired.
        session: the number of the pytest session that writes to the run; None outside a run.
        queue: writes that wait for the next transaction.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path, self.read_only, self.lost_rows = path, read_only, 0
        self.session: int | None = None
        if read_only and not path.is_file():
            raise RunError(f"{path}: no such journal; a run that can be replayed has one beside its records")
        self._lock = threading.RLock()
        self._closed = False
        self.queue = WriteQueue(self)
        with ExitStack() as unless_well:
            self._db = self._connect_database()
            unless_well.callback(lambda: self._db.close())  # noqa: PLW0108 - a repair replaces `_db`
            self._prepare_database()
            unless_well.pop_all()

    def _connect_database(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode={'ro' if self.read_only else 'rwc'}"
        try:
            db = sqlite3.connect(address, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
        except sqlite3.Error as error:
            raise RunError(f"{self.path}: {error}") from error
        # Replace invalid UTF-8, so that a damaged text can be read; its checksum then fails.
        db.text_factory = lambda data: data.decode("utf-8", "replace")
        return db

    def _prepare_database(self) -> None:
        """Create the tables of a new file; check, upgrade and repair an existing file."""
        try:
            self._db.execute(OPEN_CUT_FILE)
            if not self.read_only and not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                self._db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
            self._check_and_upgrade_schema()
            if not self.read_only:
                # Check the indexes, too (`quick_check` does not), because a damaged index could hide stored answers.
                if self._db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                    self._db.close()
                    self.lost_rows = salvage_file(self.path)
                    self._db = self._connect_database()
                self._db.execute("PRAGMA writable_schema = OFF")
                # Committed data survive a killed process; a power failure may lose the latest data.
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in NO_ACCESS:  # Errors of the module itself lack a code.
                raise RunError(f"{self.path}: {error}") from error
            if "locked" in str(error):
                raise RunError(f"{self.path}: another process has kept it locked for {PATIENCE:g} s") from error
            raise RunError(
                f"{self.path}: not a journal of evalsuite ({error}), so the run cannot be replayed; once the file is "
                "moved away, --resume asks everything anew"
            ) from error

    def _check_and_upgrade_schema(self) -> None:
        """Check the version and the tables; add the table of outcomes, which older versions' files lack."""
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if not OLDEST <= version <= VERSION:
            raise RunError(f"{self.path}: the journal has version {version}, this evalsuite reads version {VERSION}")
        for table in TABLES if version == VERSION else TABLES[:-1]:
            # Check that the tables exist, because files of other programs may have the same version number.
            self._db.execute(f"SELECT 1 FROM {table} WHERE 0")  # noqa: S608 - a constant
        if version < VERSION and self.read_only:
            # Add the table in memory, because the file may not be written.
            self._db.execute("PRAGMA temp_store = MEMORY")
            self._db.execute(OUTCOMES.replace("CREATE TABLE", "CREATE TEMP TABLE"))
        elif version < VERSION:
            self._db.executescript(f"BEGIN; {OUTCOMES} PRAGMA user_version = {VERSION}; COMMIT;")

    def read_rows(self, query: str, *values: object) -> list[Any]:
        with self._lock:
            try:
                return self._db.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise RunError(f"{self.path}: {error}") from error

    def iterate_rows(self, query: str, *values: object) -> Iterator[Any]:
        """Read the rows of a query one by one; at most a few hundred are in memory at a time."""
        try:
            with self._lock:
                cursor = self._db.execute(query, values)
                rows = cursor.fetchmany(AT_ONCE)
            while rows:
                yield from rows
                with self._lock:
                    rows = cursor.fetchmany(AT_ONCE)
        except sqlite3.Error as error:
            raise RunError(f"{self.path}: {error}") from error

    def read_row(self, query: str, *values: object) -> Any:
        """Read the first row of a query; None if it has no rows."""
        rows = self.read_rows(query, *values)
        return rows[0] if rows else None

    def find_large_string(self, name: str) -> str | None:
        """Find a large part of a message by its name; return None if the part was lost with damaged rows."""
        row = self.read_row("SELECT content FROM parts WHERE name = ?", name)
        return row[0] if row else None

    def write(self, *statements: tuple[str, Sequence[object]]) -> None:
        """Execute statements in one transaction; after the return, the data survive a killed process."""
        with self.transaction() as db:
            for statement, values in statements:
                db.execute(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction; commit it at the end, or roll it back after an exception."""
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise RunError(f"{self.path}: {error}") from error
                raise

    def close(self) -> None:
        """Execute the queued writes and close the file; a second call does nothing."""
        if not self._closed:
            self.queue.flush()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if not self.read_only:
                # Merge the write-ahead log into the file, so that the file is readable on read-only media. If other
                # processes have the file open, the last process that closes the file merges the log.
                with suppress(sqlite3.Error):
                    self._db.execute("PRAGMA busy_timeout = 0")
                    self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.close()


class WriteQueue:
    """Writes that wait for the next transaction, because the commit dominates the cost of a write."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[Work, Done | None]] = []
        self._lock = threading.RLock()
        self._timer: asyncio.TimerHandle | None = None

    def queue_write(self, work: Work, done: Done | None = None) -> None:
        """Queue a write after all earlier writes; any thread may call this method.

        Args:
            done: function that gets None once the data are stored, or the error. Without `done`, a failed write is
                repeated in the next transaction.
        """
        with self._lock:
            self._waiting.append((work, done))

    def flush(self) -> None:
        """Execute all queued writes; any thread may call this method."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
            if waiting and self._execute_writes([work for work, _ in waiting]) is not None:
                # Repeat each write separately, so that one write that fails does not prevent the others.
                for work, done in waiting:
                    error = self._execute_writes([work])
                    if error is not None and done is None:
                        self._waiting.append((work, None))
                    elif done is not None:
                        done(error)
                return
            # Tell outcomes under the lock, so that another thread's `flush` returns only after its writes' outcomes.
            for _, done in waiting:
                if done is not None:
                    done(None)

    def _execute_writes(self, works: list[Work]) -> RunError | None:
        """Execute writes in one transaction; return its error, or None if the data are stored."""
        try:
            with self._database.transaction() as db:
                for work in works:
                    work(db)
        except RunError as error:
            return error
        return None

    def flush_within(self, seconds: float) -> None:
        """Schedule the queued writes for at most this many seconds from now; call this in an event loop's thread."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._timer is None or due < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(due, self._flush_on_timer)

    def _flush_on_timer(self) -> None:
        self._timer = None
        self.flush()

    async def commit(self, work: Work) -> None:
        """Write to the database, in one transaction with other writes of the same iteration of the event loop.

        After the return, the data survive a killed process.
        """
        outcome: Future[RunError | None] = Future()
        outcome.set_running_or_notify_cancel()  # From now on, a cancelled caller does not change the outcome.
        self.queue_write(work, outcome.set_result)
        self.flush_within(0.0)
        error = await asyncio.wrap_future(outcome)
        if error is not None:
            raise error


# Errors of the disk or folder, which say nothing about the file's content.
NO_ACCESS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
OPEN_CUT_FILE = "PRAGMA writable_schema = ON"  # Otherwise SQLite refuses a file that lacks its last pages.
WIDEST_GAP = 1_000_000  # Maximum rows to try one by one between the readable ends of a damaged table.


def salvage_file(path: Path) -> int:
    """Replace a damaged file by a new file with all readable rows; the damaged file stays next to it."""
    fresh = path.with_name(f".{path.name}.mended")
    fresh.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as old,
        closing(sqlite3.connect(fresh, isolation_level=None)) as new,
    ):
        old.text_factory = lambda data: data.decode("utf-8", "replace")
        old.execute(OPEN_CUT_FILE)
        # Merge the write-ahead log into the file first, because the log may contain newer rows than the file.
        with suppress(sqlite3.Error):
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        new.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT; BEGIN;")
        lost = sum(_copy_rows(old, new, table) for table in TABLES)
        new.execute("COMMIT")
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.replace(path.with_name(f"{path.name}.damaged"))
    fresh.replace(path)
    return lost


def _copy_rows(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> int:
    """Copy the readable rows of a table; return how many rows were lost at least."""
    copied, highest = 0, 0
    for row in _iterate_readable_rows(old, table):
        highest = max(highest, row[0])
        places = ", ".join("?" * (len(row) - 1))
        # A row is damaged if it violates the table's constraints.
        with suppress(sqlite3.Error):
            copied += new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({places})", row[1:]).rowcount  # noqa: S608
    try:
        rows = old.execute(f"SELECT count(*) FROM {table} NOT INDEXED").fetchone()[0]  # noqa: S608 - a constant
    except sqlite3.Error:  # A page is damaged or missing, with at least one row.
        rows = max(highest, copied + 1)
    return max(0, int(rows) - copied)


def _iterate_readable_rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[int, ...]]:
    """Yield each readable row, with its row number in front; read from both ends, then row by row between them."""
    low = high = 0
    query = f"SELECT rowid, * FROM {table}"  # noqa: S608 - a constant
    try:
        for row in db.execute(f"{query} ORDER BY rowid"):
            low = row[0]
            yield row
    except sqlite3.Error:
        pass
    else:
        return
    with suppress(sqlite3.Error):
        for row in db.execute(f"{query} WHERE rowid > ? ORDER BY rowid DESC", (low,)):
            high = row[0]
            yield row
    for number in range(low + 1, min(high, low + WIDEST_GAP)):
        with suppress(sqlite3.Error):
            yield from db.execute(f"{query} WHERE rowid = ?", (number,))
