"""Clients of the openai package whose transport is a case's model, without a socket, a server or a key."""

import asyncio
from contextlib import suppress
from importlib import import_module
from typing import Any

import httpx2
from openai import AsyncOpenAI, OpenAI

from evalsuite.applications.case_api import CaseApi
from evalsuite.core.errors import SolverError
from evalsuite.gateway.loop import await_on_loop, is_current_loop

with suppress(ImportError):
    # The package openai reads httpx from `sys.modules`, even while another case's thread is still importing it.
    import_module("httpx")

BASE_URL = "http://evalsuite.invalid/v1"
"""Placeholder address to which no connection is made: no host's name ends with `.invalid` (RFC 2606)."""
KEY = "the-gateway-holds-the-key"


async def _answer_request(api: CaseApi, request: httpx2.Request) -> httpx2.Response:
    """Answer a client's request, whose body is read, within its time limit, which `with_options(timeout=...)` sets.

    The limit is applied on the model's loop, so that a request is cancelled there before the caller continues.
    """
    seconds: float | None = request.extensions.get("timeout", {}).get("read")
    path = request.url.path.removeprefix("/v1")
    try:
        async with asyncio.timeout(seconds):
            answer = await api.answer_request(request.method, path, request.content)
    except TimeoutError as error:
        raise httpx2.ReadTimeout(f"no answer within {seconds} s", request=request) from error
    return httpx2.Response(answer.status, headers=answer.headers, content=answer.body, request=request)


class _AsyncClient(AsyncOpenAI):
    """Sends parallel requests in the order of their calls, so that each call gets the same answer in a replay.

    The base class looks up the platform in a thread before each request, so parallel requests could change their order.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._platform = "Unknown"


def make_async_client(api: CaseApi, loop: asyncio.AbstractEventLoop) -> AsyncOpenAI:
    """Make an `AsyncOpenAI` whose calls the case's model answers, on any loop; the run's time limits apply."""

    async def answer_request(request: httpx2.Request) -> httpx2.Response:
        return await await_on_loop(_answer_request(api, request), loop)

    # Despite its name, `MockTransport` is not only for tests: it passes each request to a function, without a socket.
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer_request))
    return _AsyncClient(api_key=KEY, base_url=BASE_URL, http_client=client, max_retries=0, timeout=None)


def make_blocking_client(api: CaseApi, loop: asyncio.AbstractEventLoop) -> OpenAI:
    """Make an `OpenAI` whose calls the case's model answers, in threads other than the event loop's."""

    def answer_request(request: httpx2.Request) -> httpx2.Response:
        if is_current_loop(loop):
            raise SolverError(
                "model.openai_sync() was used in an async function, where it would block the event loop for ever: use "
                "model.openai() and await, or make the function a plain one"
            )
        return asyncio.run_coroutine_threadsafe(_answer_request(api, request), loop).result()

    client = httpx2.Client(transport=httpx2.MockTransport(answer_request))
    return OpenAI(api_key=KEY, base_url=BASE_URL, http_client=client, max_retries=0, timeout=None)
