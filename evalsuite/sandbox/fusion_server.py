"""A server that speaks SandboxFusion's protocol (github.com/bytedance/SandboxFusion): `POST /run_code`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SandboxError
from evalsuite.core.redaction import redact
from evalsuite.sandbox.script_hosts import ScriptEnd

if TYPE_CHECKING:
    import aiohttp

    from evalsuite.sandbox.inside.limits import Limits

GRACE_SECONDS = 30.0
LARGEST = 64 << 20
"""Bytes of an answer."""


class FusionServer:
    """A remote sandbox; see `ScriptHost`.

    Args:
        url: of the server, for example `http://127.0.0.1:8080`.
        limits: of which the server is told the one on memory.
    """

    at_once = 16
    alive = True

    def __init__(self, url: str, limits: Limits) -> None:
        self._url, self._memory = url.rstrip("/"), limits.memory >> 20
        self.tier = redact(self._url)
        self._client: aiohttp.ClientSession | None = None

    async def run(self, script: str, seconds: float) -> ScriptEnd:
        """Runs a script there.

        Raises:
            SandboxError: the server cannot be reached, refuses, or answers something else.
        """
        request = {
            "code": script,
            "language": "python",
            "run_timeout": seconds,
            "memory_limit_MB": self._memory,
        }
        answer = await self._post(request, seconds + GRACE_SECONDS)
        result = answer.get("run_result") or answer.get("compile_result")
        if answer.get("status") == "SandboxError" or not isinstance(result, dict):
            raise SandboxError(f"{self.tier} could not run a program: {str(answer.get('message'))[:500]}")
        status = result.get("return_code")
        return ScriptEnd(
            str(result.get("stdout") or "").encode("utf-8", "replace"),
            str(result.get("stderr") or "").encode("utf-8", "replace"),
            status if isinstance(status, int) else 1,
            float(result.get("execution_time") or 0.0),
            result.get("status") == "TimeLimitExceeded",
        )

    async def _post(self, asked: dict[str, Any], seconds: float) -> dict[str, Any]:
        import json

        import aiohttp

        if self._client is None:
            self._client = aiohttp.ClientSession()
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            async with self._client.post(f"{self._url}/run_code", json=asked, timeout=limit) as response:
                data = await response.content.read(LARGEST)
                if response.status != 200:
                    words = data[:300].decode("utf-8", "replace")
                    raise SandboxError(f"{self.tier} answers with status {response.status}: {words}")
                answer = json.loads(data)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            words = str(error) or type(error).__name__
            raise SandboxError(f"{self.tier}/run_code cannot be used: {words}") from error
        if not isinstance(answer, dict):
            raise SandboxError(f"{self.tier}/run_code answers no JSON object")
        return answer

    async def aclose(self) -> None:
        """Closes the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
