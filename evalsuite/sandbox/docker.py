"""Containers of Docker, or Podman: one for each program, without network and without any right."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from evalsuite.core.errors import SandboxError, SandboxUnavailable
from evalsuite.sandbox.script_hosts import ScriptEnd

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from evalsuite.sandbox.inside.limits import Limits

COMMANDS = ("docker", "podman")
REFUSED = 125
"""The status with which `docker run` itself fails."""
NOBODY = 65534
MOST_PROCESSES = 8192
"""Of the user `nobody` in all containers together: some engines may not set the higher limit that is their default."""
ASK_SECONDS = 10.0
CHUNK, MOST_ERROR = 1 << 16, 8 << 20
"""Bytes read at a time; and of standard error, on which a program's traceback and files come."""


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
        commands = [command for command in map(shutil.which, COMMANDS) if command]
        if not commands:
            raise SandboxUnavailable(f"{self.tier}: neither docker nor podman is installed here")
        # Where both are installed, often only one has an engine; where neither has, the first one says why.
        self._command = next(filter(_answers, commands), commands[0]) if len(commands) > 1 else commands[0]

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
        answer = asyncio.ensure_future(self._conversation(process, script.encode(), name))
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

    async def _conversation(self, process: Process, script: bytes, name: str) -> tuple[bytes, bytes]:
        """Hands over the script and reads both outputs to their end; a program that floods one is ended."""
        streams = ((process.stdout, self._limits.output + 1), (process.stderr, MOST_ERROR))
        reading = asyncio.gather(*(self._read(stream, most, name) for stream, most in streams))
        await _hand_over(process, script)
        stdout, stderr = await reading
        await process.wait()
        return stdout, stderr

    async def _read(self, stream: asyncio.StreamReader | None, most: int, name: str) -> bytes:
        if stream is None:
            return b""
        kept, ending = bytearray(), None
        while chunk := await stream.read(CHUNK):
            kept += chunk[: most - len(kept)]
            if len(kept) == most and ending is None:
                # Reading goes on, as the engine may wait for what it has to hand over before it ends a container.
                ending = asyncio.ensure_future(self._end(name))
        if ending is not None:
            await ending
        return bytes(kept)

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
            # An engine's log would keep on the disk whatever is printed.
            *("--ulimit", f"nproc={MOST_PROCESSES}", "--log-driver", "none"),
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


async def _hand_over(process: Process, script: bytes) -> None:
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(script)
        await process.stdin.drain()
    process.stdin.close()


def _answers(command: str) -> bool:
    """Whether the engine behind a command answers: a client of Docker may be there without its daemon."""
    try:
        asked = subprocess.run([command, "version"], capture_output=True, timeout=ASK_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0
