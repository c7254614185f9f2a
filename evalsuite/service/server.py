"""A gateway over HTTP: sessions ask in evalsuite's own words, everybody else in OpenAI's."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from evalsuite.applications.http_answer import BadRequest, error_answer, failed_call
from evalsuite.core.errors import EvalsuiteError, RequestRefused, SpendLimitReached
from evalsuite.core.json_codec import decode_request, dumps, encode_completion
from evalsuite.gateway.channel import encode_error
from evalsuite.service.address import is_loopback
from evalsuite.service.clients import ASKING
from evalsuite.service.metrics import Counts, exposition
from evalsuite.service.openai_door import OpenAIDoor
from evalsuite.service.shares import ShareUsedUp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from evalsuite.applications.http_answer import HttpAnswer
    from evalsuite.core.types import Completion, Request
    from evalsuite.gateway.gateway import Gateway
    from evalsuite.service.clients import Client, Clients
    from evalsuite.service.store import ServiceStore
    from evalsuite.service.upstreams import Upstreams

LARGEST_REQUEST = 256 * 2**20
"""Bytes; pictures and recordings are large."""

SIGN_OF_LIFE = 5.0
"""Seconds between the line ends that a waiting session is sent, so that it knows a dead gateway from a slow one."""

CLIENT: web.RequestKey[Client] = web.RequestKey("client")


class GatewayServer:
    """Answers HTTP requests with a gateway. Belongs to the gateway's event loop.

    Args:
        gateway: answers.
        store: of the gateway.
        clients: who may ask.
        upstreams: what may be asked.
        local: whether it listens on loopback only, where pages in a browser of this host must be kept out.
    """

    def __init__(
        self,
        gateway: Gateway,
        store: ServiceStore,
        clients: Clients,
        upstreams: Upstreams,
        *,
        local: bool,
    ) -> None:
        self._gateway, self._store, self._clients, self._upstreams = gateway, store, clients, upstreams
        self._local = local
        self.counts = Counts()
        self._door = OpenAIDoor(self, upstreams.offered)

    def application(self) -> web.Application:
        """What aiohttp runs."""
        application = web.Application(client_max_size=LARGEST_REQUEST, middlewares=[self._admit])
        application.router.add_get("/health", self._health)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/evalsuite/client", self._client)
        application.router.add_post("/evalsuite/ask", self._ask)
        application.router.add_route("*", "/v1/{path:.*}", self._openai)
        return application

    async def ask(self, request: Request) -> Completion:
        """Answers a request on behalf of the client in `ASKING`; see `Asker.ask`.

        Raises:
            EvalsuiteError: it failed for good.
        """
        client = ASKING.get()
        try:
            completion = await self._answer(client, self._upstreams.admit(request))
        except EvalsuiteError as error:
            self.counts.failed(client.name, error)
            raise
        self.counts.answered(client.name, request.model, completion.usage)
        return completion

    async def _answer(self, client: Client, request: Request) -> Completion:
        while True:
            try:
                return await self._gateway.ask(request)
            except ShareUsedUp as error:
                # Of the client that asked first; this one waited for the same answer and may pay it.
                if error.client == client:
                    raise SpendLimitReached(str(error)) from error

    @web.middleware
    async def _admit(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if self._local and not is_loopback((request.host or "").rpartition(":")[0] or request.host):
            return _plain(error_answer(403, f"this gateway is on loopback only, and not {request.host}"))
        if request.path != "/health":
            client = self._clients.find(request.headers.get("Authorization", ""))
            if client is None:
                words = (
                    "no client of this gateway has that token: set EVALSUITE_GATEWAY_TOKEN, or the API key"
                )
                return _plain(error_answer(401, words, "authentication_error"))
            request[CLIENT] = client
            ASKING.set(client)
        if request.method == "POST" and request.content_type != "application/json":
            # What a web page can send to any address without asking.
            return _plain(error_answer(415, f"Content-Type {request.content_type}: send application/json"))
        return await handler(request)

    async def _health(self, request: web.Request) -> web.StreamResponse:  # noqa: ARG002 - a handler's signature
        try:
            self._store.check_up()
            problem = self._gateway.lost
        except EvalsuiteError as error:
            problem = str(error)
        state = {"status": "failing" if problem else "ok", "problem": problem}
        return web.json_response(state | {"down": self._gateway.outages()}, status=503 if problem else 200)

    async def _metrics(self, request: web.Request) -> web.StreamResponse:  # noqa: ARG002 - as above
        text = exposition(self._gateway, self.counts)
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _client(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"client": request[CLIENT].name, "models": list(self._upstreams.models)})

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        """One JSON line, after a line end every few seconds: answers may take as long as the limits make them."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        answer = asyncio.create_task(self._answered(await request.read()))
        try:
            while not answer.done():
                await asyncio.wait([answer], timeout=SIGN_OF_LIFE)
                if not answer.done():
                    await response.write(b"\n")
            await response.write_eof(dumps(answer.result()).encode())
        except ConnectionResetError:
            # The client has gone. What was asked for it is kept for whoever asks again.
            await asyncio.wait([answer])
        return response

    async def _answered(self, content: bytes) -> dict[str, Any]:
        try:
            return {"completion": encode_completion(await self.ask(_decoded(content)))}
        except EvalsuiteError as error:
            return {"error": encode_error(error)}

    async def _openai(self, request: web.Request) -> web.StreamResponse:
        try:
            answer = await self._door.answer(
                request.method, "/" + request.match_info["path"], await request.read(), request.headers
            )
        except BadRequest as error:
            answer = error_answer(400, str(error))
        except EvalsuiteError as error:
            answer = failed_call(error)
        return _plain(answer)


def _decoded(content: bytes) -> Request:
    try:
        return decode_request(json.loads(content)["request"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RequestRefused(
            f"the gateway cannot read this request ({type(error).__name__}: {error}); is its evalsuite of another "
            "version than the session's?"
        ) from error


def _plain(answer: HttpAnswer) -> web.Response:
    return web.Response(status=answer.status, body=b"".join(answer.chunks), headers=answer.headers)
