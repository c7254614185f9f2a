"""The client that goes straight to aiohttp sends what httpx2's own would."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from evalsuite.models.credentials import Access
from evalsuite.models.openai_client import DirectClient, RehearsalClient, prepare_call

TIMEOUT = httpx2.Timeout(7.0, connect=3.0, pool=None)
POST: dict[str, Any] = {
    "method": "POST",
    "url": "https://a.example/v1/chat/completions",
    "headers": [("Authorization", "Bearer k"), ("X-Own", "1")],
    "timeout": TIMEOUT,
}


def built(**parts: Any) -> tuple[httpx2.Request, httpx2.Request]:
    """A request as each of the two clients builds it."""
    straight = DirectClient(Access(), tls=False)
    return straight.build_request(**POST, **parts), httpx2.AsyncClient().build_request(**POST, **parts)


def test_content_is_sent_as_httpx2_would_send_it() -> None:
    ours, theirs = built(content=b'{"a": 1}', params=None, files=None)
    assert (ours.method, ours.url, ours.extensions) == (theirs.method, theirs.url, theirs.extensions)
    assert asyncio.run(ours.aread()) == theirs.content
    assert {name: theirs.headers[name] for name in ours.headers} == dict(ours.headers)
    # These the transport adds; the others would say what client this is, which the package does in its own words.
    assert set(theirs.headers) - set(ours.headers) <= {
        *("host", "content-length", "accept", "accept-encoding", "connection", "user-agent")
    }


def test_a_form_with_a_file_is_built_the_usual_way() -> None:
    ours, theirs = built(files={"file": b"{}"}, data={"purpose": "batch"})
    for request in (ours, theirs):
        assert b'name="purpose"' in asyncio.run(request.aread())
        assert b'name="file"' in request.content


def test_parameters_of_the_address_are_kept() -> None:
    ours, theirs = built(content=b"{}", params={"api-version": "1"})
    assert ours.url == theirs.url
    assert ours.url.query == b"api-version=1"


def test_a_rehearsal_sends_nothing_and_shows_what_would_bear_the_content() -> None:
    # A client that sent it would wait for a server that there is not.
    rehearsing = RehearsalClient(Access(), tls=False)
    request = rehearsing.build_request(**POST, content=b"{}", params={"api-version": "1"})
    response = asyncio.run(rehearsing.send(request))
    assert response.content == b""
    prepared = prepare_call(response.request)
    assert (prepared["method"], str(prepared["url"])) == ("POST", f"{POST['url']}?api-version=1")
    assert prepared["headers"]["Authorization"] == "Bearer k"
    assert "Content-Length" not in prepared["headers"]
    assert (prepared["timeout"].sock_connect, prepared["timeout"].sock_read) == (3.0, 7.0)
