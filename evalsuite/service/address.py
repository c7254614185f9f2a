"""Where a gateway service is, and what may be sent there: tokens and prompts leave this host encrypted only."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from evalsuite.core.errors import SettingsError
from evalsuite.models.credentials import key_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.models.credentials import Secret

TOKEN = "EVALSUITE_GATEWAY_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with a client's token."""

PORT = 4747
"""Where a service listens unless told otherwise."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """One gateway service.

    Attributes:
        url: without a slash at its end.
        token: this client's; None where the service asks for none.
    """

    url: str
    token: Secret | None

    @property
    def headers(self) -> dict[str, str]:
        """What every request bears."""
        return {"Authorization": f"Bearer {self.token.reveal()}"} if self.token else {}


def is_loopback(host: str) -> bool:
    """Whether a host is this one; a name but `localhost` may be anywhere."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def parse_services(text: str, environ: Mapping[str, str] = os.environ) -> list[ServiceAddress]:
    """The services that `--gateway` names, separated by commas.

    Raises:
        SettingsError: one is no address, or would be reached in plain text over a network.
    """
    token = key_from(TOKEN, environ)
    return [ServiceAddress(_checked(url.strip().rstrip("/")), token) for url in text.split(",")]


def _checked(url: str) -> str:
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
