"""The client that goes straight to aiohttp sends what httpx2's own would."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import TYPE_CHECKING, Any

import httpx2
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.models.credentials import Access
from evalsuite.models.openai_client import DirectClient, RehearsalClient, _find_decompressor, prepare_call
from evalsuite.models.protocol import WithheldAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

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


GZIP: Callable[[bytes], bytes] = gzip.compress
COMPRESS = {"gzip": GZIP, "x-gzip": GZIP, "deflate": zlib.compress}


def decompress(encoding: str, content: bytes, size: int) -> bytes:
    unpack = _find_decompressor(encoding)
    chunks = (content[start : start + size] for start in range(0, len(content), size))
    return b"".join(piece for chunk in chunks for piece in unpack(chunk))


@given(content=st.binary(max_size=3000), encoding=st.sampled_from(sorted(COMPRESS)), size=st.integers(1, 4000))
def test_a_compressed_answer_is_read_in_chunks_of_any_size_whatever_follows_it(
    content: bytes, encoding: str, size: int
) -> None:
    compressed = COMPRESS[encoding](content)
    for behind in (b"", b"\0" * 9, b"garbage"):
        assert decompress(encoding, compressed + behind, size) == content


@given(encoding=st.sampled_from(sorted(COMPRESS)), at=st.integers(0, 200), byte=st.integers(0, 255))
def test_a_damaged_answer_is_withheld_or_read_and_nothing_else(encoding: str, at: int, byte: int) -> None:
    damaged = bytearray(COMPRESS[encoding](bytes(range(256))))
    damaged[at % len(damaged)] = byte
    try:
        decompress(encoding, bytes(damaged), 100)
    except WithheldAnswer as error:
        assert "cannot be decompressed" in str(error)  # noqa: PT017 - most bytes do no harm that can be seen
