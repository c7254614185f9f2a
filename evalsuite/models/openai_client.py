"""Calls OpenAI's API through the openai package. Import this module late, because the package takes a second to load.

The package builds the address and the headers of a call, including credentials. Calls with equal headers reuse one
address and one set of headers per path, because building them takes twice as long as sending the call. Calls are
sent over aiohttp, with TCP keep-alive and a limit on the size of answers.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import ssl
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl
from urllib.request import getproxies

import aiohttp
import httpx2
from multidict import CIMultiDict
from openai import APIConnectionError, AsyncAzureOpenAI, AsyncOpenAI, Omit
from yarl import URL

from evalsuite.core.errors import BackendUnavailable
from evalsuite.models.credentials import AZURE_TOKEN, Access, ServerAddress, encode_login
from evalsuite.models.protocol import WithheldAnswer

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential

KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 30, "TCP_KEEPCNT": 4}
"""Probes of idle connections, which routers would drop: seconds before the first, between two, and their number."""

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment variables that name the trusted certificates; the first that is set counts."""

ACCEPTED = "gzip, deflate"
DECOMPRESSED_AT_ONCE = 2**20
COMPRESSION_HEADERS = {b"content-encoding", b"content-length", b"transfer-encoding"}


def prepare_call(request: httpx2.Request) -> dict[str, Any]:
    """Return the arguments of aiohttp's `request` with which a call can be sent repeatedly, with different contents."""
    times = request.extensions.get("timeout", {})
    return {
        "method": request.method,
        "url": URL(str(request.url), encoded=True),
        # Decode the raw headers as Latin-1, because httpx2 would detect the headers' encoding for each request. aiohttp
        # adds `Content-Length`.
        "headers": CIMultiDict(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in request.headers.raw
            if name.lower() != b"content-length"
        ),
        "timeout": aiohttp.ClientTimeout(total=None, sock_connect=times.get("connect"), sock_read=times.get("read")),
    }


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """A server's complete response, decompressed."""

    status: int  # The HTTP status.
    headers: Mapping[str, str]  # Headers by name; upper and lower case are the same.
    raw_headers: Sequence[tuple[bytes, bytes]]  # The response's headers as received.
    content: bytes  # The body.


class DirectClient(httpx2.AsyncClient):
    """Sends requests over aiohttp, in half the time of httpx's own connections.

    Cookies, redirects, authentication flows and event hooks of httpx are not used.
    """

    def __init__(self, access: Access, *, tls: bool) -> None:
        timeout = httpx2.Timeout(access.silence_timeout, connect=access.connect_timeout, pool=None)
        # Pass a transport, which is never used, because httpx's own would load certificates.
        super().__init__(transport=httpx2.AsyncBaseTransport(), timeout=timeout, trust_env=False)
        self._max_answer, self._tls = access.max_answer, tls
        # Enable proxies only if a proxy is configured, because aiohttp looks up proxies for every call.
        self._proxies = access.proxies and bool(getproxies())
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Send a request, and read the whole answer."""
        answer = await self.send_call(prepare_call(request), await request.aread())
        headers = [pair for pair in answer.raw_headers if pair[0].lower() not in COMPRESSION_HEADERS]
        return httpx2.Response(answer.status, headers=headers, content=answer.content, request=request)

    async def send_call(self, prepared: Mapping[str, Any], content: bytes) -> ServerAnswer:
        async with self._open_session().request(**prepared, data=content, allow_redirects=False) as response:
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
                # aiohttp never ends a truncated answer in deflate, and loses an answer that has bytes after its end.
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
        await super().aclose()


class RehearsalClient(DirectClient):
    """Sends nothing; its response holds the request that a `DirectClient` would send."""

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        return httpx2.Response(204, request=request)


def _find_decompressor(encoding: str) -> Any:
    """Return a function that decompresses chunks in pieces of bounded size; None if the answer is not compressed."""
    if encoding in {"identity", ""}:
        return None
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise WithheldAnswer(f"the answer is compressed as {encoding!r:.50}, which was not asked for")
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)  # `| 32`: detect gzip or zlib by the header.

    def decompress_chunk(chunk: bytes) -> Any:
        while chunk:
            try:
                yield inflate.decompress(chunk, DECOMPRESSED_AT_ONCE)
            except zlib.error as error:
                raise WithheldAnswer(f"the answer cannot be decompressed: {error}") from error
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

NETWORK = (APIConnectionError, httpx2.TransportError, aiohttp.ClientError, OSError)
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


NO_KEY = "none"  # Placeholder for a missing key, because the package requires a key; the placeholder is never sent.
AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"


def open_client(address: ServerAddress, access: Access, http_client: DirectClient) -> AsyncOpenAI:
    """Open a client without retries of its own, because the gateway retries.

    The client sends the organisation, the project and the headers in `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID` and
    `OPENAI_CUSTOM_HEADERS` only if the user gave the address for this session.
    """
    shared: dict[str, Any] = {
        "max_retries": 0,
        "timeout": http_client.timeout,
        "http_client": http_client,
        "admin_api_key": "",
        "default_query": dict(parse_qsl(address.query.reveal(), keep_blank_values=True)),
    }
    if address.is_azure:
        return _open_azure_client(address, access, shared)
    client = AsyncOpenAI(api_key=access.key.reveal() if access.key else NO_KEY, base_url=address.root, **shared)
    if not access.trusted:
        client.organization = client.project = None
    return client


def make_headers(address: ServerAddress, access: Access) -> dict[str, Any]:
    """Return headers that replace the client's own, such as a login in place of a key; `Omit()` removes a header."""
    headers: dict[str, Any] = {
        "Content-Type": "application/json",
        "Accept-Encoding": ACCEPTED,
        # Leave out the package's headers about retries and time-outs, because building them takes time.
        "x-stainless-retry-count": Omit(),
        "x-stainless-read-timeout": Omit(),
    }
    if not access.key and not address.is_azure:
        headers["Authorization"] = Omit()
    if not access.trusted:
        # Omit the headers in `OPENAI_CUSTOM_HEADERS`: the package would send them, although they may contain secrets.
        lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
        headers |= {line.partition(":")[0].strip(): Omit() for line in lines if ":" in line}
    if address.login:
        headers["Authorization"] = f"Basic {encode_login(address.login)}"
    return headers


def _open_azure_client(address: ServerAddress, access: Access, shared_options: dict[str, Any]) -> AsyncOpenAI:
    """Open a client for Azure's paths, with a key or an Entra ID token, and with the API version as a parameter."""
    query = shared_options.pop("default_query")
    version = query.pop("api-version", None) or os.environ.get("OPENAI_API_VERSION")
    if not version:
        raise BackendUnavailable(
            f"{address.shown} needs a version of its API: set OPENAI_API_VERSION, or write "
            "?api-version=2024-10-21 behind the address"
        )
    root = address.root if "/openai" in address.root else f"{address.root}/openai"
    placed: dict[str, Any] = {"base_url": root, "api_version": version, "default_query": query, **shared_options}
    if access.key:
        placed["azure_ad_token" if access.key_name == AZURE_TOKEN else "api_key"] = access.key.reveal()
        return AsyncAzureOpenAI(**placed)
    if not access.trusted:
        raise BackendUnavailable(f"{address.shown} needs a key: {access.advice}")
    try:
        from azure.identity.aio import DefaultAzureCredential
    except ImportError:
        raise BackendUnavailable(
            f"{address.shown} needs a key or a token: set AZURE_OPENAI_API_KEY or {AZURE_TOKEN}, or install "
            "evalsuite[azure], which finds the token of this machine"
        ) from None
    return _EntraClient(DefaultAzureCredential(), **placed)


class _EntraClient(AsyncAzureOpenAI):
    """An Azure client that uses Entra ID tokens; closing the client also closes the credential."""

    def __init__(self, credential: AsyncTokenCredential, **placed: Any) -> None:
        from azure.identity.aio import get_bearer_token_provider

        super().__init__(azure_ad_token_provider=get_bearer_token_provider(credential, AZURE_SCOPE), **placed)
        self._credential = credential

    async def close(self) -> None:
        await super().close()
        await self._credential.close()


class OpenAIClient:
    """A client for one address; most calls bypass the `openai` package's own client.

    Attributes:
        client: the `openai` package's client.
        headers: the headers that every call must send in addition to the client's own headers.
    """

    def __init__(self, address: ServerAddress, access: Access) -> None:
        self._address = address
        self._http_client = DirectClient(access, tls=address.root.startswith("https://"))
        self.headers = make_headers(address, access)
        self.client: AsyncOpenAI = open_client(address, access, self._http_client)
        if not address.is_azure:  # Azure's calls are never rehearsed, and a second client would open a credential.
            self._rehearsal_client = open_client(address, access, RehearsalClient(access, tls=False))
        self._prepared: dict[str, Mapping[str, Any]] = {}

    async def post_content(
        self, path: str, content: bytes, headers: Mapping[str, Any], query: Mapping[str, Any]
    ) -> ServerAnswer:
        # Never reuse a prepared call for Azure, because the address depends on the content, and Entra ID tokens expire.
        if headers or query or self._address.is_azure:
            response = await self._post_with_openai_package(self.client, path, content, headers, query)
            return ServerAnswer(response.status_code, response.headers, response.headers.raw, response.content)
        if path not in self._prepared:
            rehearsed = await self._post_with_openai_package(self._rehearsal_client, path, b"{}", {}, {})
            self._prepared[path] = prepare_call(rehearsed.request)
        return await self._http_client.send_call(self._prepared[path], content)

    async def _post_with_openai_package(
        self, client: AsyncOpenAI, path: str, content: bytes, headers: Mapping[str, Any], query: Mapping[str, Any]
    ) -> httpx2.Response:
        azure = self._address.is_azure
        # Give the Azure client the body as an object, because this client reads the deployment's name from the body.
        sent: dict[str, Any] = {"body": json.loads(content)} if azure else {"content": content}
        # Give only the Azure client a path, because it builds the deployment's address from the path. Other clients get
        # the complete address, because building it takes time.
        place = path if azure else f"{self._address.root}{path}"
        options: Any = {"headers": {**self.headers, **headers}, "params": query}
        response: httpx2.Response = await client.post(place, cast_to=httpx2.Response, options=options, **sent)
        return response
