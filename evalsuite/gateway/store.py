"""The store: one SQLite file a run that keeps every complete answer, so that nothing paid for is lost."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from evalsuite.errors import RunError
from evalsuite.json_codec import decode_completion, dumps, encode_completion, encode_request

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.types import Completion, Request

VERSION = 1
SCHEMA = """
-- One row a distinct request that was answered completely. Errors are never kept: they are asked again.
CREATE TABLE completions (
    key         TEXT PRIMARY KEY,  -- wire.request_key: backend, model, every parameter, messages, tools, epoch
    request     TEXT NOT NULL,     -- plain.encode_request as JSON, for people; holds no secret
    completion  TEXT NOT NULL,     -- plain.encode_completion as JSON
    created     REAL NOT NULL      -- seconds since 1970
) WITHOUT ROWID;
"""


class Store:
    """Completions by key. One writer: the gateway; the thread that opens it is the only one to use it.

    Args:
        path: the SQLite file, made if it is not there.
        read_only: never writes; the file must be there.

    Raises:
        RunError: the file is missing, is no store, or was written by another version.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path, self._read_only = path, read_only
        if read_only and not path.is_file():
            raise RunError(f"{path}: no such store; a run that can be replayed has one beside its records")
        mode = "ro" if read_only else "rwc"
        try:
            # Autocommit: an answer is on its way to the disk before anybody is told of it.
            self._db = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None
            )
        except sqlite3.Error as error:
            raise RunError(f"{path}: {error}") from error
        with ExitStack() as unless_well:
            unless_well.callback(self._db.close)
            self._open()
            unless_well.pop_all()

    def _open(self) -> None:
        try:
            if not self._read_only and not self._tables():
                self._db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
            self._check()
            if not self._read_only:
                self._make_durable()
        except sqlite3.Error as error:
            raise RunError(f"{self.path}: not a store of evalsuite ({error})") from error

    def _tables(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])

    def _make_durable(self) -> None:
        # WAL with NORMAL survives the death of the process at any instant; only a power cut may cost
        # the last moments, and never the file.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")

    def _check(self) -> None:
        found = self._db.execute("PRAGMA user_version").fetchone()[0]
        if found != VERSION:
            raise RunError(
                f"{self.path}: the store has version {found}, this evalsuite reads version {VERSION}"
            )
        # Other programs count their versions from 1, too.
        self._db.execute("SELECT key, request, completion, created FROM completions LIMIT 1").fetchall()

    def get(self, key: str) -> Completion | None:
        """The completion kept under this key, if there is one."""
        row = self._execute("SELECT completion FROM completions WHERE key = ?", key).fetchone()
        return decode_completion(json.loads(row[0])) if row else None

    def put(self, key: str, request: Request, completion: Completion) -> None:
        """Keeps a completion; the first one under a key stays."""
        texts = dumps(encode_request(request)), dumps(encode_completion(completion))
        self._execute("INSERT OR IGNORE INTO completions VALUES (?, ?, ?, ?)", key, *texts, time.time())

    def take_over(self, other: Path) -> None:
        """Copies another store's completions into this one.

        Raises:
            RunError: the other is no store.
        """
        Store(other, read_only=True).close()
        self._execute("ATTACH ? AS other", f"{other.absolute().as_uri()}?mode=ro")
        self._execute("INSERT OR IGNORE INTO completions SELECT * FROM other.completions")
        self._execute("DETACH other")

    def _execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, values)
        except sqlite3.Error as error:
            raise RunError(f"{self.path}: {error}") from error

    def __len__(self) -> int:
        """How many completions are kept."""
        return int(self._db.execute("SELECT count(*) FROM completions").fetchone()[0])

    def close(self) -> None:
        """Closes the file; what was put is in it."""
        if not self._read_only:
            # A plain file again, which can be read from where nothing can be written. Somebody else may
            # have it open; then the last one does this.
            with suppress(sqlite3.Error):
                self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()
