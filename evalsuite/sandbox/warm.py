"""The host's side of the warm interpreter: starts it, sends it programs, and receives reports of how rounds ended."""

import asyncio
import contextlib
import itertools
import json
import os
import socket
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

from evalsuite.core.errors import SandboxError, SandboxUnavailable
from evalsuite.sandbox import tiers
from evalsuite.sandbox.environments import ProgramEnvironment
from evalsuite.sandbox.inside import Limits
from evalsuite.sandbox.tiers import Launch

START_SECONDS = 60.0
# If a program exceeds its time limit by this many seconds, kill the warm interpreter, which failed to stop it.
GRACE_SECONDS = 30.0
MEMORY_SECONDS = 300.0
END_SECONDS = 2.0
# Imports that take 0.5 s or more, keyed by the name that appears in a program.
HEAVY = {
    "scipy": "scipy.stats", "matplotlib": "matplotlib.pyplot", "seaborn": "seaborn", "statsmodels": "statsmodels.api",
    "sklearn": "sklearn.linear_model", "networkx": "networkx",
}  # fmt: skip
PACKET = 1 << 16


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """How a round ended, as the warm interpreter reports it."""

    ending: str  # How the round ended: one of the endings in `inside/forking.py`.
    seconds: float
    alive: bool  # Whether the program's process is still running, so that another round can follow.
    memory: int = 0  # Bytes of memory that the program uses after this round.


class WarmInterpreter:
    """Controls one sandbox's warm interpreter; may be used only in the event loop that made it."""

    def __init__(self, launch: Launch, environment: ProgramEnvironment, limits: Limits, preload: Sequence[str]) -> None:
        self.loop = asyncio.get_running_loop()
        self.tier = launch.tier
        self.setup = {"preload": list(preload), "limits": asdict(limits), "path": list(environment.packages)}
        self.setup |= launch.setup
        self.ready: asyncio.Future[None] = self.loop.create_future()
        self.rounds: dict[int, asyncio.Future[RoundEnd]] = {}
        self.keys = itertools.count(1)  # Numbers the programs.
        # Bytes that each idle session (between two rounds) uses, by the program's number.
        self.waiting: dict[int, int] = {}
        self._memory_freed = asyncio.Event()
        self._loaded = set(preload)
        self.last_message = ""
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setblocking(False)
        self.stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        with theirs:
            try:
                process = subprocess.Popen(  # noqa: S603 - our own command
                    launch.command,
                    cwd=launch.folder,
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=self.stderr,
                    env=tiers.make_environment_variables(environment.interpreter),
                    start_new_session=True,
                )
            except OSError as error:
                raise SandboxUnavailable(f"{launch.command[0]} cannot be started: {error}") from error
        self.end = weakref.finalize(
            self, _end_interpreter, process, self.socket, self.stderr, self.ready, launch.clean_up
        )
        self.loop.add_reader(self.socket, self._receive_report)

    @property
    def is_alive(self) -> bool:
        """Whether the warm interpreter is still running, so that programs can be started."""
        return bool(self.end.alive)

    async def wait_until_ready(self) -> None:
        """Wait until the interpreter has imported the packages and isolated a trial program."""
        try:
            await self._send_order(self.setup)
            await asyncio.wait_for(self.ready, START_SECONDS)
        except TimeoutError:
            self.close("it did not get ready")
            raise SandboxUnavailable(f"not ready within {START_SECONDS:.0f} s") from None
        except SandboxError as error:
            raise SandboxUnavailable(str(error)) from error
        except asyncio.CancelledError:
            self.close("its start was cancelled")
            raise

    async def import_mentioned_packages(self, code: str) -> None:
        """Import those slow packages (`HEAVY`) that a program mentions; later programs also have them."""
        modules = [module for name, module in HEAVY.items() if name in code and module not in self._loaded]
        if modules:
            self._loaded.update(modules)
            await self._send_order({"op": "load", "modules": modules})

    async def kill_program(self, key: int) -> None:
        self._remove_idle_session(key)
        with contextlib.suppress(SandboxError):
            await self._send_order({"op": "end", "key": key})

    async def wait_for_memory(self, most: int) -> None:
        """Wait until idle sessions (between two rounds) together use at most this many bytes.

        Wait only for `MEMORY_SECONDS`, because a caller with two open sessions may be waiting for itself.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MEMORY_SECONDS):
                while self.is_alive and sum(self.waiting.values()) > most:
                    self._memory_freed.clear()
                    await self._memory_freed.wait()

    def _remove_idle_session(self, key: int) -> None:
        if self.waiting.pop(key, None) is not None:
            self._memory_freed.set()

    async def aclose(self) -> None:
        self.close("the sandbox was closed while the program ran")

    def close(self, reason: str) -> None:
        """Kill all processes and release all resources; every waiting call fails with the message `reason`."""
        if not self.is_alive:
            return
        self.loop.remove_reader(self.socket)
        self._memory_freed.set()
        waiting: list[asyncio.Future[Any]] = [self.ready, *self.rounds.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(SandboxError(reason))
                future.exception()  # Retrieve the exception; otherwise asyncio would warn that nobody did.
        self.end()

    async def run_round(
        self, key: int, seconds: float, files: Sequence[int] = (), *, is_only_round: bool = False
    ) -> RoundEnd:
        """Run a program's first round if `files` are given (they become its open files), else its next round."""
        self._remove_idle_session(key)
        order = {"op": "start" if files else "go", "key": key, "timeout": seconds, "once": is_only_round}
        future: asyncio.Future[RoundEnd] = self.loop.create_future()
        self.rounds[key] = future
        try:
            await self._send_order(order, files)
            end = await asyncio.wait_for(future, seconds + GRACE_SECONDS)
        except TimeoutError:
            self.close("the sandbox was ended, as its warm interpreter did not answer")
            raise SandboxError("the sandbox's warm interpreter did not answer, and was ended") from None
        finally:
            del self.rounds[key]
        if end.alive:
            self.waiting[key] = end.memory
        return end

    async def _send_order(self, order: dict[str, Any], files: Sequence[int] = ()) -> None:
        packet = json.dumps(order).encode()
        while self.is_alive:
            try:
                socket.send_fds(self.socket, [packet], files)
            except BlockingIOError:
                await asyncio.sleep(0.01)
            except OSError:
                self._close_after_disconnect()
            else:
                return
        raise SandboxError(f"the sandbox has ended{self.last_message}")

    def _receive_report(self) -> None:
        try:
            packet = self.socket.recv(PACKET)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self._close_after_disconnect()
            return
        answer = json.loads(packet)
        ready = "ready" in answer
        future: asyncio.Future[Any] | None = self.ready if ready else self.rounds.get(answer.pop("key"))
        if future is not None and not future.done():
            future.set_result(None if ready else RoundEnd(**answer))

    def _close_after_disconnect(self) -> None:
        message = os.pread(self.stderr.fileno(), 4000, 0).decode("utf-8", "replace").strip()
        self.last_message = f": {message}" if message else ""
        self.close(f"the sandbox has ended{self.last_message}")


def _end_interpreter(
    process: subprocess.Popen[bytes],
    control: socket.socket,
    stderr: IO[bytes],
    ready: asyncio.Future[None],
    clean_up: Callable[[], None],
) -> None:
    """Close the socket, which ends the warm interpreter and all programs; kill an interpreter that does not end."""
    control.close()
    is_warm = ready.done() and not ready.cancelled() and ready.exception() is None
    try:
        process.wait(END_SECONDS if is_warm else 0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    stderr.close()
    clean_up()
