"""Creates a gateway from settings, for runs and for builders of data sets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.types import Usage
from evalsuite.gateway.concealment import HashedSecrets
from evalsuite.gateway.spend import Ledger, read_prices
from evalsuite.models.credentials import MEBIBYTE, Access, AddressGrant, Credentials

if TYPE_CHECKING:
    from evalsuite.core.errors import EvalsuiteError
    from evalsuite.core.settings import Settings
    from evalsuite.gateway.gateway import Gateway
    from evalsuite.journal.answers import Answers
    from evalsuite.models.protocol import Backend

RESERVED_DESCRIPTORS = 40  # Open files allowed for other purposes: journal, report, sandbox and the user's own code.
FEWEST = 4  # Minimum number of connections, even if few file descriptors are left.


def compute_connection_limit(wanted: int, servers: int = 1) -> int:
    """Limit the connections by the process's limit on open files, because each connection needs a file descriptor."""
    try:
        import resource
    except ImportError:
        # Allow all connections on Windows, because its limit on open files cannot be read.
        return wanted
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(FEWEST, (limit - _count_open_files() - RESERVED_DESCRIPTORS) // servers))


def _count_open_files() -> int:
    folder = Path("/dev/fd")
    # Without the folder /dev/fd, the lowest free descriptor serves as an estimate of the number of open descriptors.
    if folder.is_dir():
        return len(os.listdir(folder))  # noqa: PTH208 - no path objects for what may be gone by then
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    return lowest


MOST_WAITING_REQUESTS = 10**6
"""Maximum number of requests that wait for batches; in practice, the number of cases in flight is a tighter limit."""

BATCH_SHARE = 0.5  # Price of a call in a batch, as a share of the usual price.


def make_credentials(settings: Settings) -> Credentials:
    """Choose each address's API key; an address that only a run's folder names gets no key."""
    models = {"model": settings.model, "judge": settings.judge_model, "user": settings.user_model}
    grants = []
    for role, model in models.items():
        address, key_env = (getattr(settings, f"{role}_{name}") for name in ("base_url", "key_env"))
        grants += [AddressGrant(model, address, key_env, fresh=f"{role}_base_url" in settings.given)] if model else []
    return Credentials(grants, make_access_without_key(settings))


def make_access_without_key(settings: Settings) -> Access:
    """Make an `Access` to servers with a session's limits, but without API keys."""
    return Access(
        connect_timeout=settings.connect_timeout,
        silence_timeout=settings.silence_timeout,
        max_answer=int(settings.max_answer_mb * MEBIBYTE),
    )


def open_gateway(
    settings: Settings,
    store: Answers,
    on_hopeless: Callable[[EvalsuiteError], None] = lambda _: None,
    wrap_backend: Callable[[Backend, str], Backend] = lambda backend, _: backend,
) -> Gateway:
    """Make a gateway; call this function, and use the gateway, in the event loop's thread."""
    from evalsuite.gateway.gateway import Gateway
    from evalsuite.gateway.limiter import Limiter
    from evalsuite.models.choice import open_backend

    credentials, vault = make_credentials(settings), HashedSecrets()
    # Ignore this session's prices for a gateway service, because the service's answers state their costs.
    prices = {} if settings.gateway else read_prices(settings.price)
    if settings.batch:
        prices = {model: price.multiply_prices(BATCH_SHARE) for model, price in prices.items()}
    vault.conceal_settings(settings)
    connections = compute_connection_limit(settings.max_connections, 2 if settings.judge_model else 1)
    gateway = Gateway(
        lambda model, base_url: wrap_backend(open_backend(model, base_url, credentials), model),
        store,
        # Requests in a batch hold no connection, and the server's limits per minute do not apply to them.
        Limiter(MOST_WAITING_REQUESTS) if settings.batch else Limiter(connections, settings.max_rpm, settings.max_tpm),
        # Add the cost of the run's earlier sessions; a replay pays nothing.
        Ledger(settings.max_cost, Usage() if store.read_only else Usage(cost=store.sum_spending())),
        prices,
        on_hopeless,
        vault=vault,
        patience=settings.patience,
        # Set no time limit for a call in a batch, because the call waits until the batch is finished.
        call_timeout=None if settings.batch else settings.call_timeout,
    )
    if connections < settings.max_connections:
        gateway.notices.append(
            f"{connections} connections instead of {settings.max_connections}: this process may open no more files; "
            "`ulimit -n` raises the limit, --max-connections asks for fewer"
        )
    return gateway
