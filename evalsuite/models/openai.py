"""OpenAI, and every server that speaks its chat format: vLLM, Ollama, llama.cpp, Azure.

One POST a call over aiohttp. The openai package would do the same at four times the CPU a call and a
second of import, and its retries, limits and types are the gateway's business here: ARCHITECTURE.md has
the figures.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import getproxies

from evalsuite.errors import BackendUnavailable, RequestRefused, SettingsError
from evalsuite.json_codec import dumps
from evalsuite.models.address import redact
from evalsuite.models.chat_format import read_answer, request_body
from evalsuite.models.protocol import RateLimited, Transient, Unreachable

if TYPE_CHECKING:
    import aiohttp

    from evalsuite.types import Completion, Request

OPENAI = "https://api.openai.com/v1"
RETRIED = {408, 409, 425}
NEVER = {401, 403}
TIMEOUT = 600.0
"""Seconds for one answer, which a long one from a large model does take."""


class OpenAIBackend:
    """See the module.

    Args:
        base_url: where the API is; None is `OPENAI_BASE_URL` or OpenAI itself.
    """

    metered = True
    connections: int | None = None

    def __init__(self, base_url: str | None = None) -> None:
        parts = _address(base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI)
        # Logins and keys are secrets, which no message and no key in the store may hold.
        login, _, host = parts.netloc.rpartition("@")
        self._login = unquote(login)
        self.base_url = redact(urlunsplit((parts.scheme, host, parts.path, parts.query, "")))
        # Azure has its API version in the query, which stays behind the path.
        endpoint = (parts.scheme, host, f"{parts.path}/chat/completions", parts.query, "")
        self._endpoint = urlunsplit(endpoint)
        self.identity = f"openai {self.base_url}"
        self._azure = str(parts.hostname).endswith(".azure.com")
        self._session: aiohttp.ClientSession | None = None

    def check(self) -> None:
        """OpenAI itself wants a key; a server of one's own may not."""
        if not os.environ.get("OPENAI_API_KEY") and (self.base_url == OPENAI or self._azure):
            raise BackendUnavailable(
                f"{self.base_url} needs a key: set OPENAI_API_KEY, name a server of your own with --model-base-url, "
                "or use the embedded model with --model=local:smollm2"
            )

    async def complete(self, request: Request) -> Completion:
        """One POST."""
        import aiohttp

        self.check()
        body = dumps(request_body(request, request.model)).encode()
        try:
            async with self._connected().post(self._endpoint, data=body) as response:
                status, headers, content = response.status, response.headers, await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError) as error:
            raise Unreachable(f"cannot connect to {self.base_url}: {error.strerror or error}") from error
        except TimeoutError as error:
            raise Transient(f"{self.base_url} gave no answer within {TIMEOUT:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Transient(
                f"the connection to {self.base_url} broke: {redact(str(error)) or type(error).__name__}"
            ) from error
        if 200 <= status < 300:
            return read_answer(_json(content))
        words = _words(_without(os.environ.get("OPENAI_API_KEY", "").strip(), content))
        raise failure(status, headers.get("Retry-After"), redact(words), self.base_url)

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            headers = {"Content-Type": "application/json", **self._credentials()}
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT, sock_connect=30),
                headers=headers,
                # Looked up for every call, and at a price, so only where there is a proxy to be found.
                trust_env=bool(getproxies()),
            )
        return self._session

    def _credentials(self) -> dict[str, str]:
        # From a file it comes with the end of its line.
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if self._login:
            return {"Authorization": f"Basic {b64encode(self._login.encode()).decode()}"}
        if not key:
            return {}
        return {"api-key": key} if self._azure else {"Authorization": f"Bearer {key}"}

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _address(text: str) -> SplitResult:
    try:
        parts = urlsplit(text.strip().rstrip("/"))
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        # Without what may be a password.
        shown = redact(text.rpartition("@")[2])
        raise SettingsError(f"base URL {shown!r}: not an address; write http://host:port/v1")
    return parts


def failure(
    status: int, retry_after: str | None, words: str, server: str, key: str = "OPENAI_API_KEY"
) -> Exception:
    """What an HTTP status means to the gateway, with the server's own words."""
    message = f"{server} answered {status}: {words}"
    wait = _seconds(retry_after)
    if status == 429 and "insufficient_quota" not in words:
        return RateLimited(message, wait)
    if status in {503, 529} and wait is not None:
        return RateLimited(message, wait)
    if status in RETRIED or status >= 500:
        return Transient(message)
    if status in NEVER:
        return BackendUnavailable(f"{message} (is {key} the right one for this server?)")
    return RequestRefused(message)


def _seconds(retry_after: str | None) -> float | None:
    """The header's seconds, or its date's; None where it is missing or makes no sense."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    from datetime import UTC, datetime

    # A date without a zone is one of Greenwich.
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise Transient(f"the server's answer is not JSON: {content[:200]!r}") from error


def _without(key: str, content: bytes) -> bytes:
    """Some servers repeat the key that they do not like. One of a few letters is none, but a part of words."""
    return content.replace(key.encode(), b"***") if len(key) >= 8 else content


def _words(content: bytes) -> str:
    """What the server says, from the usual places in its JSON, else as it is; cut to a readable size."""
    try:
        said = json.loads(content)
        error = said.get("error", said)
        words = error.get("message", error) if isinstance(error, dict) else error
        kind = error.get("code") or error.get("type") or "" if isinstance(error, dict) else ""
        text = f"{words} ({kind})" if kind else str(words)
    except (ValueError, AttributeError):
        text = content.decode("utf-8", "replace")
    return text[:500].strip() or "(no words)"
