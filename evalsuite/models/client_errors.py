"""What is behind the exceptions of the openai package, httpx2 and aiohttp."""

from __future__ import annotations

import errno
import ssl
from dataclasses import dataclass

import aiohttp
import httpx2
import openai

from evalsuite.core.errors import EvalsuiteError
from evalsuite.models.protocol import RateLimited, Transient


@dataclass(frozen=True, slots=True)
class Cause:
    """What is behind an exception.

    Attributes:
        ours: an exception of evalsuite that the package wrapped.
        response: of the server, if it sent one.
        unreachable: no connection was established, so nothing was sent.
        no_descriptor: this process may open no more files, and a connection is one.
        timeout: something took too long.
        network: the connection failed, rather than the request.
        words: the message of the innermost exception.
    """

    ours: Exception | None
    response: httpx2.Response | None
    unreachable: bool
    no_descriptor: bool
    timeout: bool
    network: bool
    words: str


def explain(error: BaseException) -> Cause:
    """Examines an exception and its causes."""
    links = _chain(error)
    last = links[-1]
    return Cause(
        ours=next(
            (link for link in links if isinstance(link, EvalsuiteError | RateLimited | Transient)), None
        ),
        response=next((link.response for link in links if isinstance(link, openai.APIStatusError)), None),
        unreachable=any(isinstance(link, _UNREACHABLE) for link in links),
        no_descriptor=any(getattr(link, "errno", None) in _NO_DESCRIPTOR for link in links),
        timeout=any(isinstance(link, TimeoutError) for link in links),
        network=any(isinstance(link, _NETWORK) for link in links),
        words=_words(last),
    )


def _words(error: BaseException) -> str:
    """An exception's message in one line; aiohttp puts a status that no server sent before some of its own."""
    message = getattr(error, "strerror", None) or getattr(error, "message", None) or str(error)
    return " ".join(str(message).split()) or type(error).__name__


_NO_DESCRIPTOR = {errno.EMFILE, errno.ENFILE}
_UNREACHABLE = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ssl.SSLCertVerificationError)
_NETWORK = (openai.APIConnectionError, httpx2.TransportError, aiohttp.ClientError, OSError)


def _chain(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links
