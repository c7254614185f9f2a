"""Redirects the calls of an application's own clients, such as `OpenAI()`, to the case's model."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SolverError
from evalsuite.gateway.handle import ROUTE
from evalsuite.gateway.loop import is_current_loop

if TYPE_CHECKING:
    from evalsuite.applications.endpoint import Endpoint

HOSTS = frozenset({"api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"})
KEYS = ("authorization", "x-api-key", "x-goog-api-key")
LIBRARIES = ("httpx", "httpx2")  # HTTP libraries that providers' clients use; Gemini's may use aiohttp instead.


@dataclass(slots=True)
class Route:
    """The destination of model calls by the clients of one case."""

    endpoint: Endpoint | None  # The endpoint to which calls are redirected; None means that calls are only counted.
    loop: asyncio.AbstractEventLoop  # The event loop that answers the calls.
    past: int = 0  # Number of calls that were sent to the provider instead of the case's model.


_patching = threading.Lock()


@contextmanager
def route_clients(endpoint: Endpoint | None) -> Iterator[Route]:
    """Redirect the model calls of clients in this context and its threads; without an endpoint, only count them."""
    with _patching:
        for name in LIBRARIES:
            if name in sys.modules or (endpoint is not None and find_spec(name)):
                _patch_transports(import_module(name))
        if "aiohttp" in sys.modules:
            _patch_aiohttp(sys.modules["aiohttp"])
    route = Route(endpoint, asyncio.get_running_loop())
    token = ROUTE.set(route)
    try:
        yield route
    finally:
        ROUTE.reset(token)


def _patch_transports(library: Any) -> None:
    """Wrap a library's transports unless they are wrapped already; outside of a case, the wrapper changes nothing."""
    if library.HTTPTransport.handle_request.__module__ == __name__:
        return
    send, send_async = library.HTTPTransport.handle_request, library.AsyncHTTPTransport.handle_async_request

    def handle_request(self: Any, request: Any) -> Any:
        if _redirect_request(library, request) and is_current_loop(ROUTE.get().loop):
            raise SolverError(
                "a client that blocks was used in an async function, where it would block the event loop for ever: use "
                "AsyncOpenAI or AsyncAnthropic, or make the function a plain one"
            )
        return send(self, request)

    async def handle_async_request(self: Any, request: Any) -> Any:
        _redirect_request(library, request)
        return await send_async(self, request)

    library.HTTPTransport.handle_request = handle_request
    library.AsyncHTTPTransport.handle_async_request = handle_async_request


def _redirect_request(library: Any, request: Any) -> bool:
    """Redirect a model request to the case's endpoint, without the user's key; return False for other requests."""
    address = _find_redirect_address(request.url.host, request.url.raw_path.decode("ascii"))
    if address is None:
        return False
    request.url = library.URL(address)
    request.headers["Host"] = request.url.netloc.decode("ascii")
    for name in KEYS:
        if name in request.headers:
            request.headers[name] = "hidden"
    return True


def _find_redirect_address(host: str | None, path: str) -> str | None:
    """Return the address to which a request is redirected, or None; count model requests that are not redirected."""
    route: Route | None = ROUTE.get()
    if route is None or host not in HOSTS:
        return None
    if route.endpoint is None:
        route.past += 1
        return None
    return route.endpoint.base_url.removesuffix("/v1") + path


def _patch_aiohttp(library: Any) -> None:
    """Wrap aiohttp's request method unless it is wrapped already; `_patch_transports` does the same for httpx."""
    send = library.ClientSession._request  # noqa: SLF001 - aiohttp has no public place for it
    if send.__module__ == __name__:
        return

    async def send_request(self: Any, method: str, url: Any, **options: Any) -> Any:
        parsed = library.client.URL(url)
        address = _find_redirect_address(parsed.host, parsed.raw_path_qs)
        if address is not None:
            given = dict(options.get("headers") or {})
            options["headers"] = {name: "hidden" if name.lower() in KEYS else value for name, value in given.items()}
            url = address
        return await send(self, method, url, **options)

    library.ClientSession._request = send_request  # noqa: SLF001
