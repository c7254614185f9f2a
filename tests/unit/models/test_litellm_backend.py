"""litellm itself, speaking to a real server on loopback; where the extra is installed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import BackendUnavailable, RequestRefused
from evalsuite.core.types import Message, Request, Usage
from evalsuite.models.litellm import LitellmBackend
from evalsuite.models.protocol import RateLimited, Transient

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
        (404, RequestRefused),
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


@pytest.mark.parametrize("body", [b"{not json", b"<html>"])
def test_an_answer_that_is_none_may_pass(ask: Any, chat_server: ChatServer, body: bytes) -> None:
    chat_server.reply = lambda _: chat_server.say(body=body)
    with pytest.raises(Transient):
        ask()


def test_a_connection_that_breaks_may_pass(ask: Any, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(drop=True)
    with pytest.raises(Transient):
        ask()
