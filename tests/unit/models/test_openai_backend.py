"""The backend for OpenAI and its like, against a real server on loopback."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp.http_exceptions import ContentLengthError

from evalsuite.core.errors import BackendUnavailable, RequestRefused, SettingsError
from evalsuite.core.types import Message, Request, TokenLogprob, ToolCall, Usage
from evalsuite.gateway.gateway import Gateway
from evalsuite.gateway.limiter import Limiter
from evalsuite.journal.answers import Answers
from evalsuite.models.choice import open_backend
from evalsuite.models.credentials import Access, AddressGrant, Credentials
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.openai_client import format_error_message, list_causes
from evalsuite.models.protocol import (
    LostAnswer,
    Outage,
    PermanentFailure,
    RateLimited,
    Transient,
    UnreachableServer,
    make_status_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalsuite.models.protocol import Backend
    from tests.conftest import ChatServer
    from tests.unit.models.conftest import Once


def given(url: str, model: str = "m") -> Backend:
    """A backend at an address that the user gave."""
    return open_backend(model, url, Credentials([AddressGrant(model, url)]))


def test_one_post_bears_headers_body_and_tools(once: Once, chat_server: ChatServer, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key\n")
    answer = once(given(chat_server.url + "/"), params={"max_tokens": 5, "seed": None}, tools=({"name": "f"},))
    assert (answer.text, answer.usage) == ("hello", Usage(1, 10, 5))
    assert chat_server.headers[0]["Authorization"] == "Bearer sk-key"
    assert chat_server.headers[0]["Content-Type"] == "application/json"
    assert chat_server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 5,
            "tools": [{"type": "function", "function": {"name": "f"}}],
        }
    ]


def test_each_call_bears_what_the_package_sends_and_headers_of_its_own_stay_with_it(
    chat_server: ChatServer, monkeypatch: Any
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key")
    backend = given(f"{chat_server.url}?key=own")

    async def ask(text: str, **params: Any) -> None:
        await backend.complete(Request("m", (Message("user", text),), params))

    async def main() -> None:
        await ask("first")
        await ask("with headers", extra_headers={"X-Own": "1"}, extra_query={"more": "2"})
        await ask("a longer text than the first")
        await backend.aclose()

    asyncio.run(main())
    first, with_headers, last = ({**headers} for headers in chat_server.headers)
    assert (with_headers.pop("X-Own"), "X-Own" in last) == ("1", False)
    for headers in (first, with_headers, last):
        assert int(headers.pop("Content-Length")) > 2
        assert headers["Authorization"] == "Bearer sk-key"
        assert headers["User-Agent"].startswith("AsyncOpenAI/Python")
    assert first == with_headers == last
    assert [body["messages"][0]["content"] for body in chat_server.bodies] == [
        "first",
        "with headers",
        "a longer text than the first",
    ]


def test_without_a_key_none_is_sent(once: Once, chat_server: ChatServer) -> None:
    once(OpenAIBackend(chat_server.url))
    assert "Authorization" not in chat_server.headers[0]


def test_user_and_password_of_the_address_are_sent_and_are_told_to_nobody(once: Once, chat_server: ChatServer) -> None:
    backend = OpenAIBackend(chat_server.url.replace("//", "//us%40er:pa%3Ass@"))
    chat_server.reply = lambda _: chat_server.say(status=400, body={"error": {"message": "no"}})
    with pytest.raises(RequestRefused) as caught:
        once(backend)
    # us@er:pa:ss
    assert chat_server.headers[0]["Authorization"] == "Basic dXNAZXI6cGE6c3M="
    assert f"{caught.value}" == f"{chat_server.url} answered 400: no"
    assert backend.identity == f"openai {chat_server.url}"


def test_the_address_may_stand_in_the_environment(monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://host:1/v1/")
    assert open_backend("m").identity == "openai http://host:1/v1"
    assert open_backend("m", "http://other/v1").identity == "openai http://other/v1"


@pytest.mark.parametrize(
    "url",
    ["host:8000/v1", "ftp://host/v1", "http://", "/v1", "http://[::1/v1", "http://host:port/v1", "http://h:99999"],
)
def test_what_is_no_address_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(SettingsError, match="not an address; write http://host:port/v1"):
        OpenAIBackend(url)


def test_what_is_no_address_is_refused_without_its_password() -> None:
    with pytest.raises(SettingsError) as caught:
        OpenAIBackend("user:secret@host/v1")
    assert "secret" not in str(caught.value)


def test_openai_itself_wants_a_key(once: Once) -> None:
    backend = OpenAIBackend()
    for attempt in (backend.check, lambda: once(backend)):
        with pytest.raises(BackendUnavailable, match=r"needs a key: set OPENAI_API_KEY.*--model=local:smollm2"):
            attempt()


def test_a_server_of_ones_own_needs_no_key() -> None:
    OpenAIBackend("http://host/v1").check()


def test_logprobs_calls_of_tools_and_reasoning_come_back(once: Once, chat_server: ChatServer) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    logprobs = {"content": [{"token": "4", "logprob": -0.5, "top_logprobs": [{"token": "4", "logprob": -0.5}]}]}
    message = {"role": "assistant", "content": "4", "reasoning_content": "two and two", "tool_calls": [call]}
    body = {"choices": [{"message": message, "logprobs": logprobs, "finish_reason": "length"}]}
    chat_server.reply = lambda _: chat_server.say(body=body)
    answer = once(OpenAIBackend(chat_server.url), params={"logprobs": True})
    assert (answer.text, answer.reasoning, answer.finish_reason) == ("4", "two and two", "length")
    assert answer.tool_calls == (ToolCall("c", "f", "{}"),)
    assert answer.logprobs == (TokenLogprob("4", -0.5, (("4", -0.5),)),)
    assert chat_server.bodies[0]["logprobs"] is True


def test_reasoning_in_tags_is_taken_out(once: Once, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say("<think>hm</think>42")
    answer = once(OpenAIBackend(chat_server.url))
    assert (answer.text, answer.reasoning) == ("42", "hm")


def test_half_a_surrogate_pair_is_sent_as_a_question_mark(once: Once, chat_server: ChatServer) -> None:
    assert once(OpenAIBackend(chat_server.url), "a\ud800b\U0001f600").text == "a?b\U0001f600"


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_can_never_succeed_fails_at_once_with_the_servers_words(
    once: Once, chat_server: ChatServer, status: int
) -> None:
    error = {"message": "maximum context length is 8192 tokens", "code": "context_length_exceeded"}
    chat_server.reply = lambda _: chat_server.say(status=status, body={"error": error})
    with pytest.raises(RequestRefused) as caught:
        once(OpenAIBackend(chat_server.url))
    words = "maximum context length is 8192 tokens (context_length_exceeded)"
    assert str(caught.value) == f"{chat_server.url} answered {status}: {words}"


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_said_to_be_one(once: Once, chat_server: ChatServer, status: int) -> None:
    chat_server.reply = lambda _: chat_server.say(status=status, body={"error": "bad key"})
    with pytest.raises(BackendUnavailable, match=r"bad key.*is the key right"):
        once(OpenAIBackend(chat_server.url))


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 529])
def test_a_servers_own_trouble_may_pass(once: Once, chat_server: ChatServer, status: int) -> None:
    chat_server.reply = lambda _: chat_server.say(status=status, body={"error": {"message": "busy"}})
    with pytest.raises(Transient, match=f"answered {status}: busy"):
        once(OpenAIBackend(chat_server.url))


@pytest.mark.parametrize(("header", "wait"), [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), (None, None), ("soon", None)])
def test_a_429_says_how_long_to_wait_if_the_server_does(
    once: Once, chat_server: ChatServer, header: str | None, wait: float | None
) -> None:
    headers = {"Retry-After": header} if header else {}
    chat_server.reply = lambda _: chat_server.say(status=429, headers=headers, body={"error": {"message": "slow"}})
    with pytest.raises(RateLimited, match="answered 429: slow") as caught:
        once(OpenAIBackend(chat_server.url))
    assert caught.value.retry_after == wait


@pytest.mark.parametrize("zone", ["GMT", "-0000", ""])
def test_a_wait_may_be_given_as_a_date(zone: str) -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=100)).removesuffix("+0000") + zone
    error = make_status_error(429, {"retry-after": at}, "slow", "http://host")
    assert isinstance(error, RateLimited)
    assert error.retry_after is not None
    assert 90 < error.retry_after <= 100
    past = make_status_error(429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "slow", "http://host")
    assert isinstance(past, RateLimited)
    assert past.retry_after == 0.0


def test_an_overloaded_server_that_names_a_time_is_waited_for_like_one_that_says_429() -> None:
    error = make_status_error(503, {"retry-after": "3"}, "overloaded", "http://host")
    assert isinstance(error, RateLimited)
    assert error.retry_after == 3.0


def test_a_quota_that_is_used_up_is_not_waited_for() -> None:
    assert isinstance(make_status_error(429, {}, "no money (insufficient_quota)", "http://host"), PermanentFailure)
    for words in ("limit (billing_hard_limit_reached)", "Your credit balance is too low to access the Anthropic API."):
        assert isinstance(make_status_error(400, {}, words, "http://host"), PermanentFailure)
    assert isinstance(
        make_status_error(400, {}, "bad input 'my credit balance is too low'", "http://host"), RequestRefused
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html><h1>502 Bad Gateway</h1></html>", "<html><h1>502 Bad Gateway</h1></html>"),
        (b"", "(no words)"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"detail": "why"}', "{'detail': 'why'}"),
        (b'{"error": "why"}', "why"),
        (b'{"error": {"message": "why", "type": "kind"}}', "why (kind)"),
        (b'{"error": null}', "None"),
        (b"[1, 2]", "[1, 2]"),
        (b"x" * 10_000, "x" * 500),
    ],
)
def test_error_pages_of_all_kinds_are_quoted_and_kept_short(
    once: Once, chat_server: ChatServer, body: bytes, words: str
) -> None:
    chat_server.reply = lambda _: chat_server.say(status=502, body=body)
    with pytest.raises(Transient) as caught:
        once(OpenAIBackend(chat_server.url))
    assert str(caught.value) == f"{chat_server.url} answered 502: {words}"


@pytest.mark.parametrize("body", [b"{not json", b"", b"\xff", b"<html>ok</html>"])
def test_an_answer_that_is_no_json_may_pass(once: Once, chat_server: ChatServer, body: bytes) -> None:
    chat_server.reply = lambda _: chat_server.say(body=body)
    with pytest.raises(Transient, match="the server's answer is not JSON"):
        once(OpenAIBackend(chat_server.url))


def test_an_error_inside_a_success_is_an_error_of_its_own_kind(once: Once, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(body={"error": {"message": "overloaded"}})
    with pytest.raises(Transient, match=r"answered 500: overloaded"):
        once(OpenAIBackend(chat_server.url))
    chat_server.reply = lambda _: chat_server.say(body={"error": {"message": "too long", "code": 400}})
    with pytest.raises(RequestRefused, match=r"answered 400: too long"):
        once(OpenAIBackend(chat_server.url))
    chat_server.reply = lambda _: chat_server.say(body={"error": {"message": "slow down", "code": 429}})
    with pytest.raises(RateLimited, match="slow down"):
        once(OpenAIBackend(chat_server.url))


@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("invalid_prompt", RequestRefused),
        ("image_content_policy_violation", RequestRefused),
        ("empty_image_file", RequestRefused),
        ("rate_limit_exceeded", RateLimited),
        ("insufficient_quota", PermanentFailure),
        ("server_error", Outage),
        (None, Outage),
    ],
)
def test_a_failed_response_is_an_error_by_its_code(
    once: Once, chat_server: ChatServer, code: str | None, kind: type[Exception], media_type: str
) -> None:
    error = {"code": code, "message": "why not"}
    event = f"event: error\ndata: {json.dumps({'type': 'error', **error})}\n\n".encode()
    body = event if media_type == "text/event-stream" else {"status": "failed", "output": [], "error": error}
    chat_server.reply = lambda _: chat_server.say(body=body, headers={"Content-Type": media_type})
    with pytest.raises(kind, match="why not"):
        once(OpenAIBackend(chat_server.url), params={"api": "responses"})


def test_a_response_that_fails_while_it_is_streamed_may_be_billed(once: Once, chat_server: ChatServer) -> None:
    events = [{"type": "response.output_text.delta", "delta": "Par"}, {"type": "error", "message": "why not"}]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    chat_server.reply = lambda _: chat_server.say(body=body, headers={"Content-Type": "text/event-stream"})
    with pytest.raises(LostAnswer, match="why not"):
        once(OpenAIBackend(chat_server.url), params={"api": "responses"})


def test_a_connection_that_breaks_may_pass(once: Once, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(drop=True)
    with pytest.raises(Transient, match=r"the connection to .* broke"):
        once(OpenAIBackend(chat_server.url))


def test_an_answer_that_ends_too_early_may_pass(once: Once, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(body=b"{}", headers={"Content-Length": "100", "Connection": "close"})
    with pytest.raises(Transient, match="broke"):
        once(OpenAIBackend(chat_server.url))


def test_a_server_that_is_not_there_is_unreachable(once: Once) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(UnreachableServer, match=f"cannot connect to http://127.0.0.1:{port}/v1: "):
        once(OpenAIBackend(f"http://user:secret@127.0.0.1:{port}/v1"))


def test_a_proxy_that_cannot_be_reached_is_named_where_it_was_asked(
    once: Once, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(
        UnreachableServer, match=r"by way of the proxy that http_proxy names; with NO_PROXY=127\.0\.0\.1"
    ):
        once(given("http://127.0.0.1:10/v1"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(UnreachableServer) as caught:
        once(given("http://127.0.0.1:10/v1"))
    assert "proxy" not in str(caught.value)


def test_the_words_of_a_broken_connection_are_one_line_without_a_status_that_nobody_sent() -> None:
    error = ContentLengthError("Not enough data to satisfy content length header")
    assert format_error_message(list_causes(error)[-1]) == "Not enough data to satisfy content length header"
    assert format_error_message(list_causes(OSError("first\n  second"))[-1]) == "first second"


def test_a_server_that_stays_silent_is_given_up(once: Once, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(delay=0.4)
    with pytest.raises(Transient, match=r"gave no answer within 0\.1 s"):
        once(OpenAIBackend(chat_server.url, Access(silence_timeout=0.1)))


def through_gateway(
    server: ChatServer, folder: Path, monkeypatch: Any, work: Callable[[Gateway], Any]
) -> tuple[Any, list[Exception]]:
    monkeypatch.setattr("evalsuite.gateway.upstream.FIRST_WAIT", 0.001)
    told: list[Exception] = []

    async def main() -> Any:
        store = Answers.open(folder / "store.sqlite")
        gateway = Gateway(lambda *_: OpenAIBackend(server.url), store, Limiter(8), on_hopeless=told.append)
        try:
            return await work(gateway)
        finally:
            await gateway.aclose()

    return asyncio.run(main()), told


def test_a_stumbling_server_is_asked_until_it_answers_and_only_that_answer_is_kept(
    chat_server: ChatServer, tmp_path: Path, monkeypatch: Any
) -> None:
    stumbles = iter(
        [
            chat_server.say(status=500),
            chat_server.say(drop=True),
            chat_server.say(status=429, headers={"Retry-After": "0.01"}),
            chat_server.say(body=b"{not json"),
            chat_server.say(status=409),
        ]
    )
    chat_server.reply = lambda _: next(stumbles, chat_server.say("at last"))

    async def work(gateway: Gateway) -> tuple[str, int]:
        answer = await gateway.ask(Request("m", (Message("user", "hello"),)))
        return answer.text, gateway.served["asked"]

    found, told = through_gateway(chat_server, tmp_path, monkeypatch, work)
    assert found == ("at last", 1)
    assert len(chat_server.bodies) == 6
    assert not told


def test_a_wrong_key_is_told_once_for_a_whole_run(chat_server: ChatServer, tmp_path: Path, monkeypatch: Any) -> None:
    chat_server.reply = lambda _: chat_server.say(status=401, body={"error": {"message": "bad key"}})

    async def work(gateway: Gateway) -> list[Any]:
        asks = [gateway.ask(Request("m", (Message("user", str(number)),))) for number in range(30)]
        return await asyncio.gather(*asks, return_exceptions=True)

    found, told = through_gateway(chat_server, tmp_path, monkeypatch, work)
    assert all(isinstance(error, BackendUnavailable) for error in found)
    assert len(told) == 1
    assert len(chat_server.bodies) <= 8


def test_a_key_in_the_address_is_sent_and_is_told_to_nobody(
    once: Once, chat_server: ChatServer, monkeypatch: Any
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret")
    address = f"{chat_server.url}?key=alsosecret"
    words = {"error": {"message": "no key sk-verysecret for /v1?key=alsosecret"}}
    chat_server.reply = lambda _: chat_server.say(status=401, body=words)
    with pytest.raises(BackendUnavailable, match="answered 401: no key") as caught:
        once(given(address))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", [None, "no certificate"], ids=["missing", "wrong"])
def test_certificates_that_cannot_be_read_are_named_and_not_taken_for_a_broken_connection(
    once: Once, tmp_path: Path, monkeypatch: Any, content: str | None
) -> None:
    certificates = tmp_path / "ca.pem"
    if content:
        certificates.write_text(content)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates))
    with pytest.raises(BackendUnavailable, match=r"the certificates of SSL_CERT_FILE=.*ca.pem cannot be read: "):
        once(given("https://127.0.0.1:9/v1"))


def test_certificates_that_lack_a_file_descriptor_are_asked_for_again(once: Once, monkeypatch: Any) -> None:
    def refuse() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("evalsuite.models.openai_client.httpx2.create_ssl_context", refuse)
    with pytest.raises(Transient, match="this process may open no more files"):
        once(given("https://127.0.0.1:9/v1"))
