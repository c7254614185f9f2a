"""Containers of Docker, or Podman: one for each program, without network and without any right."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import time
from typing import TYPE_CHECKING

from evalsuite.errors import SandboxError, SandboxUnavailable
from evalsuite.sandbox.script_hosts import ScriptEnd

if TYPE_CHECKING:
    from evalsuite.sandbox.inside.limits import Limits

COMMANDS = ("docker", "podman")
REFUSED = 125
"""The status with which `docker run` itself fails."""
NOBODY = 65534


class Docker:
    """Containers on this machine, or where DOCKER_HOST points; see `ScriptHost`.

    Args:
        image: has Python 3.11 or newer as `python3`, and the packages that programs may import.
        limits: what one program may use.

    Raises:
        SandboxUnavailable: neither docker nor podman is here.
    """

    alive = True

    def __init__(self, image: str, limits: Limits) -> None:
        self.tier, self._image, self._limits = f"docker:{image}", image, limits
        self.at_once = os.cpu_count() or 1
        command = next(filter(None, map(shutil.which, COMMANDS)), None)
        if command is None:
            raise SandboxUnavailable(f"{self.tier}: neither docker nor podman is installed here")
        self._command = command

    async def run(self, script: str, seconds: float) -> ScriptEnd:
        """Runs a script in a container of its own, which is removed.

        Raises:
            SandboxError: the container could not be started.
        """
        name, started = f"evalsuite-{secrets.token_hex(8)}", time.monotonic()
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.words(name), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        timed_out = False
        answer = asyncio.ensure_future(process.communicate(script.encode()))
        try:
            stdout, stderr = await asyncio.wait_for(asyncio.shield(answer), seconds)
        except TimeoutError:
            timed_out = True
            await self._end(name)
            stdout, stderr = await answer
        except asyncio.CancelledError:
            await self._end(name)
            raise
        status = process.returncode or 0
        if status == REFUSED and not timed_out:
            words = stderr.decode("utf-8", "replace").strip()[-1000:]
            raise SandboxError(f"{self.tier}: a container could not be started: {words}")
        return ScriptEnd(stdout, stderr, status, time.monotonic() - started, timed_out)

    def words(self, name: str) -> list[str]:
        """The command of one container."""
        limits = self._limits
        return [
            *(self._command, "run", "--rm", "--interactive", "--name", name, "--network", "none"),
            *("--read-only", "--tmpfs", f"/tmp:rw,nosuid,nodev,size={limits.files}"),  # noqa: S108 - its own
            *("--workdir", "/tmp", "--user", f"{NOBODY}:{NOBODY}", "--cap-drop", "ALL"),  # noqa: S108 - as above
            *("--security-opt", "no-new-privileges", "--pids-limit", str(limits.processes)),
            *("--memory", str(limits.memory), "--memory-swap", str(limits.memory), "--cpus", "1"),
            *("--ulimit", f"fsize={limits.file}", "--ulimit", f"nofile={limits.descriptors}"),
            *("--env", "HOME=/tmp", "--env", "MPLBACKEND=agg", "--env", "PYTHONHASHSEED=0"),
            *("--env", "TZ=UTC", "--env", "LANG=C.UTF-8", "--pull", "missing"),
            *(self._image, "python3", "-B", "-"),
        ]

    async def _end(self, name: str) -> None:
        quiet = asyncio.subprocess.DEVNULL
        with contextlib.suppress(OSError):
            process = await asyncio.create_subprocess_exec(
                self._command, "kill", name, stdout=quiet, stderr=quiet
            )
            await process.wait()

    async def aclose(self) -> None:
        """Nothing is held between programs."""
