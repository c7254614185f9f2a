"""litellm itself, speaking to a real server on loopback; where the extra is installed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import BackendUnavailable, RequestRefused
from evalsuite.core.types import Message, Request, Usage
from evalsuite.models.litellm import LitellmBackend
from evalsuite.models.protocol import BrokenConnection, LostAnswer, Outage, RateLimited, Transient, UnreachableServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.core.types import Completion
    from tests.conftest import ChatServer

pytest.importorskip("litellm", reason="pip install 'evalsuite[litellm]'")
REQUEST = Request("m", (Message("user", "hello"),), {"max_tokens": 5})


@pytest.fixture
def ask(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Asks once, through the provider that speaks OpenAI's format."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key")
    with asyncio.Runner() as runner:
        backend = LitellmBackend("openai/some-model", chat_server.url)

        def ask(request: Request = REQUEST) -> Completion:
            return runner.run(backend.complete(request))

        yield ask
        runner.run(backend.aclose())


def test_it_answers(ask: Any, chat_server: ChatServer) -> None:
    answer = ask()
    assert (answer.text, answer.usage) == ("hello", Usage(1, 10, 5))
    message = {"role": "user", "content": "hello"}
    assert chat_server.bodies == [{"model": "some-model", "messages": [message], "max_tokens": 5}]


def test_reasoning_is_kept_apart(ask: Any, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say("4", message={"reasoning_content": "two and two"})
    assert (ask().text, ask().reasoning) == ("4", "two and two")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestRefused),
        (401, BackendUnavailable),
        (403, BackendUnavailable),
        (404, BackendUnavailable),
        (408, Transient),
        (409, Transient),
        (422, RequestRefused),
        (429, RateLimited),
        (500, Transient),
        (502, Transient),
        (529, Transient),
    ],
)
def test_a_failure_means_what_it_means_everywhere_and_is_asked_once(
    ask: Any, chat_server: ChatServer, status: int, kind: type[Exception], capfd: pytest.CaptureFixture[str]
) -> None:
    chat_server.reply = lambda _: chat_server.say(status=status, body={"error": {"message": "why not"}})
    with pytest.raises(kind, match="why not"):
        ask()
    assert len(chat_server.bodies) == 1
    assert "litellm" not in capfd.readouterr().out.lower()


def test_a_429_says_how_long_to_wait(ask: Any, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(status=429, headers={"Retry-After": "7"}, body={"error": {}})
    with pytest.raises(RateLimited) as caught:
        ask()
    assert caught.value.retry_after == 7.0


@pytest.mark.parametrize("body", [b"{not json", b"<html>", b'{"choices": [{"message": {"content": [1]}}]}'])
def test_an_answer_that_cannot_be_read_counts_as_lost_and_is_told_in_one_line(
    ask: Any, chat_server: ChatServer, body: bytes
) -> None:
    chat_server.reply = lambda _: chat_server.say(body=body)
    with pytest.raises(LostAnswer) as caught:
        ask()
    assert not isinstance(caught.value, Outage)
    assert "Traceback" not in str(caught.value)


def test_a_connection_that_breaks_counts_as_a_lost_answer_in_an_outage(ask: Any, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(drop=True)
    with pytest.raises(BrokenConnection):
        ask()


def test_an_answer_that_takes_too_long_counts_as_lost(ask: Any, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say("late", delay=2.0)
    with pytest.raises(LostAnswer, match="timed out"):
        ask(replace(REQUEST, params={"timeout": 0.2}))


def test_a_server_that_is_not_there_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key")
    with pytest.raises(UnreachableServer):
        asyncio.run(LitellmBackend("openai/some-model", "http://127.0.0.1:9/v1").complete(REQUEST))


@pytest.mark.parametrize("name", ["openai/some-model", "gemini/some-model"])
def test_a_missing_key_ends_the_run(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(BackendUnavailable, match="key in the environment"):
        asyncio.run(LitellmBackend(name).complete(REQUEST))


@pytest.mark.parametrize("params", [{"api": "responses"}, {"api": "embeddings"}, {"stream": True}])
def test_what_litellm_would_answer_in_another_form_is_not_asked(
    ask: Any, chat_server: ChatServer, params: dict[str, Any]
) -> None:
    with pytest.raises(BackendUnavailable, match="whole chat completions only"):
        ask(replace(REQUEST, params=params))
    assert not chat_server.bodies
