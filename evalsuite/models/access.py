"""How a server may be reached: the key that was given for it, time-outs, and the size of its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalsuite.models.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping

OPENAI_KEY = "OPENAI_API_KEY"
AZURE_KEY = "AZURE_OPENAI_API_KEY"
AZURE_TOKEN = "AZURE_OPENAI_AD_TOKEN"  # noqa: S105 - the name of a variable
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long the parts of a call may take, in seconds.

    Attributes:
        connect: until the connection is established.
        silence: between two bytes of the answer, and before the first.
        whole: the whole call.
    """

    connect: float = 30.0
    silence: float = 600.0
    whole: float = 1800.0


@dataclass(frozen=True, slots=True)
class Access:
    """How a server may be reached.

    Attributes:
        key: sent to the server; None where it gets none.
        key_name: the environment variable that the key came from, or would come from.
        trusted: whether the user gave the address for this session, so that headers from the environment are sent, too.
        advice: what to do where a key is missing or refused.
        timeouts: see `Timeouts`.
        max_answer: largest answer, in bytes after decompression.
        proxies: whether proxies set in the environment are used.
    """

    key: Secret | None = None
    key_name: str = OPENAI_KEY
    trusted: bool = False
    advice: str = "is the key right?"
    timeouts: Timeouts = field(default_factory=Timeouts)
    max_answer: int = 64 * MEBIBYTE
    proxies: bool = True


def key_from(name: str, environ: Mapping[str, str]) -> Secret | None:
    """The key in an environment variable, stripped, since files end in a newline; None if there is none."""
    text = environ.get(name, "").strip()
    return Secret(text) if text else None
