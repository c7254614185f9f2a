"""What is written together, and what becomes of work that cannot be done."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.errors import RunError
from evalsuite.journal.database import Database
from evalsuite.journal.journal import Journal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "j.sqlite")
    yield database
    database.close()


def part(name: str) -> Callable[[sqlite3.Connection], object]:
    return lambda db: db.execute("INSERT INTO parts VALUES (?, 'x')", (name,))


def parts(file: Path) -> list[str]:
    """What another process would see."""
    reader = Database(file, read_only=True)
    try:
        return [name for (name,) in reader.read_rows("SELECT name FROM parts ORDER BY rowid")]
    finally:
        reader.close()


def test_work_of_one_turn_is_in_the_file_when_its_askers_go_on(database: Database) -> None:
    group = database.queue

    async def ask(name: str) -> list[str]:
        await group.commit(part(name))
        return parts(database.path)

    async def main() -> list[list[str]]:
        group.queue_write(part("noted before"))
        return list(await asyncio.gather(ask("a"), ask("b")))

    assert asyncio.run(main()) == [["noted before", "a", "b"]] * 2


def test_work_that_cannot_be_done_keeps_no_other_from_being_written(database: Database) -> None:
    group = database.queue

    async def main() -> list[type]:
        work = (part("a"), part("a"), part("b"))
        return [*map(type, await asyncio.gather(*map(group.commit, work), return_exceptions=True))]

    assert asyncio.run(main()) == [type(None), RunError, type(None)]
    assert parts(database.path) == ["a", "b"]


def test_a_flush_returns_after_the_outcomes_of_writes_that_another_thread_stores(database: Database) -> None:
    begun, told = threading.Event(), list[RunError | None]()

    def be_slow(error: RunError | None) -> None:
        begun.set()
        time.sleep(0.2)
        told.append(error)

    database.queue.queue_write(part("a"), be_slow)
    thread = threading.Thread(target=database.queue.flush)
    thread.start()
    begun.wait()
    database.queue.flush()
    assert told == [None]
    thread.join()


def test_notes_that_could_not_be_written_are_tried_again(database: Database) -> None:
    database.write(("CREATE TEMP TRIGGER full BEFORE INSERT ON parts BEGIN SELECT raise(ABORT, 'full'); END", ()))
    database.queue.queue_write(part("a"))
    database.queue.flush()
    assert parts(database.path) == []
    database.write(("DROP TRIGGER full", ()))
    database.queue.flush()
    assert parts(database.path) == ["a"]


def test_closing_writes_what_waits(tmp_path: Path) -> None:
    database = Database(tmp_path / "j.sqlite")
    database.queue.queue_write(part("a"))
    database.close()
    assert parts(tmp_path / "j.sqlite") == ["a"]


def test_an_asker_hears_of_work_that_another_thread_settled(database: Database) -> None:
    async def main() -> None:
        asking = asyncio.ensure_future(database.queue.commit(part("a")))
        # Before the loop comes round to it.
        await asyncio.sleep(0)
        thread = threading.Thread(target=database.queue.flush)
        thread.start()
        thread.join()
        await asyncio.wait_for(asking, 10)

    asyncio.run(main())
    assert parts(database.path) == ["a"]


def test_a_record_is_in_the_file_at_once_and_what_waits_with_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.begin_session("now", "pytest")
    journal.database.queue.queue_write(part("a"))
    reader = Journal(journal.database.path, read_only=True)
    journal.store_record("a", "same", "{}")
    assert (reader.count_records(), parts(journal.database.path)) == (1, ["a"])
    reader.close()
    journal.close()


def test_a_record_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.begin_session("now", "pytest")
    journal.database.write(
        ("CREATE TEMP TRIGGER full BEFORE INSERT ON records BEGIN SELECT raise(ABORT, 'the disk is full'); END", ())
    )
    with pytest.raises(RunError, match="the disk is full"):
        journal.store_record("a", "same", "{}")
    journal.close()
