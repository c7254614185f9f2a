"""Sends the calls of clients that an application makes itself, such as `OpenAI()`, to the case's model."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SolverError
from evalsuite.gateway.handle import ROUTE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.applications.endpoint import Endpoint

HOSTS = frozenset({"api.openai.com", "api.anthropic.com"})
LIBRARIES = ("httpx", "httpx2")  # The HTTP libraries of these clients.


@dataclass(slots=True)
class Route:
    """Where the clients of one case lead."""

    endpoint: Endpoint | None  # None: the calls are only counted.
    loop: asyncio.AbstractEventLoop  # The event loop that answers them.
    past: int = 0  # Number of calls that went to the provider itself.


_patching = threading.Lock()


@contextmanager
def route_clients(endpoint: Endpoint | None) -> Iterator[Route]:
    """Route, or only count, the calls that are made in this context and in threads that copy it."""
    with _patching:
        for name in LIBRARIES:
            if name in sys.modules or (endpoint is not None and find_spec(name)):
                _patch(import_module(name))
    route = Route(endpoint, asyncio.get_running_loop())
    token = ROUTE.set(route)
    try:
        yield route
    finally:
        ROUTE.reset(token)


def _patch(library: Any) -> None:
    """Wrap the transports of a library once; outside of a case they do what they did."""
    if library.HTTPTransport.handle_request.__module__ == __name__:
        return
    send, send_async = library.HTTPTransport.handle_request, library.AsyncHTTPTransport.handle_async_request

    def handle_request(self: Any, request: Any) -> Any:
        if _redirect(library, request) and _blocks():
            raise SolverError(
                "a client that blocks was used in an async function, where waiting would stop the answer it waits "
                "for: use AsyncOpenAI or AsyncAnthropic, or make the function a plain one"
            )
        return send(self, request)

    async def handle_async_request(self: Any, request: Any) -> Any:
        _redirect(library, request)
        return await send_async(self, request)

    library.HTTPTransport.handle_request = handle_request
    library.AsyncHTTPTransport.handle_async_request = handle_async_request


def _redirect(library: Any, request: Any) -> bool:
    """Lead a request for a model to the case's endpoint, without the user's key; return whether it was led there."""
    route: Route | None = ROUTE.get()
    if route is None or request.url.host not in HOSTS:
        return False
    if route.endpoint is None:
        route.past += 1
        return False
    path = request.url.raw_path.decode("ascii").removeprefix("/v1")
    request.url = library.URL(route.endpoint.base_url + path)
    request.headers["Host"] = request.url.netloc.decode("ascii")
    for name in ("Authorization", "x-api-key"):
        if name in request.headers:
            request.headers[name] = f"Bearer {route.endpoint.api_key}"
    return True


def _blocks() -> bool:
    route = ROUTE.get()
    try:
        return route is not None and asyncio.get_running_loop() is route.loop
    except RuntimeError:
        return False
