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
    """Seconds that each part of a call may take.

    Attributes:
        connect: until the connection stands.
        silence: without a byte of the answer, the first one included.
        whole: for the whole call.
    """

    connect: float = 30.0
    silence: float = 600.0
    whole: float = 1800.0


@dataclass(frozen=True, slots=True)
class Access:
    """How a server may be reached.

    Attributes:
        key: sent to it; None where there is none for it.
        key_name: the environment variable that the key came from, or would come from.
        trusted: the user of this session gave the address, so that headers from the environment go there, too.
        advice: what to do where a key is missing or refused.
        timeouts: see `Timeouts`.
        max_answer: bytes of one answer at most, decompressed.
        proxies: whether the proxies of the environment are used.
    """

    key: Secret | None = None
    key_name: str = OPENAI_KEY
    trusted: bool = False
    advice: str = "is the key right?"
    timeouts: Timeouts = field(default_factory=Timeouts)
    max_answer: int = 64 * MEBIBYTE
    proxies: bool = True


def key_from(name: str, environ: Mapping[str, str]) -> Secret | None:
    """The key in an environment variable, without the line end that a file adds to one; None if there is none."""
    text = environ.get(name, "").strip()
    return Secret(text) if text else None
