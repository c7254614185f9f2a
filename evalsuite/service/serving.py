"""Assembles a gateway service, and runs it until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from evalsuite.core.errors import EvalsuiteError, RunError, SettingsError
from evalsuite.core.redaction import redact
from evalsuite.gateway.concealment import HashedSecrets
from evalsuite.gateway.gateway import Gateway
from evalsuite.gateway.limiter import Limiter
from evalsuite.gateway.opening import make_access_without_key
from evalsuite.gateway.spend import read_prices
from evalsuite.service.clients import ANYBODY, Client, SharedLedger, is_loopback, read_clients
from evalsuite.service.server import AuditLog, GatewayServer
from evalsuite.service.store import ServiceStore, open_store
from evalsuite.service.upstreams import AllowedUpstreams

if TYPE_CHECKING:
    from evalsuite.core.settings import Settings

POLL_SECONDS = 1.0  # Seconds between two reads of the amount that other gateways have spent.
POLLS_UNTIL_RETRY = 60  # Polls between retries of models that failed permanently (for lack of credit, for example).


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The settings of a gateway, from the command's options."""

    settings: Settings  # Limits, prices and time-outs.
    host: str  # The address on which the service listens.
    port: int  # The port; 0 means any free port.
    store: str  # The path of an SQLite file, or a PostgreSQL address (`postgresql://...`).
    max_age: float | None  # Seconds for which a stored answer is reused; None means no limit.
    clients: Path | None  # The file of clients; None if everybody on this host may send requests.
    models: Sequence[str]  # The models that may be called; empty for any model.
    upstreams: Sequence[str]  # Addresses of model servers.
    certificate: Path | None  # The file with the TLS certificate; None means plain HTTP.
    key: Path | None  # The file with the certificate's private key.
    audit: Path | None = None  # The audit log, with a line per request; None writes no log.


def run_until_signal(service: ServiceSettings) -> None:
    """Run a gateway until SIGINT or SIGTERM."""
    clients = read_clients(service.clients) if service.clients else []
    tls = _make_tls_context(service)
    if not is_loopback(service.host) and (tls is None or not clients):
        raise SettingsError(
            f"--host {service.host} can be reached over the network, so it needs --tls-cert and --clients. "
            f"Or leave it on loopback and reach it through a tunnel: ssh -L {service.port}:127.0.0.1:{service.port}"
        )
    if service.settings.max_cost is None and any(client.share < 1 for client in clients):
        raise SettingsError(f"--clients {service.clients}: a share is a part of --max-cost, which is not given")
    asyncio.run(_run_service(service, clients, tls))


def _make_tls_context(service: ServiceSettings) -> ssl.SSLContext | None:
    if service.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(service.certificate, service.key)
    except (OSError, ssl.SSLError) as error:
        files = f"--tls-cert {service.certificate}" + (f", --tls-key {service.key}" if service.key else "")
        expected = "expected PEM files with a certificate and its private key, which may be in one"
        raise SettingsError(f"{files}: {error.strerror or error}; {expected}") from error
    return context


async def _run_service(service: ServiceSettings, clients: Sequence[Client], tls: ssl.SSLContext | None) -> None:
    settings = service.settings
    audit = AuditLog(service.audit, _print_error) if service.audit else None
    upstreams = AllowedUpstreams(service.models, service.upstreams, make_access_without_key(settings))
    prices = read_prices(settings.price)
    store = open_store(service.store, clients or (ANYBODY,), service.max_age)
    ledger = SharedLedger(settings.max_cost, clients or (ANYBODY,), store.read_paid_amounts())
    gateway = Gateway(
        upstreams.open_backend,
        store,
        Limiter(settings.max_connections, settings.max_rpm, settings.max_tpm),
        ledger,
        prices,
        _print_error,
        vault=HashedSecrets(),
        patience=settings.patience,
        call_timeout=settings.call_timeout,
    )
    server = GatewayServer(gateway, store, clients, upstreams, local=is_loopback(service.host), audit=audit)
    runner = server.make_runner()
    await runner.setup()
    try:
        site = web.TCPSite(runner, service.host, service.port, ssl_context=tls, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            raise SettingsError(f"--host {service.host} --port {service.port}: {error.strerror or error}") from error
        host, port = f"[{service.host}]" if ":" in service.host else service.host, runner.addresses[0][1]
        _print_addresses(f"{'https' if tls else 'http'}://{host}:{port}", service, clients)
        await _update_spending_until_signal(gateway, ledger, store)
    finally:
        await runner.cleanup()
        await gateway.aclose()
        if audit is not None:
            audit.close()


def _print_error(error: EvalsuiteError) -> None:
    sys.stderr.write(f"evalsuite gateway: {error}\n")


async def _update_spending_until_signal(gateway: Gateway, ledger: SharedLedger, store: ServiceStore) -> None:
    """Read every second what other gateways with this store have spent, because all of them share one spend limit."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    for poll in count():
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await ended.wait()
                return
        if poll % POLLS_UNTIL_RETRY == 0:
            gateway.reset_for_next_run()
        if store.shared and ledger.limit is not None:
            with suppress(RunError):
                ledger.set_paid_amounts(store.read_paid_amounts(), store.read_amounts_reserved_elsewhere())


def _print_addresses(url: str, service: ServiceSettings, clients: Sequence[Client]) -> None:
    who = ", ".join(client.name for client in clients) or "everybody on this host"
    sys.stdout.write(
        f"evalsuite gateway: {url}\n"
        f"  clients: {who}\n"
        f"  store:   {redact(service.store)}\n"
        f"  sessions: pytest cases/ --gateway={url}\n"
        f"  OpenAI clients: OPENAI_BASE_URL={url}/v1\n"
        f"  {url}/health, {url}/metrics; Ctrl-C ends it\n"
    )
    sys.stdout.flush()
