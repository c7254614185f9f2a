"""Calls OpenAI's API through the openai package. Import this module late, because the package takes a second to load.

The package builds the address and the headers of a call, including credentials. Calls with equal headers reuse one
address and one set of headers per path, because building them takes twice as long as sending the call.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import httpx2
from openai import AsyncAzureOpenAI, AsyncOpenAI, Omit

from evalsuite.core.errors import BackendUnavailable
from evalsuite.models.credentials import AZURE_TOKEN, Access, ServerAddress, encode_login
from evalsuite.models.transport import ACCEPTED, AiohttpTransport, PreparedCall, ServerAnswer

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential

_REHEARSED: ContextVar[list[httpx2.Request] | None] = ContextVar("_REHEARSED", default=None)
"""Receives the requests of `record_prepared_call`, which are not sent to the server."""


class DirectClient(httpx2.AsyncClient):
    """Sends requests directly to its transport, without cookies, redirects, authentication flows or event hooks."""

    def __init__(self, transport: AiohttpTransport, timeout: httpx2.Timeout) -> None:
        super().__init__(transport=transport, timeout=timeout, trust_env=False)
        self._direct_transport = transport

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Send a request, and read the whole answer."""
        rehearsed = _REHEARSED.get()
        if rehearsed is not None:
            rehearsed.append(request)
            return httpx2.Response(204, request=request)
        return await self._direct_transport.handle_async_request(request)


async def record_prepared_call(call: Callable[[], Awaitable[object]]) -> PreparedCall:
    """Run `call` without sending anything; return the address and headers that the call would have sent."""
    requests: list[httpx2.Request] = []
    token = _REHEARSED.set(requests)
    try:
        await call()
    finally:
        _REHEARSED.reset(token)
    return PreparedCall.from_request(requests[0])


NO_KEY = "none"  # Placeholder for a missing key, because the package requires a key; the placeholder is never sent.
AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"


def open_client(address: ServerAddress, access: Access, transport: AiohttpTransport) -> AsyncOpenAI:
    """Open a client without retries of its own, because the gateway retries.

    The client sends the organisation, the project and the headers in `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID` and
    `OPENAI_CUSTOM_HEADERS` only if the user gave the address for this session.
    """
    timeout = httpx2.Timeout(access.silence_timeout, connect=access.connect_timeout, pool=None)
    shared: dict[str, Any] = {
        "max_retries": 0,
        "timeout": timeout,
        "http_client": DirectClient(transport, timeout),
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
    return _EntraClient(_make_default_azure_credential(address), **placed)


def _make_default_azure_credential(address: ServerAddress) -> AsyncTokenCredential:
    try:
        from azure.identity.aio import DefaultAzureCredential
    except ImportError:
        raise BackendUnavailable(
            f"{address.shown} needs a key or a token: set AZURE_OPENAI_API_KEY or {AZURE_TOKEN}, or install "
            "evalsuite[azure], which finds the token of this machine"
        ) from None
    return DefaultAzureCredential()


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
        self._transport = AiohttpTransport(access, tls=address.root.startswith("https://"))
        self.headers = make_headers(address, access)
        self.client: AsyncOpenAI = open_client(address, access, self._transport)
        self._prepared: dict[str, PreparedCall] = {}

    async def post_content(
        self, path: str, content: bytes, headers: Mapping[str, Any], query: Mapping[str, Any]
    ) -> ServerAnswer:
        # Never reuse a prepared call for Azure, because the address depends on the content, and Entra ID tokens expire.
        if headers or query or self._address.is_azure:
            return await self._post_with_openai_package(path, content, headers, query)
        if path not in self._prepared:
            self._prepared[path] = await record_prepared_call(
                lambda: self._post_with_openai_package(path, b"{}", {}, {})
            )
        return await self._transport.send_call(self._prepared[path], content)

    async def _post_with_openai_package(
        self, path: str, content: bytes, headers: Mapping[str, Any], query: Mapping[str, Any]
    ) -> ServerAnswer:
        azure = self._address.is_azure
        # Give the Azure client the body as an object, because this client reads the deployment's name from the body.
        sent: dict[str, Any] = {"body": json.loads(content)} if azure else {"content": content}
        # The Azure client builds the deployment's address from a path. For other clients, building one wastes time.
        place = path if azure else f"{self._address.root}{path}"
        options: Any = {"headers": {**self.headers, **headers}, "params": query}
        response = await self.client.post(place, cast_to=httpx2.Response, options=options, **sent)
        return ServerAnswer(response.status_code, response.headers, response.headers.raw, response.content)
