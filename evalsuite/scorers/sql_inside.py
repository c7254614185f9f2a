"""Runs SQL queries on a copy of an SQLite database and compares results; the sandbox runs this file's text."""

import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

MOST_ROWS, MOST_CELL = 100_000, 16 << 20  # Maximum number of rows in a result, and maximum number of bytes in a cell.
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
# In Python 3.11, sqlite3 raises `Warning` if the text has a second statement.
FAILURES = (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError)
_DISTINCT = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`)|\bdistinct\b""", re.IGNORECASE)
_THIS_YEAR = re.compile(r"year\s*\(\s*curdate\s*\(\s*\)\s*\)", re.IGNORECASE)


def run_query(database: bytes, sql: str, seconds: float) -> list[tuple[Any, ...]]:
    """Run one query on a copy of the database in memory; the query may only read.

    Raise `sqlite3.Error` or `ValueError` if the query fails, tries to write, runs too long, or returns too many rows.
    """
    # Mark the copy as a database without a write-ahead log, because the log is a separate file that was not copied.
    copy = database[:18] + b"\1\1" + database[20:] if database[18:20] == b"\2\2" else database
    end = time.monotonic() + seconds
    with closing(sqlite3.connect(":memory:")) as connection:
        if copy:  # SQLite reads an empty file as a database without tables; `deserialize` refuses it.
            connection.deserialize(copy)
        connection.text_factory = lambda text: text.decode(errors="ignore")
        connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_CELL)
        connection.set_progress_handler(lambda: time.monotonic() > end, 1000)
        rows = connection.execute(sql).fetchmany(MOST_ROWS + 1)
    if len(rows) > MOST_ROWS:
        raise ValueError(f"more than {MOST_ROWS:,} rows")
    return rows


def is_row_order_significant(sql: str) -> bool:
    """Tell by the rule of Spider's evaluator whether the order of a query's rows matters."""
    return "order by" in sql.lower()


def are_rows_equal(gold: list[tuple[Any, ...]], predicted: list[tuple[Any, ...]], *, ordered: bool) -> bool:
    """Compare two results like Spider's evaluator: as multisets or lists of rows, with columns in any order."""
    if len(gold) != len(predicted) or not gold:
        return not gold and not predicted
    if len(gold[0]) != len(predicted[0]):
        return False
    collect: Any = list if ordered else Counter
    wanted, given = list(zip(*gold)), list(zip(*predicted))  # noqa: B905 - rows of one query are equally long

    def is_extendable(chosen: list[int]) -> bool:
        """Tell whether the rows become equal for some order of the columns that begins with the chosen columns."""
        if len(chosen) == len(wanted):
            return True
        part = collect(zip(*wanted[: len(chosen) + 1]))  # noqa: B905 - as above
        return any(
            part == collect(zip(*(given[place] for place in (*chosen, column)))) and is_extendable([*chosen, column])  # noqa: B905
            for column in range(len(given))
            if column not in chosen
        )

    return is_extendable([])


def _rewrite_like_spider(sql: str) -> str:
    """Remove DISTINCT, remove blanks inside operators such as `> =`, and replace the current year by 2020."""
    for written in ("> =", "< =", "! ="):
        sql = sql.replace(written, written.replace(" ", ""))
    return _THIS_YEAR.sub("2020", _DISTINCT.sub(lambda match: match[1] or "", sql))


def compare_queries(database: bytes, gold: str, predicted: str, match: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield JSON data in two steps: the target query's outcome and, unless that failed, the comparison's outcome."""
    if match == "spider":
        gold, predicted = _rewrite_like_spider(gold), _rewrite_like_spider(predicted)
    try:
        wanted = run_query(database, gold, seconds)
    except FAILURES as error:
        yield {"gold": str(error)}
        return
    yield {}
    try:
        given = run_query(database, predicted, seconds)
    except FAILURES as error:
        yield {"failed": str(error) or type(error).__name__}
        return
    same = (
        set(wanted) == set(given)
        if match == "bird"
        else are_rows_equal(wanted, given, ordered=is_row_order_significant(gold))
    )
    yield {"same": same, "rows": [len(wanted), len(given)]}
