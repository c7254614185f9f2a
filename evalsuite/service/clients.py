"""The address of a gateway service, and the service's clients.

Check an address, so that tokens and prompts leave this host only encrypted.
"""

import asyncio
import hmac
import ipaddress
import json
import math
import os
import re
import secrets
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evalsuite.core.errors import SettingsError, SpendLimitReached
from evalsuite.core.types import Usage
from evalsuite.gateway.spend import Ledger
from evalsuite.models.credentials import Secret, read_key

TOKEN = "EVALSUITE_GATEWAY_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with a client's token."""

PORT = 4747  # The default port of a service.


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The address of a gateway service, and the token that it requires."""

    url: str  # The gateway's address without a final slash.
    token: Secret | None  # The client's token; None if the service requires none.

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers with the token; {} if the service requires none."""
        return {"Authorization": f"Bearer {self.token.reveal()}"} if self.token else {}


def is_loopback(host: str) -> bool:
    """Tell whether a host is a loopback address or `localhost`; all other host names give False."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def parse_services(text: str, environ: Mapping[str, str] = os.environ) -> list[ServiceAddress]:
    """Parse the services that `--gateway` names, separated by commas."""
    token = read_key(TOKEN, environ)
    return [ServiceAddress(_require_valid_url(url.strip().rstrip("/")), token) for url in text.split(",")]


def _require_valid_url(url: str) -> str:
    parts = urlsplit(url)
    try:
        plain = parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        plain = False
    if not plain or parts.username or parts.query or parts.path:
        raise SettingsError(
            f"--gateway {url}: write http://HOST:PORT or https://HOST:PORT, as `evalsuite gateway` prints it; "
            f"a token goes into {TOKEN}"
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise SettingsError(
            f"--gateway {url}: prompts, answers and the token would cross the network in plain text. Start the "
            f"gateway with --tls-cert and --tls-key and use https, or a tunnel: ssh -L {parts.port or 80}:127.0.0.1:"
            f"{parts.port or 80} {parts.hostname}, then --gateway http://127.0.0.1:{parts.port or 80}"
        )
    return url


SHORTEST = 16  # Minimum characters of a token.


@dataclass(frozen=True, slots=True)
class Client:
    """A client of a gateway service."""

    name: str  # The client's name in metrics and messages.
    token: Secret | None = None  # The client's token; `ANYBODY` has None.
    share: float = 1.0  # The client's share of the spend limit, above 0 and at most 1.
    max_rpm: int | None = None  # Maximum requests per minute; None means no limit.
    max_tpm: int | None = None  # Maximum tokens per minute, prompts and answers together; None means no limit.


ANYBODY = Client("anybody")  # The client to which all requests on loopback belong if no clients are registered.
CURRENT_CLIENT: ContextVar[Client] = ContextVar("asking", default=ANYBODY)
"""The client of the current request; if several clients wait for one call, the first client pays."""


def find_client(clients: Sequence[Client], authorization: str) -> Client | None:
    """Find the client by the token in an `Authorization` header; return None if the token is unknown.

    Args:
        clients: all registered clients; empty if everybody on this host may send requests.
    """
    if not clients:
        return ANYBODY
    # Ignore case in the name `Bearer` (RFC 9110).
    token = re.sub("^bearer ", "", authorization, flags=re.IGNORECASE).strip().encode("utf-8", "replace")
    owner = None
    # Compare with all tokens in constant time, so that the time reveals nothing about the tokens.
    for client in clients:
        if client.token and hmac.compare_digest(client.token.reveal().encode(), token):
            owner = client
    return owner


def read_clients(path: Path) -> list[Client]:
    """Read a file of clients: for each name, a JSON object with `token` and optional `share`, `max_rpm`, `max_tpm`."""
    try:
        text, mode = path.read_text("utf-8"), path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--clients {path}: {error}; {_make_example()}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"--clients {path}: others can read the tokens in it; chmod 600 {path}")
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"--clients {path}: not JSON ({error}); {_make_example()}") from error
    if not isinstance(plain, dict) or not plain:
        raise SettingsError(f"--clients {path}: names no client; {_make_example()}")
    clients = [_read_client(name, entry, path) for name, entry in plain.items()]
    tokens = [client.token.reveal() for client in clients if client.token]
    if len(set(tokens)) < len(tokens):
        raise SettingsError(f"--clients {path}: two clients have one token")
    return clients


def _read_client(name: str, entry: Any, path: Path) -> Client:
    fields = entry if isinstance(entry, dict) else {}
    token, share = fields.get("token"), fields.get("share", 1.0)
    where = f"--clients {path}, {name!r}"
    if not name or not name.isprintable():
        raise SettingsError(f"{where}: not a name of printable characters; {_make_example()}")
    if not isinstance(token, str) or len(token) < SHORTEST or not token.isascii() or not token.isprintable():
        raise SettingsError(f"{where}: no token of at least {SHORTEST} plain characters; {_make_example()}")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise SettingsError(f"{where}: share is {share!r}; expected a number above 0 and at most 1; {_make_example()}")
    limits = {field: fields.get(field) for field in ("max_rpm", "max_tpm")}
    for field, limit in limits.items():
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise SettingsError(f"{where}: {field} is {limit!r}; expected a whole number above 0; {_make_example()}")
    if unknown := sorted(set(fields) - {"token", "share", *limits}):
        raise SettingsError(f"{where}: unknown field {unknown[0]!r}; {_make_example()}")
    return Client(name, Secret(token), float(share), **limits)


def _make_example() -> str:
    """Make an example of a file of clients, for error messages."""
    example = {"ci": {"token": secrets.token_urlsafe(24), "share": 0.5, "max_rpm": 600}}
    return f"for example {json.dumps(example)}"


MINUTE = 60.0


class ClientQuota:
    """A client's limits per minute; it delays requests that would exceed them.

    Args:
        earlier: the calls in the last minute before a restart, oldest first; each is a pair of the seconds since the
            call and the call's tokens.
    """

    def __init__(
        self, client: Client, clock: Callable[[], float] = time.monotonic, earlier: Iterable[tuple[float, float]] = ()
    ) -> None:
        self._client, self._clock = client, clock
        self._turn = asyncio.Lock()  # Lets requests wait one after another, in order of arrival.
        # The time and the tokens of each request in the last minute.
        self._sent = deque([clock() - seconds, tokens] for seconds, tokens in earlier)

    async def admit_request(self) -> list[float]:
        """Wait until the client may send one more request; return an entry for `record_tokens`."""
        client = self._client
        async with self._turn:
            while True:
                now = self._clock()
                while self._sent and self._sent[0][0] + MINUTE <= now:
                    self._sent.popleft()
                tokens = sum(entry[1] for entry in self._sent)
                if len(self._sent) < (client.max_rpm or math.inf) and tokens < (client.max_tpm or math.inf):
                    entry = [now, 0.0]
                    self._sent.append(entry)
                    return entry
                await asyncio.sleep(self._sent[0][0] + MINUTE - now)

    def record_tokens(self, entry: list[float], tokens: int) -> None:
        """Record an answered request's tokens; they count from the time when the request was sent."""
        entry[1] = float(tokens)


class ShareUsedUp(SpendLimitReached):
    """Raised if the client that pays for a request has used up its share of the budget.

    Another client that waits for the same answer may pay for it instead.

    Attributes:
        client: the client whose share is used up.
    """

    def __init__(self, message: str, client: Client) -> None:
        super().__init__(message)
        self.client = client


class SharedLedger(Ledger):
    """Charges each call to the service and to the first client that requested it.

    Args:
        limit: US dollars over the life of the store; None means no limit.
        paid: US dollars that each client paid in earlier sessions, by the client's name.
    """

    def __init__(self, limit: float | None, clients: Iterable[Client], paid: Mapping[str, float]) -> None:
        super().__init__(limit, Usage(cost=sum(paid.values())))
        self.shares: dict[str, Ledger] = {}
        for client in clients:
            # A client whose share is the whole limit needs no limit of its own.
            share = None if limit is None or client.share == 1 else client.share * limit
            self.shares[client.name] = Ledger(share, Usage(cost=paid.get(client.name, 0.0)))

    def set_paid_amounts(self, paid: Mapping[str, float], elsewhere: Mapping[str, float]) -> None:
        """Set what each client has paid so far, at this gateway and at other gateways with the same store.

        Args:
            paid: US dollars by client, including the maximum cost of calls in flight at other gateways.
        """
        self.set_total_paid(sum(paid.values()), sum(elsewhere.values()))
        for name, share in self.shares.items():
            share.set_total_paid(paid.get(name, 0.0), elsewhere.get(name, 0.0))

    async def reserve_cost(self, amount: float) -> None:
        """Reserve an amount in the client's share and in the budget; raise ShareUsedUp if the share is too small."""
        client = CURRENT_CLIENT.get()
        share = self.shares[client.name]
        try:
            await share.reserve_cost(amount)
        except SpendLimitReached as error:
            raise ShareUsedUp(
                f"the gateway's client {client.name!r} has used up its share: ${share.paid.cost:.4f} of "
                f"${share.limit or 0:g} is spent and the next call may cost ${amount:.4f}; whoever runs the gateway "
                "can raise --max-cost or the share",
                client,
            ) from error
        try:
            await super().reserve_cost(amount)
        except BaseException:
            share.book_cost(amount, None)
            raise

    def book_cost(self, amount: float, usage: Usage | None, model: str = "", *, answered: bool = True) -> None:
        """Replace a reserved amount by the call's cost, in the client's share and in the budget."""
        self.shares[CURRENT_CLIENT.get().name].book_cost(amount, usage, model, answered=answered)
        super().book_cost(amount, usage, model, answered=answered)
