"""The warm interpreter: loads what programs need once, forks for each program, and says how each round ended.

The host sends commands in packets of JSON on its standard input, one packet per message:

    {"preload": [...], "limits": {...}, "path": [...], "kept": [...]} first; answered by {"ready": true}
    {"op": "start", "key": 7, "timeout": 10.0, "once": false} with the descriptors (payload, stdout, stderr, files)
    {"op": "go", "key": 7, "timeout": 10.0}                           another round of the same program
    {"op": "end", "key": 7}                                           kills it
    {"op": "load", "modules": ["matplotlib.pyplot"]}                  imports them, for the programs to come

It answers each round with `{"key": 7, "ending": ..., "seconds": ..., "alive": ...}`. The ending is `ok`, `raised`,
`timeout`, `cpu`, `memory`, `output`, `exit <status>` or `signal <number>`. Where the program's own code was not
reached, it is `table`, `unfit`, `early <ending>` or `refused <reason>`; `gone` if it died between its rounds.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import io
import json
import math
import os
import resource
import select
import signal
import socket
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from . import Limits, kernel, program
from .kernel import CHANNEL, FILES, PAYLOAD, STDERR, STDOUT, keep_only

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager


PATROL_SECONDS = 0.05
SPARE_DESCRIPTORS = 16
DYING_SECONDS = 1.0
# Kernel memory of a full socket, which no process's address space contains.
SOCKET_BYTES = 1 << 20


class ForkingInterpreter:
    """A warm interpreter that forks one child per program; the host commands it over `control`."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        _allow_many_descriptors()
        setup = json.loads(control.recv(1 << 16))
        sys.path[:1] = [""]  # everything of this folder is loaded; programs import from where they are
        sys.path += setup["path"]
        self.limits = Limits(**setup["limits"])
        try:
            self.isolation = make_isolation(setup, self.limits)
        except OSError as error:
            sys.exit(str(error))
        self._load(setup["preload"])
        self.programs: dict[int, Forked] = {}
        self.by_descriptor: dict[int, Forked] = {}
        self.poll = select.poll()
        # Registered first, so that its events come first.
        self.poll.register(control, select.POLLIN)

    def _load(self, modules: list[str]) -> None:
        # Where this process stands there may be modules of ours with names that a package tries, such as `tables`.
        own_folder = sys.path.pop(0)
        with self.isolation.room_to_load() as folder, write_to(folder):
            for name in modules:
                _load(name)
        sys.path.insert(0, own_folder)
        gc.collect()
        gc.freeze()  # a collection in a forked process would copy every page
        self.baseline = kernel.address_space(os.getpid())

    def serve(self) -> NoReturn:
        """Runs until the host goes away."""
        self.isolation.prove()
        self._tell(ready=True)
        while True:
            for descriptor, _ in self.poll.poll(self._patience()):
                if descriptor == self.control.fileno():
                    self._obey()
                    # What is left of the batch may speak of descriptors that the order has closed, and of
                    # which it has opened the numbers anew; it will be said again.
                    break
                if (forked := self.by_descriptor.get(descriptor)) is not None:
                    self._attend(forked, descriptor)
            self._patrol()

    def _obey(self) -> None:
        packet, descriptors, _, _ = socket.recv_fds(self.control, 1 << 16, 4)
        if not packet:
            for each in self.programs.values():
                each.kill()
            os._exit(0)
        order = json.loads(packet)
        if order["op"] == "start":
            self._start(order, descriptors)
            return
        if order["op"] == "load":
            self._load(order["modules"])
            return
        forked = self.programs.get(order["key"])
        if order["op"] == "end":
            if forked is not None:
                forked.stop_clock()
                forked.kill()
        elif forked is None or forked.dead:
            self._tell(key=order["key"], ending="gone", seconds=0.0, alive=False)
        else:
            forked.clock(order["timeout"])
            forked.wake()

    def _start(self, order: dict[str, Any], descriptors: list[int]) -> None:
        try:
            forked = self._fork_program(order, *descriptors)
        except OSError as error:  # too many at a time: of descriptors, processes or namespaces
            for descriptor in descriptors:
                os.close(descriptor)
            self._tell(key=order["key"], ending=f"refused {error}", seconds=0.0, alive=False)
            return
        forked.clock(order["timeout"])

    def _fork_program(self, order: dict[str, Any], payload: int, out: int, err: int, files: int) -> Forked:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            wanted = {STDOUT: out, STDERR: err, CHANNEL: theirs.fileno(), PAYLOAD: payload}
            wanted[FILES] = files
            try:
                pid = self._fork(wanted, order["key"])
            except OSError:
                # Programs that were told to end may still hold what there is too little of.
                self._see_out_the_killed()
                pid = self._fork(wanted, order["key"])
        for descriptor in (payload, err, files):
            os.close(descriptor)
        ours.setblocking(False)
        forked = Forked(self.isolation, order["key"], pid, os.pidfd_open(pid), ours, out, order["once"])
        self.programs[forked.key] = forked
        for descriptor in (forked.pidfd, ours.fileno()):
            self.by_descriptor[descriptor] = forked
            self.poll.register(descriptor, select.POLLIN)
        return forked

    def _see_out_the_killed(self) -> None:
        end = time.monotonic() + DYING_SECONDS
        for forked in [forked for forked in self.programs.values() if forked.killed]:
            if forked.dies_within(end - time.monotonic()):
                self._attend(forked, forked.pidfd)

    def _fork(self, descriptors: dict[int, int], key: int) -> int:
        _leave_spare_descriptors()
        pid = self.isolation.fork()
        if pid == 0:
            self._become_program(descriptors, key)
        return pid

    def _become_program(self, descriptors: dict[int, int], key: int) -> NoReturn:
        try:  # nothing may get from here back into the loop
            self._shut_in(descriptors, key)
            program.serve()
        finally:
            os._exit(1)

    def _shut_in(self, descriptors: dict[int, int], key: int) -> None:
        keep_only(descriptors)
        try:
            self.isolation.shut_in(key)
        except OSError as error:
            program.give_up(error)

    def _attend(self, forked: Forked, descriptor: int) -> None:
        if descriptor == forked.pidfd:
            while status := forked.read_status():
                self._believe(forked, status)
            self._bury(forked)
        elif status := forked.read_status():
            self._believe(forked, status)
        else:
            self._hang_up(forked)  # the process itself will tell how it ends

    def _believe(self, forked: Forked, status: bytes) -> None:
        if status == program.LOADED:
            forked.loaded = True
        elif not forked.loaded:
            self._end_round(forked, "unfit" if status == program.UNFIT else "table")
        elif forked.running:
            self._end_round(forked, "ok" if status == program.OK else "raised")

    def _end_round(self, forked: Forked, ending: str) -> None:
        seconds = forked.stop_clock()
        alive = not forked.once and forked.pause()
        if not alive:
            forked.kill()
        memory = self._memory({forked.pid}) if alive else 0
        self._tell(key=forked.key, ending=ending, seconds=seconds, alive=alive, memory=memory)

    def _bury(self, forked: Forked) -> None:
        self._hang_up(forked)
        self._forget(forked.pidfd)
        del self.programs[forked.key]
        running, ending = forked.running, forked.bury()
        if running:
            ending = ending if forked.loaded else f"early {ending}"
            self._tell(key=forked.key, ending=ending, seconds=forked.stop_clock(), alive=False)

    def _hang_up(self, forked: Forked) -> None:
        if forked.channel is not None:
            self._forget(forked.channel.fileno())
            forked.channel.close()
            forked.channel = None

    def _forget(self, descriptor: int) -> None:
        del self.by_descriptor[descriptor]
        self.poll.unregister(descriptor)

    def _patrol(self) -> None:
        now = time.monotonic()
        running = [forked for forked in self.programs.values() if forked.running]
        for forked in running:
            if now >= forked.deadline:
                forked.kill("timeout")
        if long := [forked for forked in running if now >= forked.started + PATROL_SECONDS]:
            families = self.isolation.families([forked.pid for forked in long])
            for forked in long:
                if limit := self._limit_met(forked, families[forked.pid]):
                    forked.kill(limit)

    def _limit_met(self, forked: Forked, family: set[int]) -> str | None:
        if sum(map(kernel.cpu_seconds, family)) > forked.cpu_deadline:
            return "cpu"
        if self._memory(family) > self.limits.memory:
            return "memory"
        if os.fstat(forked.out).st_size > self.limits.output:
            return "output"
        return self.isolation.excess(forked.key, family) or None

    def _memory(self, pids: set[int]) -> int:
        """Bytes that these processes may have beyond what they have from the warm interpreter."""
        mapped = sum(max(0, kernel.address_space(pid) - self.baseline) for pid in pids)
        return mapped + SOCKET_BYTES * kernel.sockets(pids)

    def _patience(self) -> int | None:
        """Milliseconds until somebody must be looked after."""
        deadlines = [forked.deadline for forked in self.programs.values() if forked.running]
        if not deadlines:
            return None
        wait = min(PATROL_SECONDS, min(deadlines) - time.monotonic())
        return max(1, math.ceil(1000 * wait))

    def _tell(self, **facts: Any) -> None:
        self.control.send(json.dumps(facts).encode())


def _allow_many_descriptors() -> None:
    """Three for each session that waits for its model; programs have a limit of their own."""
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1 << 16)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _leave_spare_descriptors() -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    next_one = os.dup(0)
    os.close(next_one)
    if next_one > limit - SPARE_DESCRIPTORS:
        raise OSError(errno.EMFILE, f"{os.strerror(errno.EMFILE)}: more than {limit} are not allowed")


def _load(name: str) -> None:
    before = set(sys.modules)
    try:
        importlib.import_module(name)
        warm_up(name)
    except Exception:  # noqa: BLE001 - what does not work here is for the programs that need it to say
        # A module that was imported by half would fail in another way than one that was not.
        for half in set(sys.modules) - before:
            del sys.modules[half]


@dataclass(slots=True, eq=False)
class Forked:
    """One program's first process, with which the kernel ends all others of its pid namespace.

    Attributes:
        isolation: the way in which the program is isolated.
        key: what the host calls it.
        pid: its number here; it is not reaped before `bury`, so it stays its own.
        pidfd: readable once it is dead.
        channel: a byte of status from it, a byte to wake it; None once it has closed it.
        out: its standard output, of which only the size is looked at.
        once: whether it has one round only.
        started, deadline: of the round, in monotonic seconds; the deadline is infinite between rounds.
        cpu_deadline: of the round, in seconds of CPU time of all its processes together.
        loaded: whether its tables are there, and its own code has begun.
        killed: whether it was, though it may not be dead yet.
        verdict: why it was killed, if for a limit.
    """

    isolation: Isolation
    key: int
    pid: int
    pidfd: int
    channel: socket.socket | None
    out: int
    once: bool
    started: float = 0.0
    deadline: float = math.inf
    cpu_deadline: float = math.inf
    loaded: bool = False
    killed: bool = False
    verdict: str | None = None

    @property
    def running(self) -> bool:
        """Whether a round is under way."""
        return self.deadline < math.inf

    @property
    def dead(self) -> bool:
        """Whether it waits for its burial."""
        return self.dies_within(0)

    def dies_within(self, seconds: float) -> bool:
        """Waits for its death, but not for long."""
        return bool(select.select([self.pidfd], [], [], max(0, seconds))[0])

    def clock(self, timeout: float) -> None:
        """Starts a round's time, on the clock and of the CPU."""
        self.started = time.monotonic()
        self.deadline = self.started + timeout
        self.cpu_deadline = kernel.cpu_seconds(self.pid) + timeout

    def stop_clock(self) -> float:
        """Ends a round; returns its seconds."""
        self.deadline = math.inf
        return time.monotonic() - self.started

    def read_status(self) -> bytes:
        """Read a byte from the channel; empty if the program has closed its end."""
        try:
            return self.channel.recv(1) if self.channel else b""
        except OSError:
            return b""

    def pause(self) -> bool:
        """Stops it between rounds; False if it has left other processes, which cannot be stopped with it."""
        os.kill(self.pid, signal.SIGSTOP)
        return self.channel is not None and len(self.isolation.families([self.pid])[self.pid]) == 1

    def wake(self) -> None:
        """Lets it run its next round; whatever it said in between is forgotten."""
        if self.channel is not None:
            with contextlib.suppress(OSError):
                while self.channel.recv(1):
                    pass
            with contextlib.suppress(OSError):
                self.channel.send(b"g")
        os.kill(self.pid, signal.SIGCONT)

    def kill(self, verdict: str | None = None) -> None:
        """Kills it and all that came from it."""
        self.killed = True
        self.verdict = self.verdict or verdict
        with contextlib.suppress(ProcessLookupError):  # it died by itself
            self.isolation.kill(self.pid)

    def bury(self) -> str:
        """Reaps it and lets go of everything; returns how it ended."""
        status = self.isolation.reap(self.pid, self.key)
        os.close(self.pidfd)
        os.close(self.out)
        if self.channel is not None:
            self.channel.close()
        if self.verdict is not None:
            return self.verdict
        if os.WIFEXITED(status):
            return f"exit {os.WEXITSTATUS(status)}"
        return f"signal {os.WTERMSIG(status)}"


def warm_up(module: str) -> None:
    """Does what programs do most with a module; what it loads and caches is there after a fork."""
    if module == "pandas":
        _reckon()
    elif module == "matplotlib.pyplot":
        _draw()


@contextmanager
def write_to(folder: str) -> Iterator[None]:
    """Lets packages that write a cache or a temporary file when they are imported do so in a folder."""
    before, tempfile.tempdir = tempfile.tempdir, folder
    # Otherwise matplotlib makes a folder that each program would remove as it ends.
    os.environ["MPLCONFIGDIR"] = folder
    try:
        yield
    finally:
        tempfile.tempdir = before
        del os.environ["MPLCONFIGDIR"]


def _draw() -> None:
    from matplotlib import pyplot as plt

    plt.plot([1, 2])
    plt.title("Sales")
    plt.savefig(io.BytesIO(), format="png")
    plt.close("all")


def _reckon() -> None:
    import pandas as pd

    frame = pd.read_csv(io.StringIO("a,b,c\n1,x,2020-01-01\n2,y,2020-01-02\n3,x,\n"))
    frame.info(buf=io.StringIO())
    results = [
        frame,
        frame.dtypes,
        frame.describe(),
        frame["b"].value_counts(),
        frame.groupby("b")["a"].agg(["sum", "mean", "max"]),
        frame.sort_values("a", ascending=False).head(2),
        frame[frame["a"] > 1].iloc[0],
        frame.loc[frame["b"].str.contains("x"), "a"].median(),
        frame[["a"]].corr(),
        pd.to_datetime(frame["c"]),
        pd.to_numeric(frame["b"], errors="coerce").std(),
        frame.merge(frame, on="a"),
        frame.pivot_table(index="b", values="a"),
        frame["a"].apply(str),
    ]
    "".join(map(str, results))


class Isolation(Protocol):
    """A way to isolate programs: it forks them, and counts and ends their processes."""

    def room_to_load(self) -> AbstractContextManager[str]:
        """Provide a writable folder, hidden from programs, while packages are imported."""
        ...

    def fork(self) -> int:
        """Forks; returns 0 in the child, which must then call `shut_in`."""
        ...

    def shut_in(self, key: int) -> None:
        """Isolates the child from everything but its own files.

        Raises:
            OSError: the kernel refused a step; the process is then not fit for a program.
        """
        ...

    def families(self, pids: Iterable[int]) -> dict[int, set[int]]:
        """Find all processes of each program by the pid of its first process."""
        ...

    def excess(self, key: int, family: set[int]) -> str:
        """Name the limit that a program has exceeded and that the kernel does not enforce; empty if none."""
        ...

    def kill(self, pid: int) -> None:
        """Kills all processes of a program, given the pid of its first process."""
        ...

    def reap(self, pid: int, key: int) -> int:
        """Ends and reaps a program whose first process is dead; returns that process's wait status."""
        ...

    def prove(self) -> None:
        """Tests the isolation; if it fails, ends this process with the reason on standard error."""
        ...


def make_isolation(setup: dict[str, Any], limits: Limits) -> Isolation:
    """Make the kind of isolation that the host requested.

    Raises:
        OSError: this kernel does not support it.
    """
    if setup["isolation"] == "landlock":
        from .landlock import LandlockIsolation

        return LandlockIsolation(limits, setup["shown"], setup["scratch"])
    from .namespaces import NamespaceIsolation

    return NamespaceIsolation(limits, setup["kept"])


if __name__ == "__main__":
    ForkingInterpreter(socket.socket(fileno=0)).serve()
