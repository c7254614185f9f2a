"""Workers on other hosts: nobody on the way may read, or answer, what is sent to them."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def refuse_plain(specs: Iterable[Any]) -> None:
    """Refuses workers that would be reached over plain TCP beyond this host.

    Args:
        specs: of execnet, as made from `--tx` and `--px`.

    Raises:
        pytest.UsageError: there is one; nothing has been sent to it.
    """
    for spec in specs:
        if spec.socket and not is_loopback(str(spec.socket)):
            host, _, port = str(spec.socket).rpartition(":")
            raise pytest.UsageError(
                f"worker socket={spec.socket}: prompts, answers and scores would cross the network in plain text, "
                f"and execnet's socket server runs what anybody sends it. Use --tx ssh={host}, or a tunnel "
                f"(ssh -L {port}:127.0.0.1:{port} {host}, then --tx socket=127.0.0.1:{port}); in a network that "
                "is yours alone, allow it with --allow-plain-workers"
            )


def is_loopback(address: str) -> bool:
    """Whether host:port is on this host; any name other than `localhost` may be elsewhere."""
    host = address.rpartition(":")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
