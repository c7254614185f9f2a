"""An address on loopback for programs in any language; each process has one listener, each case a secret path.

Each process that runs cases has its own listener, because a remote worker's programs reach only their own host. The
listener sends requests through the run's gateway, like all other calls. The calls of an application's own clients, such
as `OpenAI()`, can be redirected to this address.
"""

import asyncio
import os
import re
import secrets
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from evalsuite.applications.case_api import CaseApi
from evalsuite.applications.chat_api import make_error_answer
from evalsuite.core.errors import SolverError
from evalsuite.gateway.handle import ROUTE
from evalsuite.gateway.loop import is_current_loop

if TYPE_CHECKING:
    from aiohttp import web

LARGEST_REQUEST = 256 * 2**20  # Maximum bytes of a request, which may contain pictures and recordings.
VERSION = re.compile(r"^/v1(alpha|beta)?(/+|$)")  # The version at the beginning of an API's path.
REFUSED = "no such key: use base_url and api_key of this case's endpoint, which end with the case"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address that serves one case's model while the case runs.

    Attributes:
        base_url: the base URL for OpenAI's clients; it contains the case's secret.
        api_key: the case's secret, for clients that require a key.
        variables: further environment variables for programs, including the address to which programs send spans.
    """

    base_url: str = field(repr=False)
    api_key: str = field(repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    def env(self, **more: str) -> dict[str, str]:
        """Return this process's environment, in which the clients of OpenAI, Anthropic and Gemini find this endpoint.

        Args:
            more: further variables.
        """
        direct = ",".join(filter(None, (os.environ.get("NO_PROXY"), "127.0.0.1")))
        return {
            **os.environ,
            # Older OpenAI clients read the base URL from `OPENAI_API_BASE`.
            **dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), self.base_url),
            # Leave out the API's version, because the clients of Anthropic and Gemini themselves add it.
            **dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), self.base_url.removesuffix("/v1")),
            **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"), self.api_key),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), direct),
            **self.variables,
            **more,
        }


class LoopbackServer:
    """Answers HTTP requests on loopback until its event loop ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._apis: dict[str, CaseApi] = {}
        # Tasks that answer requests, by the secret of their case.
        self._answering: dict[str, set[asyncio.Task[Any] | None]] = {}
        # Bind the socket now, because callers need its port; early connections wait in the socket's queue.
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._socket.getsockname()[1]
        self._serving = asyncio.run_coroutine_threadsafe(self._serve_requests(), loop)

    async def _serve_requests(self) -> None:
        from aiohttp import web

        application = web.Application(client_max_size=LARGEST_REQUEST)
        application.router.add_route("*", "/{path:.*}", self._answer_http_request)
        # If a client disconnects, cancel its call.
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket).start()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    def open_endpoint(self, api: CaseApi) -> Endpoint:
        """Serve a case's API at an address with a new secret, and return the address."""
        token = secrets.token_urlsafe(24)
        self._apis[token] = api
        base_url = f"http://127.0.0.1:{self.port}/{token}/v1"
        return Endpoint(base_url, token, api.spans.make_environment_variables(base_url) if api.spans else {})

    def close_endpoint(self, endpoint: Endpoint) -> None:
        """Close a case's address and cancel its unanswered requests; the listener stays open for later cases."""
        self._apis.pop(endpoint.api_key, None)
        for task in self._answering.pop(endpoint.api_key, ()):
            if task is not None:
                task.cancel()

    async def _answer_http_request(self, request: "web.Request") -> "web.Response":
        from aiohttp import web

        content = await request.read()
        token, path = self._find_token_and_path(request)
        answer = make_error_answer(401, REFUSED, "authentication_error")
        if token in self._apis:
            task, answering = asyncio.current_task(), self._answering.setdefault(token, set())
            answering.add(task)
            try:
                full_path = f"{path}?{request.query_string}"
                answer = await self._apis[token].answer_request(request.method, full_path, content)
            finally:
                answering.discard(task)
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)

    def _find_token_and_path(self, request: "web.Request") -> tuple[str, str]:
        """Find the secret of the case to which a request belongs, and the request's path after the base URL."""
        first, _, rest = request.path.lstrip("/").partition("/")
        if first in self._apis:
            return first, VERSION.sub("/", f"/{rest}")
        path = VERSION.sub("/", request.path)
        for name in ("x-api-key", "x-goog-api-key"):
            if request.headers.get(name) in self._apis:
                return request.headers[name], path
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        return key.strip() if scheme.lower() == "bearer" else "", path


_listeners: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopbackServer] = WeakKeyDictionary()
_making = threading.Lock()


def get_loopback_server(loop: asyncio.AbstractEventLoop) -> LoopbackServer:
    """Return an event loop's server, and make it if necessary; any thread may call this function."""
    with _making:
        if loop not in _listeners:
            _listeners[loop] = LoopbackServer(loop)
        return _listeners[loop]


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
