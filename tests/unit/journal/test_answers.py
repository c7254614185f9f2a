"""Answers in a journal: what is put is there again, whatever befalls the process or the file."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import RunError
from evalsuite.core.types import Completion, Message, Request, TokenLogprob, ToolCall, Usage
from evalsuite.journal.answers import Answers
from evalsuite.journal.database import VERSION, Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REQUEST = Request("m", (Message("user", "hello"),))
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
likely = st.lists(st.tuples(text, st.floats(-99, 0)), max_size=2).map(tuple)
completions = st.builds(
    Completion,
    text=text,
    reasoning=text,
    tool_calls=st.lists(st.builds(ToolCall, text, text, text.filter(bool)), max_size=2).map(tuple),
    finish_reason=text,
    usage=st.builds(Usage, *(st.integers(0, 10**9),) * 3, st.floats(0, 1e6)),
    logprobs=st.none() | st.lists(st.builds(TokenLogprob, text, st.floats(-1e9, 0), likely), max_size=2).map(tuple),
)


def put(store: Answers, key: str, request: Request, completion: Completion) -> Completion:
    """Stores a completion, and waits until it is in the file."""
    return asyncio.run(store.store_completion(key, request, completion))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Answers]:
    store = Answers.open(tmp_path / "s.sqlite")
    yield store
    store.close()


@given(key=text, completion=completions)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_put_comes_back_equal_and_the_first_stays(store: Answers, key: str, completion: Completion) -> None:
    store._database.write(("DELETE FROM answers", ()), ("DELETE FROM requests", ()))
    assert store.get(key) is None
    put(store, key, REQUEST, completion)
    assert store.get(key) == completion
    put(store, key, REQUEST, Completion("another"))
    assert store.get(key) == completion
    assert len(store) == 1


def test_a_store_is_there_again_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "a folder with ? and #" / "s.sqlite"
    path.parent.mkdir()
    first = Answers.open(path)
    put(first, "k", REQUEST, Completion("kept"))
    first.close()
    again = Answers.open(path)
    assert again.get("k") == Completion("kept")
    again.close()


def test_half_a_surrogate_pair_becomes_a_question_mark(store: Answers) -> None:
    put(store, "k", Request("m", (Message("user", "a\ud800b"),)), Completion("x\udc00y"))
    assert store.get("k") == Completion("x?y")


WRITER = """
import asyncio, sys
from pathlib import Path
from evalsuite.journal.answers import Answers
from evalsuite.core.types import Completion, Message, Request

async def put(store, number):
    request = Request("m", (Message("user", str(number)),))
    await store.store_completion(str(number), request, Completion(f"answer {number}"))
    print(number, flush=True)

async def main():
    store = Answers.open(Path(sys.argv[1]))
    for number in range(0, 100_000, 10):
        await asyncio.gather(*(put(store, number + further) for further in range(10)))

asyncio.run(main())
"""


def test_whatever_was_put_survives_the_death_of_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(300)]
        os.kill(writer.pid, signal.SIGKILL)
        told += [int(line) for line in writer.stdout if line.endswith("\n")]
    for read_only in (True, False):
        store = Answers.open(path, read_only=read_only)
        assert all(store.get(str(number)) == Completion(f"answer {number}") for number in told)
        store.close()


def test_a_reader_sees_what_a_writer_has_put_so_far(store: Answers, tmp_path: Path) -> None:
    reader = Answers.open(tmp_path / "s.sqlite", read_only=True)
    put(store, "k", REQUEST, Completion("now"))
    assert reader.get("k") == Completion("now")
    reader.close()


def test_a_closed_store_is_one_plain_file_that_can_be_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    store = Answers.open(tmp_path / "s.sqlite")
    put(store, "k", REQUEST, Completion("kept"))
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["s.sqlite"]
    # Bytes 18 and 19 of an SQLite file: 1 for a plain journal, 2 for a write-ahead log, which needs files beside it.
    assert (tmp_path / "s.sqlite").read_bytes()[18:20] == b"\1\1"


def test_a_read_only_store_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    Answers.open(path).close()
    before = path.read_bytes()
    store = Answers.open(path, read_only=True)
    with pytest.raises(RunError, match=r"s\.sqlite: attempt to write a readonly database"):
        put(store, "k", REQUEST, Completion("x"))
    store.close()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["s.sqlite"]


def test_a_missing_store_cannot_be_read_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such journal"):
        Answers.open(tmp_path / "s.sqlite", read_only=True)
    assert not list(tmp_path.iterdir())


def make_text(path: Path) -> None:
    path.write_text("case,score\n" * 100)


def make_foreign(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE things (name TEXT)")
    db.close()


def make_foreign_of_this_version(path: Path) -> None:
    make_foreign(path)
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION}")
    db.close()


def make_later(path: Path) -> None:
    Answers.open(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (make_text, r"not a journal of evalsuite \(file is not a database\)"),
        (make_foreign, f"the journal has version 0, this evalsuite reads version {VERSION}"),
        (make_foreign_of_this_version, r"not a journal of evalsuite \(no such table: sessions\)"),
        (make_later, f"the journal has version {VERSION + 1}, this evalsuite reads version {VERSION}"),
    ],
)
def test_a_file_that_is_no_store_of_this_version_is_refused_and_left_as_it_was(
    tmp_path: Path, make: Any, words: str, *, read_only: bool
) -> None:
    path = tmp_path / "s.sqlite"
    make(path)
    before = path.read_bytes()
    with pytest.raises(RunError, match=words):
        Answers.open(path, read_only=read_only)
    assert path.read_bytes() == before


ANSWERS = {f"{index:03}": f"{index} " * 50 for index in range(200)}


async def put_all(answers: Answers) -> None:
    await asyncio.gather(
        *(
            answers.store_completion(key, Request("m", (Message("user", text),)), Completion(text))
            for key, text in ANSWERS.items()
        )
    )


def fill(path: Path) -> None:
    answers = Answers.open(path)
    asyncio.run(put_all(answers))
    answers.close()


@given(bit=st.integers(0, 8 * 60_000), more=st.integers(0, 8 * 60_000))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_costs_an_answer_at_most_and_never_makes_a_wrong_one(tmp_path: Path, bit: int, more: int) -> None:
    whole = tmp_path / "whole.sqlite"
    if not whole.exists():
        fill(whole)
    content = bytearray(whole.read_bytes())
    # After the first page, without which no file is one of SQLite's.
    for one in {bit, more}:
        place = 4096 + one % (8 * (len(content) - 4096)) // 8
        content[place] ^= 1 << one % 8
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(content)
    try:
        answers = Answers.open(path)
    except RunError:
        # Not even its tables can be found.
        return
    assert all(answers.get(key) in (None, Completion(text)) for key, text in ANSWERS.items())
    asyncio.run(put_all(answers))
    assert all(answers.get(key) == Completion(text) for key, text in ANSWERS.items())
    answers.close()


def test_a_file_that_lacks_its_end_keeps_the_answers_before_and_counts_a_loss(tmp_path: Path) -> None:
    path = tmp_path / "cut.sqlite"
    fill(path)
    os.truncate(path, path.stat().st_size * 3 // 4)
    database = Database(path)
    kept = [key for key, text in ANSWERS.items() if Answers(database).get(key) == Completion(text)]
    assert 0 < len(kept) < len(ANSWERS)
    assert database.lost_rows > 0
    database.close()


def test_an_answer_that_was_changed_is_asked_again_and_counted(store: Answers) -> None:
    put(store, "k", REQUEST, Completion("right"))
    store._database.write(("UPDATE answers SET completion = replace(completion, 'right', 'wrong')", ()))
    assert store.get("k") is None
    assert store.damaged == 1
    put(store, "k", REQUEST, Completion("right"))
    assert store.get("k") == Completion("right")


def test_what_may_have_been_billed_counts_as_spent(store: Answers) -> None:
    async def call() -> None:
        paid, lost, refused, cut = (store.record_call_start("k", reserved=1.0) for _ in range(4))
        assert cut
        store.record_call_end(paid, "answered", Usage(1, 10, 5, 0.25))
        store.record_call_end(lost, "failed", error="timed out")
        store.record_call_end(refused, "refused", error="429")

    asyncio.run(call())
    # One was paid, one failed when it may have been billed, one has not ended.
    assert store.sum_spending() == 2.25


def test_a_file_that_another_process_has_locked_for_a_moment_is_waited_for(store: Answers, tmp_path: Path) -> None:
    file = str(tmp_path / "s.sqlite")
    locked = f"import sqlite3, sys, time; db = sqlite3.connect({file!r}, isolation_level=None)\n"
    locked += "db.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read(1); time.sleep(0.3)"
    with subprocess.Popen([sys.executable, "-c", locked], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()
        other.stdin.write(b"x")
        other.stdin.flush()
        put(store, "k", REQUEST, Completion("in time"))
        other.stdin.close()
    assert store.get("k") == Completion("in time")


def test_another_stores_completions_are_taken_over_and_ones_own_stay(tmp_path: Path, store: Answers) -> None:
    path = tmp_path / "other ?.sqlite"
    other = Answers.open(path)
    put(other, "both", REQUEST, Completion("theirs"))
    put(other, "new", REQUEST, Completion("new"))
    other.close()
    put(store, "both", REQUEST, Completion("ours"))
    store.copy_answers_from(path)
    store.copy_answers_from(path)
    assert (len(store), store.get("both"), store.get("new")) == (2, Completion("ours"), Completion("new"))


def test_a_store_that_cannot_be_opened_is_told_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="unable to open database file"):
        Answers.open(tmp_path / "no such folder" / "s.sqlite")


def test_what_is_no_store_is_not_taken_over(tmp_path: Path, store: Answers) -> None:
    make_text(tmp_path / "other")
    with pytest.raises(RunError, match="other: not a journal"):
        store.copy_answers_from(tmp_path / "other")
