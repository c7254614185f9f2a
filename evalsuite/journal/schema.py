"""The journal's tables, and how they store large parts of messages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from evalsuite.core.errors import RunError

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
-- Who is writing, for people to read; the lock on the file beside the journal is what counts.
CREATE TABLE lease (
    only     INTEGER PRIMARY KEY CHECK (only = 1),
    session  INTEGER NOT NULL,
    host     TEXT NOT NULL,
    pid      INTEGER NOT NULL,
    since    TEXT NOT NULL
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
