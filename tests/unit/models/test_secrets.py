"""Keys go where they were given for, and are shown nowhere."""

from __future__ import annotations

import asyncio
import gzip
import json
import traceback
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import RequestRefused, SettingsError
from evalsuite.core.settings import Settings, make_settings
from evalsuite.core.types import Message, Request
from evalsuite.gateway.concealment import HashedSecrets, require_secrets
from evalsuite.models.choice import open_backend
from evalsuite.models.credentials import Access, AddressGrant, Credentials, Secret
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.protocol import LostAnswer, PermanentFailure

if TYPE_CHECKING:
    from tests.conftest import ChatServer
    from tests.unit.models.conftest import Once

KEY = "sk-very-secret-key"


def key_sent(url: str, grants: list[AddressGrant], environ: dict[str, str], model: str = "m") -> str | None:
    key = Credentials(grants, environ=environ).make_access(model, url).key
    return key.reveal() if key else None


def test_the_usual_key_goes_to_openai_and_to_addresses_given_for_this_session_alone() -> None:
    environ = {"OPENAI_API_KEY": KEY}
    url = "http://host/v1"
    assert key_sent("https://api.openai.com/v1", [], environ) == KEY
    assert key_sent(url, [AddressGrant("m", url)], environ) == KEY
    assert key_sent(url, [AddressGrant("m", url, fresh=False)], environ) is None
    assert key_sent(url, [], environ) is None
    assert key_sent("http://api.openai.com/v1", [], environ) is None


def test_a_key_of_its_own_goes_to_its_address_and_nowhere_else() -> None:
    environ = {"OPENAI_API_KEY": "usual-key", "JUDGE_KEY": KEY}
    grants = [AddressGrant("m", "http://model/v1"), AddressGrant("j", "http://judge/v1", "JUDGE_KEY")]
    assert key_sent("http://judge/v1", grants, environ, "j") == KEY
    assert key_sent("http://model/v1", grants, environ, "m") == "usual-key"
    assert key_sent("http://other/v1", grants, environ, "j") is None


def test_a_key_that_is_named_and_not_set_is_an_error() -> None:
    with pytest.raises(SettingsError, match="names JUDGE_KEY, which is not set"):
        key_sent("http://judge/v1", [AddressGrant("j", "http://judge/v1", "JUDGE_KEY")], {}, "j")


def test_a_key_that_was_withheld_is_said_to_be(once: Once, chat_server: ChatServer, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    chat_server.reply = lambda _: chat_server.say(status=401, body={"error": "who are you?"})
    with pytest.raises(Exception, match=r"OPENAI_API_KEY was not sent.*--model-base-url"):
        once(open_backend("m", chat_server.url))
    assert KEY not in str(chat_server.headers)


def test_a_secret_is_stars_wherever_it_is_shown() -> None:
    access = Access(key=Secret(KEY))
    assert KEY not in f"{access} {access!r} {Secret(KEY)} {[Secret(KEY)]}"


@pytest.mark.parametrize("status", [400, 401, 500])
def test_no_frame_of_a_failure_holds_the_key(once: Once, chat_server: ChatServer, status: int) -> None:
    chat_server.reply = lambda _: chat_server.say(status=status, body={"error": f"bad key {KEY}"})
    with pytest.raises(Exception, match="bad key") as caught:
        once(OpenAIBackend(chat_server.url, Access(key=Secret(KEY), trusted=True)))
    frames = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert KEY not in "".join(line for line in frames.format() if "chat_server" not in line)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_echoed_key_is_masked_in_an_answer(once: Once, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(f"your key is {KEY}")
    assert once(OpenAIBackend(chat_server.url, Access(key=Secret(KEY)))).text == "your key is ***"


def test_an_echoed_key_is_masked_in_a_stream_that_spreads_it_over_events_and_behind_escapes(
    once: Once, chat_server: ChatServer
) -> None:
    backend = OpenAIBackend(chat_server.url, Access(key=Secret(KEY)))
    events = [{"choices": [{"index": 0, "delta": {"content": part}}]} for part in (f"a {KEY[:5]}", KEY[5:])]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    headers = {"Content-Type": "text/event-stream"}
    chat_server.reply = lambda _: chat_server.say(body=body.encode(), headers=headers)
    assert once(backend).text == "a ***"
    escaped = json.dumps({"choices": [{"message": {"content": KEY}}]}).replace("sk-", "sk\\u002d")
    chat_server.reply = lambda _: chat_server.say(body=escaped.encode())
    assert once(backend).text == "***"


@pytest.mark.parametrize("status", [200, 400])
def test_an_addresss_echoed_login_and_keys_are_masked(once: Once, chat_server: ChatServer, status: int) -> None:
    def echo(_: object) -> Any:
        words = f"{chat_server.headers[-1]['Authorization']} {chat_server.paths[-1]} and url+key/1"
        return chat_server.say(words) if status == 200 else chat_server.say(status=400, body={"error": words})

    chat_server.reply = echo
    address = chat_server.url.replace("://", "://somebody:pass-word@") + "?api-key=url%2Bkey/1&tenant=visible-one"
    backend = OpenAIBackend(address)
    try:
        words = once(backend).text
    except RequestRefused as error:
        words = str(error)
    assert words.endswith("Basic *** /v1/chat/completions?api-key=***&tenant=visible-one and ***")


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(
    ("login", "query", "written"),
    [
        ("user:pa%22ss%5Cword", "", r"pa\"ss\\word"),
        ("user:hunter2secret", "", "hunter2secret"),
        ("", "?token=ab/cd%2fgh", r"ab\/cd\u002fgh"),
        ("", "?token=ab/cd%2fgh", "ab/cd%2fgh"),
    ],
)
def test_an_addresss_secrets_are_masked_in_each_form_that_a_server_may_write(
    once: Once, chat_server: ChatServer, status: int, login: str, query: str, written: str
) -> None:
    text = '{"choices": [{"message": {"content": "a WORD"}}], "error": null}'
    text = text if status == 200 else '{"error": {"message": "a WORD"}}'
    chat_server.reply = lambda _: chat_server.say(status=status, body=text.replace("WORD", written).encode())
    backend = OpenAIBackend(chat_server.url.replace("://", f"://{login}@" if login else "://") + query)
    try:
        words = once(backend).text
    except RequestRefused as error:
        words = str(error)
    assert words.endswith("a ***")


def test_a_redirect_is_not_followed(once: Once, chat_server: ChatServer) -> None:
    chat_server.reply = lambda _: chat_server.say(status=307, headers={"Location": chat_server.url + "/x"}, body={})
    with pytest.raises(PermanentFailure, match="redirects are not followed"):
        once(OpenAIBackend(chat_server.url))
    assert len(chat_server.bodies) == 1


@pytest.mark.parametrize("compressed", [False, True])
def test_an_answer_above_the_size_is_refused_while_it_arrives(
    once: Once, chat_server: ChatServer, *, compressed: bool
) -> None:
    body = json.dumps({"choices": [{"message": {"content": "x" * 5_000_000}}]}).encode()
    headers = {"Content-Encoding": "gzip"} if compressed else {}
    chat_server.reply = lambda _: chat_server.say(body=gzip.compress(body) if compressed else body, headers=headers)
    with pytest.raises(RequestRefused, match="larger than 1 MiB"):
        once(OpenAIBackend(chat_server.url, Access(max_answer=2**20)))
    assert len(once(OpenAIBackend(chat_server.url)).text) == 5_000_000


def test_a_truncated_answer_in_deflate_does_not_wait_for_its_end() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        content = zlib.compress(b"{}" * 100)[:-6]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: %d\r\n\r\n" % len(content))
        await asyncio.sleep(0.1)  # The client reads the headers before the content arrives.
        writer.write(content)
        writer.close()

    async def ask() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            backend = OpenAIBackend(f"http://{host}:{port}/v1", Access(silence_timeout=1.0))
            with pytest.raises(LostAnswer, match="not JSON"):
                await asyncio.wait_for(backend.complete(Request("m", (Message("user", "hi"),))), 10.0)
            await backend.aclose()

    asyncio.run(ask())


def test_secret_parameters_are_hashed_where_they_are_kept_and_whole_where_they_are_sent() -> None:
    vault = HashedSecrets()
    params = {
        "api_key": KEY,
        "extra_headers": {"X-Tenant": "acme"},
        "max_tokens": 5,
        "tokenizer": "cl100k",
        "extra_body": {"auth": {"token": "t0ken"}},
    }
    request = Request("m", (Message("user", "hi"),), params)
    concealed = vault.conceal_request(request)
    assert not any(secret in repr(concealed.params) for secret in (KEY, "acme", "t0ken"))
    assert (concealed.params["max_tokens"], concealed.params["tokenizer"]) == (5, "cl100k")
    assert vault.conceal_request(concealed) == concealed
    assert vault.reveal_request(concealed) == request


def test_a_resumed_run_asks_again_for_what_its_folder_does_not_hold() -> None:
    settings = Settings(model="m", model_param=(f"api_key={KEY}", "temperature=0.5"))
    public = HashedSecrets().conceal_settings(settings)
    assert KEY not in repr(public.plain())
    assert public.model_param[1] == "temperature=0.5"
    with pytest.raises(SettingsError, match=r"give --model-param api_key=\.\.\. again"):
        require_secrets(public, "last")
    login = HashedSecrets().conceal_settings(Settings(model="m", model_base_url="http://me:pw@host/v1"))
    assert login.model_base_url == "http://***@host/v1"
    with pytest.raises(SettingsError, match="give --model-base-url again"):
        require_secrets(login, "last")
    require_secrets(replace(public, model_param=()), "last")


def test_the_responses_api_is_asked_and_read(once: Once, chat_server: ChatServer) -> None:
    answer = {
        "status": "completed",
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "42"}]},
        ],
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }
    chat_server.reply = lambda _: chat_server.say(body=answer)

    async def ask() -> Any:
        backend = OpenAIBackend(chat_server.url)
        request = Request("m", (Message("user", "hi"),), {"api": "responses", "max_tokens": 9})
        completion = await backend.complete(request)
        await backend.aclose()
        return completion

    completion = asyncio.run(ask())
    assert (completion.text, completion.reasoning, completion.usage.prompt_tokens) == ("42", "hm", 7)
    assert chat_server.bodies == [
        {"model": "m", "input": [{"role": "user", "content": "hi"}], "store": False, "max_output_tokens": 9}
    ]
    del once


def test_a_stream_is_put_together(once: Once, chat_server: ChatServer) -> None:
    events = [
        {"choices": [{"index": 0, "delta": {"content": "Par"}}]},
        {"choices": [{"index": 0, "delta": {"content": "is\u2028"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    ]
    body = "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events)
    chat_server.reply = lambda _: chat_server.say(
        body=(body + "data: [DONE]\n\n").encode(), headers={"Content-Type": "text/event-stream"}
    )
    completion = once(OpenAIBackend(chat_server.url), params={"stream": True})
    assert (completion.text, completion.usage.completion_tokens) == ("Paris\u2028", 2)
    assert chat_server.bodies[0]["stream_options"] == {"include_usage": True}
    chat_server.reply = lambda _: chat_server.say(body=body.encode(), headers={"Content-Type": "text/event-stream"})
    with pytest.raises(Exception, match="cut off before its end"):
        once(OpenAIBackend(chat_server.url), params={"stream": True})


def test_a_requests_repr_shows_no_login_no_query_and_no_secret_parameter() -> None:
    params = {
        "api_key": KEY,
        "temperature": 0.5,
        "extra_headers": {"x-tenant": KEY},
        "extra_query": {"code": KEY},
        "extra_body": {"nested": {"token": KEY, "seed": 7}},
    }
    address = f"https://user:{KEY}@host:8000/v1?anything={KEY}"
    shown = repr(Request("m", (Message("user", "hi"),), params=params, base_url=address))
    assert KEY not in shown
    for kept in ("'m'", "'hi'", "0.5", "'seed': 7", "x-tenant", "https://host:8000/v1?***"):
        assert kept in shown


def test_the_reprs_of_settings_and_grants_show_no_secret() -> None:
    values = {"model": "m", "model_base_url": f"http://me:{KEY}@host/v1", "model_param": [f"api_key={KEY}"]}
    settings = make_settings(values)
    assert repr(settings) == "Settings(model='m', model_base_url='http://host/v1', model_param=('api_key',))"
    assert KEY not in repr(AddressGrant("m", settings.model_base_url))
