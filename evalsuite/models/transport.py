"""HTTP for the openai package: aiohttp, TCP keep-alive, and a limit on the size of answers."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

import aiohttp
import httpx2
import openai
from multidict import CIMultiDict
from yarl import URL

from evalsuite.core.errors import BackendUnavailable
from evalsuite.models.protocol import WithheldAnswer

if TYPE_CHECKING:
    from evalsuite.models.credentials import Access

KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 30, "TCP_KEEPCNT": 4}
"""Probes of idle connections, which routers would drop: seconds before the first, between two, and their number."""

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment variables that name the trusted certificates; the first that is set counts."""

ACCEPTED = "gzip, deflate"
DECOMPRESSED_AT_ONCE = 2**20
COMPRESSION_HEADERS = {b"content-encoding", b"content-length", b"transfer-encoding"}


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A request without content, which can be sent repeatedly with different contents."""

    method: str  # The HTTP method.
    url: URL  # The whole address.
    headers: CIMultiDict[str]  # The request's headers without `Content-Length`, which aiohttp adds.
    timeout: aiohttp.ClientTimeout  # The time-outs of the call.

    @classmethod
    def from_request(cls, request: httpx2.Request) -> PreparedCall:
        times = request.extensions.get("timeout", {})
        return cls(
            request.method,
            URL(str(request.url), encoded=True),
            # Decode the raw headers as Latin-1, because httpx2 would detect the headers' encoding for each request.
            CIMultiDict(
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in request.headers.raw
                if name.lower() != b"content-length"
            ),
            aiohttp.ClientTimeout(total=None, sock_connect=times.get("connect"), sock_read=times.get("read")),
        )


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """A server's complete response, decompressed."""

    status: int  # The HTTP status.
    headers: Mapping[str, str]  # Headers by name; upper and lower case are the same.
    raw_headers: Sequence[tuple[bytes, bytes]]  # The response's headers as received.
    content: bytes  # The body.


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Sends requests over aiohttp, in half the time of httpx's own connections."""

    def __init__(self, access: Access, *, tls: bool) -> None:
        self._max_answer, self._tls = access.max_answer, tls
        # Enable proxies only if a proxy is configured, because aiohttp looks up proxies for every call.
        self._proxies = access.proxies and bool(getproxies())
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and read the whole answer."""
        answer = await self.send_call(PreparedCall.from_request(request), await request.aread())
        headers = [pair for pair in answer.raw_headers if pair[0].lower() not in COMPRESSION_HEADERS]
        return httpx2.Response(answer.status, headers=headers, content=answer.content, request=request)

    async def send_call(self, prepared: PreparedCall, content: bytes) -> ServerAnswer:
        async with self._open_session().request(
            prepared.method,
            prepared.url,
            headers=prepared.headers,
            data=content,
            allow_redirects=False,
            timeout=prepared.timeout,
        ) as response:
            body = await self._read_body(response)
        return ServerAnswer(response.status, response.headers, response.raw_headers, body)

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            secure = self._tls or self._proxies
            try:
                context = httpx2.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            except OSError as error:
                if error.errno in NO_DESCRIPTOR:
                    raise
                named = (f"{name}={os.environ[name]}" for name in CERTIFICATES if os.environ.get(name))
                whose = next(named, "this machine")
                raise BackendUnavailable(f"the certificates of {whose} cannot be read: {error}") from error
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ssl=context, socket_factory=_open_socket),
                trust_env=self._proxies,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    async def _read_body(self, response: aiohttp.ClientResponse) -> bytes:
        unpack = _find_decompressor(response.headers.get("Content-Encoding", "identity").lower())
        body = bytearray()
        async for chunk in response.content.iter_any():
            for piece in unpack(chunk) if unpack else (chunk,):
                body += piece
                if len(body) > self._max_answer:
                    raise WithheldAnswer(
                        f"the answer is larger than {self._max_answer / 2**20:g} MiB and was not read to its end "
                        "(evalsuite_max_answer_mb allows more)"
                    )
        return bytes(body)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()


def _find_decompressor(encoding: str) -> Any:
    """Return a function that decompresses chunks in pieces of bounded size; None if the answer is not compressed."""
    if encoding in {"identity", ""}:
        return None
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise WithheldAnswer(f"the answer is compressed as {encoding!r:.50}, which was not asked for")
    # Detect gzip or zlib by the header of the compressed data (`| 32`).
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def decompress_chunk(chunk: bytes) -> Any:
        while chunk:
            yield inflate.decompress(chunk, DECOMPRESSED_AT_ONCE)
            chunk = inflate.unconsumed_tail

    return decompress_chunk


def _open_socket(address: Any) -> socket.socket:
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    made.setblocking(False)
    return made


NO_DESCRIPTOR = {errno.EMFILE, errno.ENFILE}
UNREACHABLE = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ssl.SSLCertVerificationError)
"""Errors of a connection that could not be established, so that nothing was sent."""

NETWORK = (openai.APIConnectionError, httpx2.TransportError, aiohttp.ClientError, OSError)
"""Errors of the connection, and not of the request itself."""


def list_causes(error: BaseException) -> list[BaseException]:
    """List an exception and its chain of causes; the innermost cause is last."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes


def format_error_message(error: BaseException) -> str:
    """Return an exception's message as one line; drop the HTTP status that aiohttp adds even if no response came."""
    message = getattr(error, "strerror", None) or getattr(error, "message", None) or str(error)
    return " ".join(str(message).split()) or type(error).__name__
