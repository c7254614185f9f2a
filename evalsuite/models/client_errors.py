"""What the openai package, httpx2 and aiohttp raise, and what it comes down to."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import aiohttp
import httpx2
import openai

from evalsuite.errors import EvalsuiteError
from evalsuite.models.protocol import RateLimited, Transient


@dataclass(frozen=True, slots=True)
class Cause:
    """What an exception comes down to.

    Attributes:
        ours: an exception of ours that the package wrapped.
        response: of the server, where it answered.
        unreachable: nothing was sent, as no connection came about.
        timeout: something took too long.
        network: the connection is to blame, rather than what was to be sent.
        words: of the innermost exception.
    """

    ours: Exception | None
    response: httpx2.Response | None
    unreachable: bool
    timeout: bool
    network: bool
    words: str


def explain(error: BaseException) -> Cause:
    """Looks through an exception and what led to it."""
    links = _chain(error)
    last = links[-1]
    return Cause(
        ours=next((one for one in links if isinstance(one, EvalsuiteError | RateLimited | Transient)), None),
        response=next((one.response for one in links if isinstance(one, openai.APIStatusError)), None),
        unreachable=any(isinstance(one, _UNREACHABLE) for one in links),
        timeout=any(isinstance(one, TimeoutError) for one in links),
        network=any(isinstance(one, _NETWORK) for one in links),
        words=getattr(last, "strerror", None) or str(last) or type(last).__name__,
    )


_UNREACHABLE = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ssl.SSLCertVerificationError)
_NETWORK = (openai.APIConnectionError, httpx2.TransportError, aiohttp.ClientError, OSError)


def _chain(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links
