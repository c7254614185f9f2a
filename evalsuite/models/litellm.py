"""A backend for about a hundred other providers, through the package litellm (extra `litellm`)."""

import asyncio
import importlib.util
import os
import re
import warnings
from contextlib import suppress
from typing import Any

from evalsuite.core.errors import BackendUnavailable, RequestRefused
from evalsuite.core.redaction import redact
from evalsuite.core.types import Completion, Request
from evalsuite.models import protocol
from evalsuite.models.openai_formats import build_chat_body, parse_chat_answer
from evalsuite.models.protocol import Backend, BrokenConnection, LostAnswer, UnreachableServer

KEY_HINT = "is the provider's key in the environment the right one?"
MISSING_KEY = re.compile(r"\bmissing\b.{0,40}\b(?:api key|credentials)", re.IGNORECASE)


class LitellmBackend(Backend):
    """`litellm:provider/name`, a model called through litellm, which reads keys from environment variables."""

    metered = True

    def __init__(self, name: str, base_url: str | None = None) -> None:
        self.name, self.base_url = name, base_url
        self.identity = f"litellm {name} {redact(base_url or '')}".strip()
        self._package: Any = None
        self._importing = asyncio.Lock()

    def check(self) -> None:
        if importlib.util.find_spec("litellm") is None:
            raise BackendUnavailable(
                f"--model litellm:{self.name} needs the extra `litellm`: pip install 'evalsuite[litellm]'"
            )

    async def prepare(self) -> None:
        """Import litellm before the first call, to avoid a delay; if the import fails, `complete` reports the error."""
        with suppress(Exception):
            await self._import_litellm_once()

    async def _import_litellm_once(self) -> None:
        async with self._importing:
            if self._package is None:
                self.check()
                # Import in a thread, so that other calls continue; the import takes many seconds.
                self._package = await asyncio.to_thread(_import_litellm)

    async def complete(self, request: Request) -> Completion:
        for name, usual in (("api", "chat"), ("stream", False)):
            if (value := request.params.get(name) or usual) != usual:
                raise BackendUnavailable(f"litellm:{self.name} gives whole chat completions only, not {name}={value}")
        await self._import_litellm_once()
        body = build_chat_body(request, self.name)
        if request.params.get("extra_headers"):
            body["extra_headers"] = request.params["extra_headers"]
        if self.base_url:
            body["api_base"] = self.base_url
        failed: Exception | None = None
        try:
            _silence_warnings()
            answer = await self._package.acompletion(**body, num_retries=0, max_retries=0)
        except Exception as error:  # noqa: BLE001 - its classes vary
            failed = self._convert_error(error)
        _silence_warnings()
        if failed is not None:
            # Raise it here, because stack frames of the client, which `except` would add, contain the key.
            raise failed
        return parse_chat_answer(answer.model_dump())

    def _convert_error(self, error: Exception) -> Exception:
        """Convert litellm's exception according to its HTTP status, because the exception classes vary by provider.

        litellm also gives a status to failures without one: 500, or 408 after a time-out. A lost or unreadable answer
        may be billed, so it must not be repeated like a call that the server refused with such a status.
        """
        from evalsuite.models.openai_client import NETWORK, UNREACHABLE, list_causes

        # Drop the traceback that litellm adds to some messages.
        words = redact(str(error).partition("Traceback (most recent call last)")[0].strip())[: protocol.LONGEST_WORDS]
        status, causes = getattr(error, "status_code", None), list_causes(error)
        if not isinstance(status, int):
            return RequestRefused(f"litellm:{self.name}: {type(error).__name__}: {words}")
        answered = any(type(cause).__name__ == "HTTPStatusError" for cause in causes)
        if not answered and (status >= 500 or status == 408):
            message = f"litellm:{self.name}: {words}"
            if MISSING_KEY.search(words):
                return BackendUnavailable(f"{message} ({KEY_HINT})")
            if any(isinstance(cause, UNREACHABLE) for cause in causes):
                return UnreachableServer(message)
            is_broken = isinstance(causes[-1], NETWORK) and not isinstance(causes[-1], TimeoutError)
            return (BrokenConnection if is_broken else LostAnswer)(message)
        sent = getattr(error, "litellm_response_headers", None) or {}
        headers = {str(name).lower(): str(value) for name, value in sent.items()}
        return protocol.make_status_error(status, headers, words, f"litellm:{self.name}", KEY_HINT)

    async def aclose(self) -> None:
        close = getattr(self._package, "close_litellm_async_clients", None)
        if close is not None:
            await close()


def _silence_warnings() -> None:
    """Ignore litellm's warnings about pydantic; repeat this for each request, because pytest resets warning filters."""
    warnings.filterwarnings("ignore", module=r"(litellm|pydantic)\b")


def _import_litellm() -> Any:
    _silence_warnings()
    # Use the price table in litellm's package, because without a network a download would wait long.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True  # Suppress litellm's hints on the terminal.
    return litellm
