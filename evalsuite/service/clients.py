"""Who may use a gateway service: one token a client, and its share of the spend limit."""

from __future__ import annotations

import hmac
import json
import secrets
import stat
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SettingsError
from evalsuite.models.credentials import Secret

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SHORTEST = 16
"""Characters of a token."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    Attributes:
        name: shown in metrics and messages.
        token: None for whoever asks on loopback, where no clients are named.
        share: of the spend limit, above 0 and at most 1.
    """

    name: str
    token: Secret | None = None
    share: float = 1.0


ANYBODY = Client("anybody")
"""Asks on loopback, where no clients are named."""

ASKING: ContextVar[Client] = ContextVar("asking", default=ANYBODY)
"""Who asks; a call goes on in the context of the client that asked first, and pays."""


class Clients:
    """Finds the client of a token.

    Args:
        known: all of them; empty where everybody on this host may ask.
    """

    def __init__(self, known: Sequence[Client] = ()) -> None:
        self.known = tuple(known)

    def find(self, authorization: str) -> Client | None:
        """The client with the token of a header `Authorization`; None for a stranger."""
        if not self.known:
            return ANYBODY
        token = authorization.removeprefix("Bearer ").strip().encode("utf-8", "replace")
        owner = None
        # All are compared, so that the time says nothing about any of them.
        for client in self.known:
            if client.token and hmac.compare_digest(client.token.reveal().encode(), token):
                owner = client
        return owner


def read_clients(path: Path) -> Clients:
    """Reads a file of clients: a JSON object with `token` and perhaps `share` for each name.

    Raises:
        SettingsError: the file is missing, can be read by others, or is not as expected.
    """
    try:
        text, mode = path.read_text("utf-8"), path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--clients {path}: {error}; {_expected()}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"--clients {path}: others can read the tokens in it; chmod 600 {path}")
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"--clients {path}: not JSON ({error}); {_expected()}") from error
    if not isinstance(plain, dict) or not plain:
        raise SettingsError(f"--clients {path}: names no client; {_expected()}")
    clients = [_client(name, entry, path) for name, entry in plain.items()]
    tokens = [client.token.reveal() for client in clients if client.token]
    if len(set(tokens)) < len(tokens):
        raise SettingsError(f"--clients {path}: two clients have one token")
    return Clients(clients)


def _client(name: str, entry: Any, path: Path) -> Client:
    fields = entry if isinstance(entry, dict) else {}
    token, share = fields.get("token"), fields.get("share", 1.0)
    where = f"--clients {path}, {name!r}"
    if not name or not name.isprintable():
        raise SettingsError(f"{where}: not a name of printable characters; {_expected()}")
    if not isinstance(token, str) or len(token) < SHORTEST or not token.isascii() or not token.isprintable():
        raise SettingsError(f"{where}: no token of at least {SHORTEST} plain characters; {_expected()}")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise SettingsError(
            f"{where}: share is {share!r}; expected a number above 0 and at most 1; {_expected()}"
        )
    if unknown := sorted(set(fields) - {"token", "share"}):
        raise SettingsError(f"{where}: unknown field {unknown[0]!r}; {_expected()}")
    return Client(name, Secret(token), float(share))


def _expected() -> str:
    example = {"ci": {"token": secrets.token_urlsafe(24), "share": 0.5}}
    return f"for example {json.dumps(example)}"
