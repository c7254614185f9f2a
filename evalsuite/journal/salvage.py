"""Recovers what is still readable of a damaged journal into a new file."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from evalsuite.journal.schema import SCHEMA, TABLES, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WIDEST_GAP = 1_000_000
"""Most rows that are tried one by one between those that can be read from either end."""


def salvage(path: Path) -> int:
    """Replaces a damaged file by one with all readable rows; the damaged file stays beside it.

    Returns:
        The approximate number of lost rows.
    """
    fresh = path.with_name(f".{path.name}.mended")
    fresh.unlink(missing_ok=True)
    lost = 0
    with closing(_raw(path)) as old, closing(sqlite3.connect(fresh, isolation_level=None)) as new:
        new.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT; BEGIN;")
        for table in TABLES:
            lost += _copy(old, new, table)
        new.execute("COMMIT")
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.replace(path.with_name(f"{path.name}.damaged"))
    fresh.replace(path)
    return lost


def _raw(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.text_factory = lambda data: data.decode("utf-8", "replace")
    # The write-ahead log contains the newest rows.
    with suppress(sqlite3.Error):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return db


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> int:
    copied, highest = 0, 0
    for row in _readable(old, table):
        highest = max(highest, row[0])
        places = ", ".join("?" * (len(row) - 1))
        # A row that violates the table's constraints is damaged.
        with suppress(sqlite3.Error):
            copied += new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({places})", row[1:]).rowcount  # noqa: S608
    return max(0, highest - copied)


def _readable(db: sqlite3.Connection, table: str) -> Iterator[tuple[int, ...]]:
    """All readable rows, each with its number first: from both ends, then one by one in between."""
    low = high = None
    try:
        for row in db.execute(f"SELECT rowid, * FROM {table} ORDER BY rowid"):  # noqa: S608 - a constant
            low = row[0]
            yield row
    except sqlite3.Error:
        pass
    else:
        return
    with suppress(sqlite3.Error):
        for row in db.execute(
            f"SELECT rowid, * FROM {table} WHERE rowid > ? ORDER BY rowid DESC",  # noqa: S608
            (low or 0,),
        ):
            high = row[0]
            yield row
    for number in range((low or 0) + 1, min(high or 0, (low or 0) + WIDEST_GAP)):
        with suppress(sqlite3.Error):
            yield from db.execute(f"SELECT rowid, * FROM {table} WHERE rowid = ?", (number,))  # noqa: S608
