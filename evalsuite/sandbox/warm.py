"""The host's end of the warm interpreter: starts it, hands it programs, and receives how their rounds ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import tempfile
import weakref
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING, Any

from evalsuite.core.errors import SandboxError, SandboxUnavailable
from evalsuite.sandbox import tiers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalsuite.sandbox.environments import ProgramEnvironment
    from evalsuite.sandbox.inside import Limits
    from evalsuite.sandbox.tiers import Way

START_SECONDS = 60.0
# The warm interpreter stops programs by itself; where it is silent this much longer, it is given up.
GRACE_SECONDS = 30.0
ROOM_SECONDS = 300.0
END_SECONDS = 2.0
HEAVY = {
    "scipy": "scipy.stats",
    "matplotlib": "matplotlib.pyplot",
    "seaborn": "seaborn",
    "statsmodels": "statsmodels.api",
    "sklearn": "sklearn.linear_model",
    "networkx": "networkx",
}
"""What takes half a second or more to import, by the word that tells that a program wants it."""
PACKET = 1 << 16


@dataclass(frozen=True, slots=True)
class Ending:
    """How a round ended, as the warm interpreter reports it (see `inside/forking.py`).

    Attributes:
        how: the ending.
        seconds: that it took.
        alive: whether another round may follow.
        memory: bytes that the program has while it waits for that one.
    """

    how: str
    seconds: float
    alive: bool
    memory: int = 0


class WarmInterpreter:
    """One sandbox's processes and the socket to them, on the event loop that started them.

    Args:
        way: how it is started.
        environment: its interpreter, and what programs may import.
        limits: what one program may use.
        preload: modules that are loaded before any program.

    Raises:
        SandboxUnavailable: it cannot even be started.
    """

    def __init__(self, way: Way, environment: ProgramEnvironment, limits: Limits, preload: Sequence[str]) -> None:
        self.loop = asyncio.get_running_loop()
        self.tier = way.tier
        self.setup = {
            "preload": list(preload),
            "limits": asdict(limits),
            "path": list(environment.packages),
            **way.setup,
        }
        self.ready: asyncio.Future[None] = self.loop.create_future()
        self.rounds: dict[int, asyncio.Future[Ending]] = {}
        self.keys = 0
        # Bytes of each session that waits between two rounds.
        self.waiting: dict[int, int] = {}
        self._eased = asyncio.Event()
        self._loaded = set(preload)
        self.last_message = ""
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setblocking(False)
        self.complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        with theirs:
            process = _start_process(way, environment, theirs, self.complaints)
        self.end = weakref.finalize(self, _end, process, self.socket, self.complaints, self.ready, way.clear)
        self.loop.add_reader(self.socket, self._receive)

    @property
    def alive(self) -> bool:
        """Whether programs can be run."""
        return bool(self.end.alive)

    async def start(self) -> None:
        """Waits until it is warm and has proven that it can isolate a program.

        Raises:
            SandboxUnavailable: it does not work on this machine.
        """
        try:
            await self._send(self.setup)
            await asyncio.wait_for(self.ready, START_SECONDS)
        except TimeoutError:
            self.close("it did not get ready")
            raise SandboxUnavailable(f"not ready within {START_SECONDS:.0f} s") from None
        except SandboxError as error:
            raise SandboxUnavailable(str(error)) from error
        except asyncio.CancelledError:
            self.close("its start was cancelled")
            raise

    async def load(self, code: str) -> None:
        """Has it load the heavy packages that a program mentions, once, for this program and all later ones."""
        modules = [module for name, module in HEAVY.items() if name in code and module not in self._loaded]
        if modules:
            self._loaded.update(modules)
            await self._send({"op": "load", "modules": modules})

    def new_key(self) -> int:
        """Return the number of the next program."""
        self.keys += 1
        return self.keys

    async def begin(self, key: int, files: Sequence[int], seconds: float, *, once: bool) -> Ending:
        """Forks a program and waits for the end of its first round, or of its only one.

        Args:
            key: a new one.
            files: descriptors of its payload, standard output and standard error.
            seconds: wall time limit of the round.
            once: whether this round is the only one.
        """
        order = {"op": "start", "key": key, "timeout": seconds, "once": once}
        return await self._round(order, seconds, files)

    async def room(self, most: int) -> None:
        """Waits until sessions between two rounds have at most so many bytes together, so that another may begin.

        Not for ever: whoever holds a session while it waits for another one would stand in its own way.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ROOM_SECONDS):
                while self.alive and sum(self.waiting.values()) > most:
                    self._eased.clear()
                    await self._eased.wait()

    def _forget(self, key: int) -> None:
        if self.waiting.pop(key, None) is not None:
            self._eased.set()

    async def proceed(self, key: int, seconds: float) -> Ending:
        """Runs another round of a program that is alive."""
        self._forget(key)
        return await self._round({"op": "go", "key": key, "timeout": seconds}, seconds)

    async def dismiss(self, key: int) -> None:
        """Kills a program, if it is alive."""
        self._forget(key)
        with contextlib.suppress(SandboxError):
            await self._send({"op": "end", "key": key})

    async def aclose(self) -> None:
        """Ends it, and every program with it."""
        self.close("the sandbox was closed while the program ran")

    def close(self, reason: str) -> None:
        """Kills every process and releases all resources; whatever still waits fails with this reason."""
        if not self.alive:
            return
        self.loop.remove_reader(self.socket)
        self._eased.set()
        waiting: list[asyncio.Future[Any]] = [self.ready, *self.rounds.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(SandboxError(reason))
                future.exception()  # nobody may be waiting any more, which asyncio would complain of
        self.end()

    async def _round(self, order: dict[str, Any], seconds: float, files: Sequence[int] = ()) -> Ending:
        future: asyncio.Future[Ending] = self.loop.create_future()
        self.rounds[order["key"]] = future
        try:
            await self._send(order, files)
            ending = await asyncio.wait_for(future, seconds + GRACE_SECONDS)
        except TimeoutError:
            self.close("the sandbox was ended, as its warm interpreter did not answer")
            raise SandboxError("the sandbox's warm interpreter did not answer, and was ended") from None
        finally:
            del self.rounds[order["key"]]
        if ending.alive:
            self.waiting[order["key"]] = ending.memory
        return ending

    async def _send(self, order: dict[str, Any], files: Sequence[int] = ()) -> None:
        packet = json.dumps(order).encode()
        while self.alive:
            try:
                socket.send_fds(self.socket, [packet], files)
            except BlockingIOError:
                await asyncio.sleep(0.01)
            except OSError:
                self._lost()
            else:
                return
        raise SandboxError(f"the sandbox has ended{self.last_message}")

    def _receive(self) -> None:
        try:
            packet = self.socket.recv(PACKET)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self._lost()
            return
        answer = json.loads(packet)
        ready = "ready" in answer
        future: asyncio.Future[Any] | None = self.ready if ready else self.rounds.get(answer["key"])
        if future is not None and not future.done():
            future.set_result(None if ready else _ending(answer))

    def _lost(self) -> None:
        """Close everything, because the interpreter has closed its end of the socket."""
        words = os.pread(self.complaints.fileno(), 4000, 0).decode("utf-8", "replace").strip()
        self.last_message = f": {words}" if words else ""
        self.close(f"the sandbox has ended{self.last_message}")


def _ending(answer: dict[str, Any]) -> Ending:
    return Ending(answer["ending"], answer["seconds"], answer["alive"], answer.get("memory", 0))


def _start_process(
    way: Way, environment: ProgramEnvironment, control: socket.socket, complaints: IO[bytes]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - our own command
            way.command,
            cwd=way.folder,
            stdin=control.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env=tiers.program_variables(environment.interpreter),
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxUnavailable(f"{way.command[0]} cannot be started: {error}") from error


def _end(
    process: subprocess.Popen[bytes],
    control: socket.socket,
    complaints: IO[bytes],
    ready: asyncio.Future[None],
    clear: Callable[[], None],
) -> None:
    """Closes the socket, which ends the warm interpreter and all its programs; kills it if that does not help."""
    control.close()
    warm = ready.done() and not ready.cancelled() and ready.exception() is None
    try:
        process.wait(END_SECONDS if warm else 0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    complaints.close()
    clear()
