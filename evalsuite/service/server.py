"""The HTTP server of a gateway service: the models that it may call, its metrics, and its audit log."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from evalsuite.applications import chat_api
from evalsuite.applications.case_api import CaseApi
from evalsuite.applications.case_model import CaseModel
from evalsuite.core.entry_points import find_import_target
from evalsuite.core.errors import EvalsuiteError, ModelError, RequestRefused, RunError, SettingsError, SpendLimitReached
from evalsuite.core.json_codec import decode_request, dumps, encode_completion
from evalsuite.gateway.channel import encode_error
from evalsuite.gateway.gateway import GRACE, Gateway
from evalsuite.gateway.spend import can_call_other_model
from evalsuite.models.choice import open_backend
from evalsuite.models.credentials import Access, AddressGrant, Credentials, parse_address
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.protocol import Backend, RateLimited, Transient
from evalsuite.service.clients import CURRENT_CLIENT, MINUTE, Client, ClientQuota, ShareUsedUp, find_client, is_loopback

if TYPE_CHECKING:
    from evalsuite.core.types import Completion, Request, Usage
    from evalsuite.service.store import ServiceStore

OWN_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "api-key", "x-api-key", "host", "cookie"}
    | {"openai-organization", "openai-project"}
)
"""Headers of a call that decide which server it reaches and who pays for it."""


class AllowedUpstreams:
    """The models and servers that a service may call; opens backends for them, and refuses requests for any other.

    Args:
        models: the only models that may be called; if empty, all models of the upstream servers may be called.
    """

    def __init__(self, models: Sequence[str], addresses: Sequence[str], access: Access | None = None) -> None:
        pairs = [text.partition(",") for text in addresses]
        self._grants = [AddressGrant("", url, name.strip() or None) for url, _, name in pairs]
        self.credentials = Credentials(self._grants, access)
        self.models = tuple(models)
        for url, _, _ in pairs:
            try:
                parse_address(url)
            except SettingsError as error:
                raise SettingsError(f"--upstream: {error}") from error
        usual = [] if self._grants else [self.credentials.resolve_address(None).shown]
        self._allowed = {*usual, *(self.credentials.resolve_address(grant.public_url).shown for grant in self._grants)}
        for model in models:
            open_backend(model, None, self.credentials)

    def open_backend(self, model: str, base_url: str | None) -> Backend:
        return open_backend(model, base_url, self.credentials)

    async def list_models(self) -> list[str]:
        """List the models that may be called: those in the service's options or, without any, those of its servers."""
        if self.models:
            return list(self.models)
        listed = [await self._list_server_models(url) for url in [grant.public_url for grant in self._grants] or [None]]
        return list(dict.fromkeys(name for names in listed for name in names))

    async def _list_server_models(self, url: str | None) -> list[str]:
        """List the models of one server; return an empty list if the server has no list or cannot be reached."""
        backend = OpenAIBackend(self.credentials.resolve_address(url), self.credentials.make_access("", url))
        try:
            return await backend.list_offered_models() or []
        except (ModelError, Transient, RateLimited):
            return []
        finally:
            await backend.aclose()

    def admit_request(self, request: Request) -> Request:
        """Return the request, with its server's address if it needs one; raise RequestRefused if it is not allowed."""
        model = request.model
        if can_call_other_model(request):
            raise RequestRefused(
                "the body names another model (model, models or fallbacks among its parameters or in extra_body); name "
                "the model of the request itself"
            )
        headers = request.params.get("extra_headers")
        names = headers if isinstance(headers, Mapping) else ()
        refused = [name for name in names if str(name).lower() in OWN_HEADERS]
        if refused:
            raise RequestRefused(
                f"extra_headers: {', '.join(map(repr, refused))} would override what this gateway sends to its "
                "upstream server; leave it out"
            )
        if self.models and model not in self.models:
            raise RequestRefused(f"this gateway serves {', '.join(self.models)}, and not {model!r:.200}")
        kind, colon, _ = model.partition(":")
        if colon and find_import_target("evalsuite.models", kind) is not None:
            if model not in self.models:
                raise RequestRefused(
                    f"{model!r:.200} would run on the gateway's own machine; whoever runs it has to name it: "
                    f"evalsuite gateway --model {model!r:.200}"
                )
            if request.base_url is None:
                return request
        return self._add_allowed_address(request)

    def _add_allowed_address(self, request: Request) -> Request:
        """Return the request with an address; raise RequestRefused if this gateway may not call the given address."""
        if request.base_url is None and self._grants:
            return replace(request, base_url=self._grants[0].public_url)
        try:
            shown = self.credentials.resolve_address(request.base_url).shown
        except SettingsError as error:
            raise RequestRefused(str(error)) from error
        if shown not in self._allowed:
            raise RequestRefused(
                f"this gateway calls only {', '.join(sorted(self._allowed))}, not {shown}; name one of these addresses "
                f"with --model-base-url, or start the gateway with: evalsuite gateway --upstream {shown}"
            )
        return request


# Maximum model names in metrics, because clients choose the names, and each name adds a permanent time series.
MOST_MODELS = 100


class AnswerCounts:
    """Counts of answers by client and model."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        self.tokens: Counter[tuple[str, str, str]] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self._models: set[str] = set()

    def count_answer(self, client: str, model: str, usage: Usage) -> None:
        if len(self._models) < MOST_MODELS:
            self._models.add(model)
        shown = model if model in self._models else "others"
        self.answers[client, shown] += 1
        self.tokens[client, shown, "prompt"] += usage.prompt_tokens
        self.tokens[client, shown, "completion"] += usage.completion_tokens


def format_metrics(gateway: Gateway, counts: AnswerCounts) -> str:
    """Write all metrics in Prometheus's text format 0.0.4."""
    ledger = gateway.ledger
    shares = {(name,): share.paid.cost for name, share in getattr(ledger, "shares", {}).items()}
    served = {(name,): gateway.served[name] for name in ("kept", "joined", "asked")}
    waiting = sum(upstream.limiter.waiting for upstream in gateway.upstreams)
    served_help = "requests: kept in the store, joined to a call under way, asked"
    families: list[tuple[str, str, str, tuple[str, ...], Mapping[Any, float]]] = [
        ("answers_total", "counter", "answers given", ("client", "model"), counts.answers),
        ("tokens_total", "counter", "tokens in answers", ("client", "model", "kind"), counts.tokens),
        ("errors_total", "counter", "requests that failed for good", ("client", "kind"), counts.errors),
        ("requests_total", "counter", served_help, ("served",), served),
        ("calls_in_flight", "gauge", "calls under way", (), {(): gateway.limiter.connections.in_flight}),
        ("calls_waiting", "gauge", "calls that wait for their turn", (), {(): waiting}),
        ("servers_down", "gauge", "model servers that are down", (), {(): len(gateway.describe_outages())}),
        ("keeping", "gauge", "1 while answers can be kept", (), {(): int(not gateway.lost)}),
        ("spent_dollars", "gauge", "US dollars over the store's life", (), {(): ledger.paid.cost}),
        ("client_spent_dollars", "gauge", "US dollars of each client", ("client",), shares),
    ]
    return "".join(_format_metric(*family) for family in families)


def _format_metric(name: str, kind: str, help_text: str, labels: Iterable[str], values: Mapping[Any, float]) -> str:
    whole = f"evalsuite_gateway_{name}"
    lines = [f"# HELP {whole} {help_text}", f"# TYPE {whole} {kind}"]
    for key, value in sorted(values.items()):
        pairs = ",".join(f'{label}="{_escape_label(text)}"' for label, text in zip(labels, key, strict=True))
        lines.append(f"{whole}{{{pairs}}} {value:.10g}" if pairs else f"{whole} {value:.10g}")
    return "\n".join(lines) + "\n"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


AUDIT_MODE = 0o600  # Only the file's owner may read the log of requests.


class AuditLog:
    """Appends one line of JSON per request to a file: time, client, model and cost, but no prompt, answer or token.

    Args:
        path: the file, which may exist; several gateways may share it.
        complain: function that receives a message the first time that writing to the file fails.

    Raises:
        SettingsError: the file cannot be opened.
    """

    def __init__(self, path: Path, complain: Callable[[EvalsuiteError], None]) -> None:
        self._path, self._complain, self._failing = path, complain, False
        try:
            # In append mode, lines of several processes do not mix.
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, AUDIT_MODE)
        except OSError as error:
            raise SettingsError(f"--audit {path}: {error.strerror or error}") from error

    def write_entry(self, client: str, model: str, outcome: str, usage: Usage | None, seconds: float) -> None:
        """Append the line of one request.

        Args:
            outcome: `answered`, or the name of the error.
            usage: the answer's tokens and cost, also if the answer came from the store; None without an answer.
            seconds: time between the request and its answer.
        """
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "client": client,
            "model": model,
            "outcome": outcome,
            "prompt_tokens": usage.prompt_tokens if usage else 0,
            "completion_tokens": usage.completion_tokens if usage else 0,
            "cost": round(usage.cost, 8) if usage else 0.0,
            "seconds": round(seconds, 3),
        }
        try:
            os.write(self._file, json.dumps(line).encode() + b"\n")
        except OSError as error:
            if not self._failing:
                self._complain(RunError(f"--audit {self._path}: {error.strerror or error}; requests go on unlogged"))
            self._failing = True
        else:
            self._failing = False

    def close(self) -> None:
        os.close(self._file)


EPOCH = "x-evalsuite-epoch"
"""The header that distinguishes repetitions of a request: equal requests of one epoch get one answer."""


LARGEST_REQUEST = 256 * 2**20  # Maximum bytes of a request, which may contain pictures and recordings.
SIGN_OF_LIFE = 5.0
"""Seconds between newlines sent to a waiting session, so that it can tell a slow gateway from a dead one."""

SECONDS_IDLE = 75.0  # Seconds until a connection without a complete header is closed (aiohttp's default: an hour).
SECONDS_TO_SEND = 60.0  # Seconds for a request to arrive; a slower one is refused, to free its connection.


class GatewayServer:
    """Answers HTTP requests with a gateway, in the gateway's event loop.

    Args:
        local: whether the server listens only on loopback; it then refuses requests that web pages send from browsers
            on this host.
        audit: the log that gets a line for each request; None writes no log.
    """

    def __init__(
        self,
        gateway: Gateway,
        store: ServiceStore,
        clients: Sequence[Client],
        upstreams: AllowedUpstreams,
        *,
        local: bool,
        audit: AuditLog | None = None,
    ) -> None:
        self._gateway, self._store, self._clients, self._upstreams = gateway, store, clients, upstreams
        self._local, self._audit = local, audit
        self._quotas = {
            client.name: ClientQuota(client, earlier=store.read_latest_calls(client.name, MINUTE)) for client in clients
        }
        self.counts = AnswerCounts()

    def make_runner(self) -> web.AppRunner:
        application = web.Application(client_max_size=LARGEST_REQUEST, middlewares=[self._authenticate_client])
        application.router.add_get("/health", self._report_health)
        application.router.add_get("/metrics", self._report_metrics)
        application.router.add_get("/evalsuite/client", self._report_client_and_models)
        application.router.add_post("/evalsuite/ask", self._answer_session_request)
        application.router.add_route("*", "/v1/{path:.*}", self._answer_openai_request)
        return web.AppRunner(application, access_log=None, shutdown_timeout=GRACE, keepalive_timeout=SECONDS_IDLE)

    async def ask(self, request: Request) -> Completion:
        """Return a request's completion; the context variable `CURRENT_CLIENT` holds the client that sent it."""
        client, began = CURRENT_CLIENT.get(), time.monotonic()
        quota = self._quotas.get(client.name)
        try:
            if self._gateway.lost and self._store.shared:
                self._store.check_health()
                self._gateway.lost = ""
            admitted = self._upstreams.admit_request(request)
            entry = await quota.admit_request() if quota else []
            completion = await self._ask_gateway(client, admitted)
        except EvalsuiteError as error:
            self.counts.errors[client.name, type(error).__name__] += 1
            self._log_call(client, request, type(error).__name__, None, began)
            raise
        if quota:
            quota.record_tokens(entry, completion.usage.prompt_tokens + completion.usage.completion_tokens)
        self.counts.count_answer(client.name, request.model, completion.usage)
        self._log_call(client, request, "answered", completion.usage, began)
        return completion

    def _log_call(self, client: Client, request: Request, outcome: str, usage: Usage | None, began: float) -> None:
        if self._audit is not None:
            self._audit.write_entry(client.name, request.model, outcome, usage, time.monotonic() - began)

    async def _ask_gateway(self, client: Client, request: Request) -> Completion:
        while True:
            try:
                return await self._gateway.ask(request)
            except ShareUsedUp as error:
                # The client that requested this answer first cannot pay; ask again, because this client may pay.
                if error.client == client:
                    raise SpendLimitReached(str(error)) from error

    @web.middleware
    async def _authenticate_client(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuse a request from an unknown client or of another content type; let the handler answer others."""
        if self._local and not is_loopback((request.host or "").rpartition(":")[0] or request.host):
            return _make_response(
                chat_api.make_error_answer(403, f"this gateway is on loopback only, and not {request.host}")
            )
        if request.path != "/health":
            client = find_client(self._clients, request.headers.get("Authorization", ""))
            if client is None:
                words = "no client of this gateway has that token: set EVALSUITE_GATEWAY_TOKEN, or the API key"
                return _make_response(chat_api.make_error_answer(401, words, "authentication_error"))
            CURRENT_CLIENT.set(client)
        if request.method == "POST" and request.content_type != "application/json":
            # Refuse other content types, because a browser lets any web page send them without permission (CORS).
            return _make_response(
                chat_api.make_error_answer(415, f"Content-Type {request.content_type}: send application/json")
            )
        try:
            async with asyncio.timeout(SECONDS_TO_SEND):
                await request.read()
        except TimeoutError:
            words = f"the request did not arrive whole within {SECONDS_TO_SEND:g} s"
            refused = _make_response(chat_api.make_error_answer(408, words))
            refused.force_close()
            return refused
        return await handler(request)

    async def _report_health(self, request: web.Request) -> web.StreamResponse:  # noqa: ARG002 - a handler's signature
        try:
            self._store.check_health()
            problem = self._gateway.lost
        except EvalsuiteError as error:
            problem = str(error)
        state = {"status": "failing" if problem else "ok", "problem": problem}
        return web.json_response(state | {"down": self._gateway.describe_outages()}, status=503 if problem else 200)

    async def _report_metrics(self, request: web.Request) -> web.StreamResponse:  # noqa: ARG002 - as above
        text = format_metrics(self._gateway, self.counts)
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _report_client_and_models(self, request: web.Request) -> web.StreamResponse:  # noqa: ARG002 - as above
        return web.json_response({"client": CURRENT_CLIENT.get().name, "models": list(self._upstreams.models)})

    async def _answer_session_request(self, request: web.Request) -> web.StreamResponse:
        """Answer with one line of JSON; while limits delay it, send newlines to keep the connection open."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        answer = asyncio.create_task(self._ask_and_encode_answer(await request.read()))
        try:
            while not answer.done():
                await asyncio.wait([answer], timeout=SIGN_OF_LIFE)
                if not answer.done():
                    await response.write(b"\n")
            await response.write_eof(dumps(answer.result()).encode())
        except ConnectionResetError:
            # Finish the disconnected client's request anyway, because the stored answer serves later requests.
            await asyncio.wait([answer])
        return response

    async def _ask_and_encode_answer(self, content: bytes) -> dict[str, Any]:
        try:
            return {"completion": encode_completion(await self.ask(_decode_request(content)))}
        except EvalsuiteError as error:
            return {"error": encode_error(error)}

    async def _answer_openai_request(self, request: web.Request) -> web.StreamResponse:
        """Answer a request in the form of a provider's API; convert errors to answers with an error status."""
        method, path, content = request.method, f"/{request.match_info['path']}", await request.read()
        try:
            if method == "GET" and path.rstrip("/") == "/models":
                names = await self._upstreams.list_models()
                models = [{"id": name, "object": "model", "created": 0, "owned_by": "evalsuite"} for name in names]
                return _make_response(chat_api.make_json_answer({"object": "list", "data": models}))
            name = "" if method == "GET" else chat_api.parse_body(content).get("model")
            if method != "GET" and not (isinstance(name, str) and name):
                raise chat_api.BadRequest("model: name one; this gateway serves many")
            epoch = request.headers.get(EPOCH, "1")
            if not epoch.isdecimal() or not 1 <= int(epoch) < 10**9:
                wrong = f"{EPOCH}: {json.dumps(epoch)[:100]}; it must be a whole number of at least 1"
                raise chat_api.BadRequest(wrong)
        except (chat_api.BadRequest, EvalsuiteError) as error:
            return _make_response(chat_api.make_failure_answer(error))
        # Start the ids at the current time, so that answers of all gateways have distinct ids.
        api = CaseApi(CaseModel(self, str(name), None, int(epoch)), answers=time.time_ns(), stores=False)
        return _make_response(await api.answer_request(method, path, content))


def _decode_request(content: bytes) -> Request:
    try:
        return decode_request(json.loads(content)["request"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RequestRefused(
            f"the gateway cannot read this request ({type(error).__name__}: {error}); is its evalsuite of another "
            "version than the session's?"
        ) from error


def _make_response(answer: chat_api.HttpAnswer) -> web.Response:
    return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
