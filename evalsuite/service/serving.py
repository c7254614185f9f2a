"""Assembles a gateway service, and runs it until a signal ends it."""

import asyncio
import math
import signal
import ssl
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

from aiohttp import web

from evalsuite.core.errors import EvalsuiteError, RunError, SettingsError
from evalsuite.core.redaction import redact
from evalsuite.core.settings import Settings
from evalsuite.gateway.gateway import Gateway
from evalsuite.gateway.limiter import Limiter
from evalsuite.gateway.opening import make_access_without_key
from evalsuite.gateway.spend import read_prices
from evalsuite.service.clients import ANYBODY, Client, SharedLedger, is_loopback, read_clients
from evalsuite.service.server import AllowedUpstreams, AuditLog, GatewayServer
from evalsuite.service.store import ServiceStore, open_store

POLL_SECONDS = 1.0  # Seconds between two reads of the amount that other gateways have spent.
POLLS_UNTIL_RETRY = 60  # Polls between retries of models that failed permanently (for lack of credit, for example).


async def serve_until_signal(options: Namespace, settings: Settings) -> None:
    """Run a gateway until SIGINT or SIGTERM.

    Args:
        options: the options of `evalsuite gateway`.
        settings: limits, prices and time-outs of calls.
    """
    clients = read_clients(options.clients) if options.clients else []
    tls = _make_tls_context(options)
    if not is_loopback(options.host) and (tls is None or not clients):
        raise SettingsError(
            f"--host {options.host} can be reached over the network, so it needs --tls-cert and --clients. "
            f"Or leave it on loopback and reach it through a tunnel: ssh -L {options.port}:127.0.0.1:{options.port}"
        )
    if settings.max_cost is None and any(client.share < 1 for client in clients):
        raise SettingsError(f"--clients {options.clients}: a share is a part of --max-cost, which is not given")
    audit = AuditLog(options.audit, _print_error) if options.audit else None
    upstreams = AllowedUpstreams(options.model, options.upstream, make_access_without_key(settings))
    prices = read_prices(settings.price)
    max_age = None if math.isinf(options.max_age) else options.max_age * 3600.0
    store = open_store(options.store, clients or (ANYBODY,), max_age)
    paid, _ = store.read_paid_amounts()
    ledger = SharedLedger(settings.max_cost, clients or (ANYBODY,), paid)
    gateway = Gateway(
        upstreams.open_backend,
        store,
        Limiter(settings.max_connections, settings.max_rpm, settings.max_tpm),
        ledger,
        prices,
        _print_error,
        patience=settings.patience,
        call_timeout=settings.call_timeout,
    )
    server = GatewayServer(gateway, store, clients, upstreams, local=is_loopback(options.host), audit=audit)
    runner = server.make_runner()
    await runner.setup()
    try:
        site = web.TCPSite(runner, options.host, options.port, ssl_context=tls, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            raise SettingsError(f"--host {options.host} --port {options.port}: {error.strerror or error}") from error
        host, port = f"[{options.host}]" if ":" in options.host else options.host, runner.addresses[0][1]
        _print_addresses(f"{'https' if tls else 'http'}://{host}:{port}", options.store, clients)
        await _update_spending_until_signal(gateway, ledger, store)
    finally:
        await runner.cleanup()
        await gateway.aclose()
        if audit is not None:
            audit.close()


def _make_tls_context(options: Namespace) -> ssl.SSLContext | None:
    if options.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(options.tls_cert, options.tls_key)
    except (OSError, ssl.SSLError) as error:
        files = f"--tls-cert {options.tls_cert}" + (f", --tls-key {options.tls_key}" if options.tls_key else "")
        expected = "expected PEM files with a certificate and its private key, which may be in one"
        raise SettingsError(f"{files}: {error.strerror or error}; {expected}") from error
    return context


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
                ledger.set_paid_amounts(*store.read_paid_amounts())


def _print_addresses(url: str, store: str, clients: Sequence[Client]) -> None:
    who = ", ".join(client.name for client in clients) or "everybody on this host"
    sys.stdout.write(
        f"evalsuite gateway: {url}\n"
        f"  clients: {who}\n"
        f"  store:   {redact(store)}\n"
        f"  sessions: pytest cases/ --gateway={url}\n"
        f"  OpenAI clients: OPENAI_BASE_URL={url}/v1\n"
        f"  {url}/health, {url}/metrics; Ctrl-C ends it\n"
    )
    sys.stdout.flush()
