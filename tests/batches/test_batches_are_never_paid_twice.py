"""The backend that sends batches, before a real server with OpenAI's batch interface that has its bad moments."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import evalsuite.batches.backend as module
from evalsuite.batches.backend import BatchBackend, PendingBatches
from evalsuite.batches.server import read_completion
from evalsuite.core.errors import BackendUnavailable, RequestRefused
from evalsuite.core.types import Message, Request
from evalsuite.journal.batches import StoredBatches
from evalsuite.journal.database import Database
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.protocol import LostAnswer, Transient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.batches.conftest import BatchServer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("QUIET", 0.05), ("FIRST_LOOK", 0.01), ("LONGEST_PAUSE", 0.02)):
        monkeypatch.setattr(module, name, seconds)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "journal.sqlite")
    yield database
    database.close()


def ask(server: BatchServer, journal: Database, *texts: str) -> tuple[list[Any], list[str]]:
    """What a session gets for some requests: texts or exceptions, and what the terminal is told."""
    told: list[str] = []

    async def session() -> list[Any]:
        backend = BatchBackend(
            OpenAIBackend(server.url), "gpt-test", StoredBatches(journal), PendingBatches(tell=told.append)
        )
        requests = [Request("gpt-test", (Message("user", text),)) for text in texts]
        try:
            answers = await asyncio.gather(*map(backend.complete, requests), return_exceptions=True)
        finally:
            await backend.aclose()
        return [answer if isinstance(answer, BaseException) else answer.text for answer in answers]

    return asyncio.run(session()), told


def begin(server: BatchServer, journal: Database, *texts: str) -> None:
    """Has a session send a batch, and end before the batch does."""

    async def session() -> None:
        sent = asyncio.Event()
        pending = PendingBatches(tell=lambda _: sent.set())
        backend = BatchBackend(OpenAIBackend(server.url), "gpt-test", StoredBatches(journal), pending)
        calls = [
            asyncio.ensure_future(backend.complete(Request("gpt-test", (Message("user", text),)))) for text in texts
        ]
        await sent.wait()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await backend.aclose()

    fate, server.fate = server.fate, lambda batch: None
    asyncio.run(session())
    server.fate = fate


def test_answers_that_cannot_be_fetched_at_once_are_fetched_later(batch_server: BatchServer, journal: Database) -> None:
    batch_server.hiccups = ["/content", "/content", "/batch_0"]
    answers, told = ask(batch_server, journal, "a", "b")
    assert answers == ["a", "b"]
    assert len(batch_server.batches) == 1
    assert any("answered 503" in line and "trying again" in line for line in told)


def test_a_batch_of_an_earlier_session_is_waited_for_while_the_server_restarts(
    batch_server: BatchServer, journal: Database
) -> None:
    begin(batch_server, journal, "a", "b")
    batch_server.hiccups = ["/batch_0", "/batch_0", "/content"]
    assert ask(batch_server, journal, "a", "b")[0] == ["a", "b"]
    assert len(batch_server.batches) == 1


def test_a_batch_never_heard_of_is_looked_for_while_the_server_restarts(
    batch_server: BatchServer, journal: Database
) -> None:
    batch_server.deaf, batch_server.hiccups = True, ["/batches", "/batches"]
    assert ask(batch_server, journal, "a", "b")[0] == ["a", "b"]
    assert len(batch_server.batches) == 1


def test_one_line_that_cannot_be_read_costs_no_other_answer(batch_server: BatchServer, journal: Database) -> None:
    keep = batch_server.keep

    def keep_cut_short(content: bytes) -> str:
        return keep(content[:-40] if b"status_code" in content else content)

    batch_server.keep = keep_cut_short  # type: ignore[method-assign]
    answers, told = ask(batch_server, journal, "a", "b", "c")
    assert sorted(answer for answer in answers if isinstance(answer, str)) == ["b", "c"]
    # Such an answer may have been paid for.
    assert [type(answer) for answer in answers if not isinstance(answer, str)] == [LostAnswer]
    assert any("1 line cannot be read; the other answers are kept" in line for line in told)


def test_what_a_cancelled_batch_left_unanswered_is_not_sent_again(batch_server: BatchServer, journal: Database) -> None:
    batch_server.fate = lambda batch: "cancelled"
    answers, told = ask(batch_server, journal, "a", "b")
    assert answers[0] == "a"
    assert isinstance(answers[1], RequestRefused)
    assert told[-1] == "batch_0 was cancelled; requests without an answer will not be sent again"


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        ({}, LostAnswer, "neither answer nor error"),
        ({"response": {"status_code": "abc"}}, LostAnswer, "neither answer nor error"),
        ({"response": {"status_code": 1e400}}, LostAnswer, "neither answer nor error"),
        ({"response": [1], "error": {"code": "batch_expired"}}, Transient, "gave no answer: batch_expired"),
        ({"response": {"status_code": 200, "body": None}}, LostAnswer, "not a chat completion"),
        ({"response": {"status_code": 500, "body": [1]}}, Transient, "answered 500"),
    ],
)
def test_a_line_of_another_shape_is_an_error_that_may_pass(
    line: dict[str, Any], kind: type[Exception], words: str
) -> None:
    request = Request("gpt-test", (Message("user", "a"),))
    with pytest.raises(kind, match=words):
        read_completion(OpenAIBackend("http://127.0.0.1:9/v1"), request, line)


def test_a_model_that_the_server_takes_no_batches_for_is_not_asked_again(
    batch_server: BatchServer, journal: Database
) -> None:
    batch_server.fate = lambda batch: "failed"
    batch_server.errors = [{"code": "model_not_found", "message": "No such model.", "param": "body.model", "line": 1}]
    answers, told = ask(batch_server, journal, "a", "b")
    assert [isinstance(answer, BackendUnavailable) for answer in answers] == [True, True]
    assert str(answers[0]) == "batch_0 failed: No such model"
    assert told == ["batch_0: 2 requests sent", "batch_0 failed: No such model"]


def test_a_batch_that_the_server_no_longer_has_is_an_error_once_and_sent_anew_by_the_next_session(
    batch_server: BatchServer, journal: Database
) -> None:
    begin(batch_server, journal, "a")
    batch_server.batches[0].plain["id"] = "batch_gone"
    answers, _ = ask(batch_server, journal, "a")
    assert isinstance(answers[0], RequestRefused)
    assert "batch_0: the server has no such batch: it was deleted, or sent with another key" in str(answers[0])
    assert ask(batch_server, journal, "a")[0] == ["a"]
