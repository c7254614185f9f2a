"""Large parts of messages: kept once, and back in their place whenever a record is read."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.content import audio, file, image
from evalsuite.core.errors import RunError
from evalsuite.core.json_codec import dumps, encode_message
from evalsuite.core.types import Completion, Message, Request
from evalsuite.journal.database import LARGE, join_large_strings, split_large_strings
from evalsuite.journal.journal import Journal

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = b"\x89PNG" + bytes(range(256)) * 40
LETTERS = st.text(alphabet='aA0+/="\\\x1e ,:', max_size=20)


def message(content: bytes = PICTURE) -> Message:
    parts: list[Any] = ["What is this?", image(content), audio(content, format="wav"), file(content, name="a.pdf")]
    return Message("user", parts=parts)


def test_a_message_is_taken_apart_and_put_together() -> None:
    text = dumps(encode_message(message()))
    short, parts = split_large_strings(text)
    # The picture and the file are data URLs of two kinds, the recording is the bare Base64.
    assert len(parts) == 3
    assert len(short) < 1000 < len(text)
    assert join_large_strings(short, dict(parts).get) == text
    with pytest.raises(RunError, match="lost a part"):
        join_large_strings(short, lambda _: None)
    with pytest.raises(RunError, match="lost a part"):
        join_large_strings(short, lambda _: "AAAA")


@given(LETTERS, st.integers(LARGE - 2, LARGE + 2), LETTERS)
def test_whatever_text_stands_around_comes_back(before: str, length: int, after: str) -> None:
    text = dumps({"a": before, before: ["A" * length + "=", after], "c": f"{before}{'A' * length}{after}"})
    short, parts = split_large_strings(text)
    assert join_large_strings(short, dict(parts).get) == text
    assert json.loads(join_large_strings(short, dict(parts).get)) == json.loads(text)


def test_a_picture_that_many_cases_show_is_in_the_journal_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.begin_session("2024-01-01T00:00:00+00:00", "pytest")
    lines = [dumps({"case": f"c{n}", "messages": [encode_message(message())]}) for n in range(5)]
    for number, line in enumerate(lines):
        journal.store_record(f"c{number}", "same", line)
        request = Request("m", (message(),), epoch=number + 1)
        asyncio.run(journal.answers.store_completion(f"key{number}", request, Completion("a dot")))
    assert journal.database.read_row("SELECT count(*) FROM parts")[0] == 3
    assert list(journal.iterate_record_lines()) == lines
    assert journal.answers.list_damaged_keys() == []
    assert journal.answers.get("key3") == Completion("a dot")
    journal.close()
    size = (tmp_path / "journal.sqlite").stat().st_size
    assert size < 3 * len(b64encode(PICTURE)) + 150_000
    other = Journal(tmp_path / "other.sqlite")
    other.answers.copy_answers_from(tmp_path / "journal.sqlite")
    assert other.database.read_row("SELECT count(*) FROM parts")[0] == 3
    other.close()


def test_a_record_whose_picture_is_lost_is_damaged(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.begin_session("2024-01-01T00:00:00+00:00", "pytest")
    journal.store_record("c", "same", dumps({"messages": [encode_message(message())]}))
    journal.database.write(("UPDATE parts SET content = 'AAAA'", ()))
    counted = journal.summarise_records()
    assert (counted.cases, counted.damaged) == (0, ["c"])
    assert list(journal.iterate_record_lines()) == []
    journal.close()
