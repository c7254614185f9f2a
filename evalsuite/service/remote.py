"""Connects a session to a gateway service: a backend that forwards requests to the service."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import BackendUnavailable, RunError
from evalsuite.core.json_codec import decode_completion, dumps, encode_request
from evalsuite.gateway.channel import decode_error
from evalsuite.models.protocol import Backend, BrokenConnection, Outage, UnreachableServer

if TYPE_CHECKING:
    import aiohttp

    from evalsuite.core.types import Completion, Request
    from evalsuite.service.clients import ServiceAddress

BROKE_OFF = "the gateway {url} broke off in the middle of an answer"
SILENCE = 60.0  # Seconds without a byte after which a gateway is assumed to be dead.


class RemoteBackend(Backend):
    """Forwards requests to a gateway service.

    An answer's cost is the amount that the service paid for it, possibly in an earlier session. Only the service limits
    the spending, because the session might have different prices.
    """

    def __init__(self, backend: Backend, services: Sequence[ServiceAddress]) -> None:
        self._backend, self._services = backend, services
        self.identity = backend.identity
        self._session: aiohttp.ClientSession | None = None

    async def complete(self, request: Request) -> Completion:
        """Send a request without retries, because the service itself retries."""
        # Send the address explicitly, because the service's environment may define another default address.
        request = replace(request, base_url=getattr(self._backend, "base_url", request.base_url))
        plain = dumps({"request": encode_request(request)}).encode()
        number = int.from_bytes(hashlib.sha256(plain).digest()[:8]) % len(self._services)
        answer = await self._post_request(self._services[number], plain)
        if "error" in answer:
            error = decode_error(answer["error"])
            # `RunError` means that the service cannot reach its store for the moment; the request costs nothing.
            raise Outage(str(error)) if isinstance(error, RunError) else error
        return decode_completion(answer["completion"])

    async def _post_request(self, service: ServiceAddress, body: bytes) -> dict[str, Any]:
        import aiohttp

        headers = {"Content-Type": "application/json", **service.headers}
        if self._session is None:
            times = aiohttp.ClientTimeout(total=None, sock_connect=30.0, sock_read=SILENCE)
            self._session = aiohttp.ClientSession(timeout=times, connector=aiohttp.TCPConnector(limit=0))
        try:
            async with self._session.post(
                f"{service.url}/evalsuite/ask", data=body, headers=headers, allow_redirects=False
            ) as response:
                content = await response.read()
        except aiohttp.ClientConnectorError as error:
            raise UnreachableServer(f"cannot reach the gateway {service.url}: {error}") from error
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError) as error:
            raise BrokenConnection(BROKE_OFF.format(url=service.url)) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise BrokenConnection(f"the gateway {service.url} broke off: {type(error).__name__}: {error}") from error
        return _read_answer(service.url, response.status, content)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            # Wait for one iteration of the event loop, because TLS connections need it to close.
            await asyncio.sleep(0)


def _read_answer(url: str, status: int, content: bytes) -> dict[str, Any]:
    """Return a gateway's answer, which has a completion or an error; raise an exception for any other response."""
    if status >= 500:
        raise Outage(f"the gateway {url} answers {status}")
    if status != 200:
        raise BackendUnavailable(f"the gateway {url} answers {status}: {_read_error_message(content)}")
    try:
        plain = json.loads(content)
    except ValueError as error:
        raise BrokenConnection(BROKE_OFF.format(url=url)) from error
    if not isinstance(plain, dict) or not ({"completion", "error"} & set(plain)):
        raise BackendUnavailable(f"{url} is not an evalsuite gateway: {content[:100]!r}")
    return plain


def _read_error_message(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode("utf-8", "replace")


def check_services(services: Sequence[ServiceAddress]) -> None:
    """Check, before a run begins, that each service answers and accepts this client's token."""
    for service in services:
        asyncio.run(_require_working_gateway(service))


def _explain_failure(url: str, error: Exception) -> str:
    """Explain why a service cannot be reached, and what to do."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or error.certificate_error
        return f"its certificate is not trusted here ({why}); SSL_CERT_FILE=ca.pem names the one that signed it"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"what answers there speaks no TLS: {error}; without --tls-cert a gateway takes http://"
    if isinstance(error, aiohttp.ServerDisconnectedError) and url.startswith("http:"):
        return "what answers there hangs up on plain HTTP; a gateway with --tls-cert takes https://"
    return f"{str(error) or type(error).__name__}; is `evalsuite gateway` running there?"


async def _require_working_gateway(service: ServiceAddress) -> None:
    import aiohttp

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30.0)) as session,
            session.get(f"{service.url}/evalsuite/client", headers=service.headers) as response,
        ):
            content = await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise BackendUnavailable(f"--gateway {service.url}: {_explain_failure(service.url, error)}") from error
    if response.status != 200:
        raise BackendUnavailable(f"--gateway {service.url}: {_read_error_message(content)}")
    try:
        json.loads(content)["client"]
    except (ValueError, KeyError, TypeError) as error:
        raise BackendUnavailable(f"--gateway {service.url}: what answers there is not a gateway") from error
