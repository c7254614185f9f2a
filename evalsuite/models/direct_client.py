"""httpx2's client without the steps that no call of ours needs; they cost more than sending the request does."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import httpx2

from evalsuite.models.transport import PreparedCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from evalsuite.models.transport import AiohttpTransport

_REHEARSED: ContextVar[list[httpx2.Request] | None] = ContextVar("_REHEARSED", default=None)
"""Where the requests of a rehearsal go in place of the server."""


class DirectClient(httpx2.AsyncClient):
    """Goes straight to its transport: no cookies, redirects, authentication flows or event hooks.

    Whatever is not plain content for an address, such as a file in a form, is built the usual way.

    Args:
        transport: sends the requests.
        timeout: of requests that name none.
    """

    def __init__(self, transport: AiohttpTransport, timeout: httpx2.Timeout) -> None:
        super().__init__(transport=transport, timeout=timeout, trust_env=False, follow_redirects=False)
        self._straight = transport
        # Parsing an address takes a tenth of a call, and there are few of them.
        self._parsed: dict[str, httpx2.URL] = {}

    def build_request(self, method: str, url: httpx2.URL | str, **parts: Any) -> httpx2.Request:
        """A request with the given headers alone; the transport adds the host and the length of the content."""
        content, timeout = parts.get("content"), parts.get("timeout")
        plain = all(parts.get(name) is None for name in parts.keys() - {"content", "timeout", "headers"})
        if not (plain and isinstance(content, bytes) and isinstance(timeout, httpx2.Timeout)):
            return super().build_request(method, url, **parts)
        address = str(url)
        if address not in self._parsed:
            self._parsed[address] = httpx2.URL(address)
        return httpx2.Request(
            method,
            self._parsed[address],
            headers=parts["headers"],
            # Given as a stream, it is not looked at any further.
            stream=httpx2.ByteStream(content),
            extensions={"timeout": timeout.as_dict()},
        )

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Sends a request; the answer has been read."""
        rehearsed = _REHEARSED.get()
        if rehearsed is not None:
            rehearsed.append(request)
            return httpx2.Response(204, request=request)
        return await self._straight.handle_async_request(request)


async def rehearse(call: Callable[[], Awaitable[object]]) -> PreparedCall:
    """What a call by way of a `DirectClient` sends besides its content; nothing is sent.

    Args:
        call: makes one call, and copes with an empty answer.
    """
    requests: list[httpx2.Request] = []
    token = _REHEARSED.set(requests)
    try:
        await call()
    finally:
        _REHEARSED.reset(token)
    return PreparedCall.of(requests[0])
