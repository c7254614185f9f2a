"""The warm interpreter: imports packages once, forks a process per program, and reports how its rounds end.

The host sends orders as JSON on standard input, one order per packet:

    {"preload": [...], "limits": {...}, "path": [...], "isolation": ..., ...}    the first order, which prepares the
        interpreter; the answer is {"ready": true}
    {"op": "start", "key": 7, "timeout": 10.0, "once": false}         starts a program; the packet carries the
        descriptors of its payload, stdout, stderr and files
    {"op": "go", "key": 7, "timeout": 10.0, "once": false}            runs another round of the same program
    {"op": "end", "key": 7}                                           kills the program
    {"op": "load", "modules": ["matplotlib.pyplot"]}                  imports modules for later programs

The answer to each round is `{"key": 7, "ending": ..., "seconds": ..., "alive": ..., "memory": ...}`. `ending` is `ok`,
`raised`, `timeout`, `cpu`, `memory`, `output`, `processes`, `files`, `exit <status>` or `signal <number>`. If the
program's own code did not start, `ending` is `table`, `unfit`, `early <ending>` or `refused <reason>`. If the program
died between two rounds, `ending` is `gone`.
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
import selectors
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from . import Limits, kernel, program
from .isolation import Isolation, LandlockIsolation, NamespaceIsolation, verify_isolation
from .kernel import CHANNEL, FILES, PAYLOAD, STDERR, STDOUT

CHECK_SECONDS = 0.05
SPARE_DESCRIPTORS = 16
DYING_SECONDS = 1.0
# Maximum kernel memory of a socket's buffers, which does not count as part of any process's address space.
SOCKET_BYTES = 1 << 20


class ForkingInterpreter:
    """The warm interpreter; the host sends it orders over the socket `control`."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        # Raise the interpreter's own limit, because each waiting session needs three descriptors; programs get a lower
        # limit.
        most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1 << 16)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        setup = json.loads(control.recv(1 << 16))
        # Let programs import from their own folder; the modules of this package's folder are already loaded.
        sys.path[:1] = [""]
        sys.path += setup["path"]
        self.limits = Limits(**setup["limits"])
        try:
            self.isolation: Isolation = (
                LandlockIsolation(self.limits, setup["readable"], setup["scratch"])
                if setup["isolation"] == "landlock"
                else NamespaceIsolation(self.limits, setup["hidden"])
            )
        except OSError as error:
            sys.exit(str(error))
        self._import_modules(setup["preload"])
        self.programs: dict[int, ForkedProgram] = {}
        self.selector = selectors.PollSelector()
        # Register the control socket first, so that the host's orders are handled before events of programs.
        self.selector.register(control, selectors.EVENT_READ)

    def _import_modules(self, modules: list[str]) -> None:
        # Do not import from the current folder, because a module in it may have the same name as one that a package
        # needs.
        own_folder = sys.path.pop(0)
        with self.isolation.open_loading_folder() as folder:
            # Let packages write caches and temporary files to this folder; matplotlib would otherwise make a folder
            # that the first program to end removes.
            tempfile.tempdir = os.environ["MPLCONFIGDIR"] = folder
            for name in modules:
                _import_and_warm_up_module(name)
        tempfile.tempdir = None
        del os.environ["MPLCONFIGDIR"]
        sys.path.insert(0, own_folder)
        gc.collect()
        # Freeze all objects; otherwise garbage collection in a forked process would copy every page of memory.
        gc.freeze()
        self.baseline = kernel.read_mapped_bytes(os.getpid())

    def serve_host(self) -> NoReturn:
        """Run until the host closes the connection."""
        verify_isolation(self.isolation)
        self._send_report(ready=True)
        while True:
            deadlines = [forked.deadline for forked in self.programs.values() if forked.is_running]
            seconds = min(CHECK_SECONDS, min(deadlines, default=0.0) - time.monotonic())
            for event, _ in self.selector.select(max(0.001, seconds) if deadlines else None):
                if event.data is None:
                    self._receive_and_execute_order()
                    # Poll again, because the order may have closed some of these descriptors and opened others with
                    # the same numbers.
                    break
                self._read_statuses_or_reap(event.data, event.fd)
            self._kill_programs_over_limits()

    def _receive_and_execute_order(self) -> None:
        packet, descriptors, _, _ = socket.recv_fds(self.control, 1 << 16, 4)
        if not packet:
            for each in self.programs.values():
                each.kill()
            os._exit(0)
        order = json.loads(packet)
        if order["op"] == "start":
            try:
                self._fork_program(order, *descriptors).start_clock(order["timeout"])
            except OSError as error:  # The machine has too many open descriptors, processes or namespaces now.
                for descriptor in descriptors:
                    os.close(descriptor)
                self._send_report(key=order["key"], ending=f"refused {error}", seconds=0.0, alive=False)
            return
        if order["op"] == "load":
            self._import_modules(order["modules"])
            return
        forked = self.programs.get(order["key"])
        if order["op"] == "end":
            if forked is not None:
                forked.stop_clock()
                forked.kill()
        elif forked is None or forked.wait_for_death(0):
            self._send_report(key=order["key"], ending="gone", seconds=0.0, alive=False)
        else:
            forked.start_clock(order["timeout"])
            forked.resume()

    def _fork_program(self, order: dict[str, Any], payload: int, out: int, err: int, files: int) -> ForkedProgram:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            wanted = {STDOUT: out, STDERR: err, CHANNEL: theirs.fileno(), PAYLOAD: payload, FILES: files}
            try:
                pid = self._fork_child(wanted, order["key"])
            except OSError:
                # Try again after collecting killed programs, because they may still hold descriptors or processes.
                end = time.monotonic() + DYING_SECONDS
                for killed in [forked for forked in self.programs.values() if forked.killed]:
                    if killed.wait_for_death(end - time.monotonic()):
                        self._read_statuses_or_reap(killed, killed.pidfd)
                pid = self._fork_child(wanted, order["key"])
        for descriptor in (payload, err, files):
            os.close(descriptor)
        ours.setblocking(False)
        forked = ForkedProgram(self.isolation, order["key"], pid, os.pidfd_open(pid), ours, out, order["once"])
        self.programs[forked.key] = forked
        for descriptor in (forked.pidfd, ours.fileno()):
            self.selector.register(descriptor, selectors.EVENT_READ, forked)
        return forked

    def _fork_child(self, descriptors: dict[int, int], key: int) -> int:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        lowest_free = os.dup(0)
        os.close(lowest_free)
        # Refuse the program while descriptors are left, because the interpreter itself needs some.
        if lowest_free > limit - SPARE_DESCRIPTORS:
            raise OSError(errno.EMFILE, f"{os.strerror(errno.EMFILE)}: more than {limit} are not allowed")
        pid = self.isolation.fork_child()
        if pid == 0:
            program.run_isolated(descriptors, partial(self.isolation.confine_child, key))
        return pid

    def _read_statuses_or_reap(self, forked: ForkedProgram, descriptor: int) -> None:
        if descriptor == forked.pidfd:
            while status := forked.read_status():
                self._update_round_by_status(forked, status)
            self._reap_program(forked)
        elif status := forked.read_status():
            self._update_round_by_status(forked, status)
        else:
            self._close_channel(forked)  # Closing the channel does not end the round; the end of the process does.

    def _update_round_by_status(self, forked: ForkedProgram, status: bytes) -> None:
        """Process a program's status byte: it reports either that the tables are loaded, or how the round ended."""
        if status == program.LOADED:
            forked.loaded = True
        elif not forked.loaded:
            self._end_and_report_round(forked, "unfit" if status == program.UNFIT else "table")
        elif forked.is_running:
            self._end_and_report_round(forked, "ok" if status == program.OK else "raised")

    def _end_and_report_round(self, forked: ForkedProgram, ending: str) -> None:
        seconds = forked.stop_clock()
        alive = not forked.once and forked.pause()
        if not alive:
            forked.kill()
        memory = self._sum_memory({forked.pid}) if alive else 0
        self._send_report(key=forked.key, ending=ending, seconds=seconds, alive=alive, memory=memory)

    def _reap_program(self, forked: ForkedProgram) -> None:
        self._close_channel(forked)
        self.selector.unregister(forked.pidfd)
        del self.programs[forked.key]
        running, ending = forked.is_running, forked.reap()
        if running:
            ending = ending if forked.loaded else f"early {ending}"
            self._send_report(key=forked.key, ending=ending, seconds=forked.stop_clock(), alive=False)

    def _close_channel(self, forked: ForkedProgram) -> None:
        if forked.channel is not None:
            self.selector.unregister(forked.channel)
            forked.channel.close()
            forked.channel = None

    def _kill_programs_over_limits(self) -> None:
        now = time.monotonic()
        running = [forked for forked in self.programs.values() if forked.is_running]
        for forked in running:
            if now >= forked.deadline:
                forked.kill("timeout")
        if long := [forked for forked in running if now >= forked.started + CHECK_SECONDS]:
            processes = self.isolation.map_program_processes([forked.pid for forked in long])
            for forked in long:
                if limit := self._find_exceeded_limit(forked, processes[forked.pid]):
                    forked.kill(limit)

    def _find_exceeded_limit(self, forked: ForkedProgram, pids: set[int]) -> str:
        if sum(map(kernel.read_cpu_seconds, pids)) > forked.cpu_deadline:
            return "cpu"
        if self._sum_memory(pids) > self.limits.memory:
            return "memory"
        if os.fstat(forked.out).st_size > self.limits.output:
            return "output"
        return self.isolation.find_exceeded_limit(forked.key, pids)

    def _sum_memory(self, pids: set[int]) -> int:
        """Add up the bytes that these processes have mapped beyond the warm interpreter's own memory."""
        mapped = sum(max(0, kernel.read_mapped_bytes(pid) - self.baseline) for pid in pids)
        return mapped + SOCKET_BYTES * kernel.count_sockets(pids)

    def _send_report(self, **facts: Any) -> None:
        self.control.send(json.dumps(facts).encode())


def _import_and_warm_up_module(name: str) -> None:
    before = set(sys.modules)
    try:
        importlib.import_module(name)
        # Run common operations now, so that forked programs inherit the modules and caches that the operations need.
        if name == "pandas":
            _preload_pandas()
        elif name == "matplotlib.pyplot":
            _preload_matplotlib()
    except Exception:  # noqa: BLE001 - a program that needs the module gets the error
        # Remove half-imported modules, so that a program's own import of them fails with the original error.
        for half_imported in set(sys.modules) - before:
            del sys.modules[half_imported]


@dataclass(slots=True, eq=False)
class ForkedProgram:
    """The first process of a program; when it ends, the kernel or the interpreter kills the other processes."""

    isolation: Isolation
    key: int
    pid: int  # The process's id, which the kernel does not reuse before `reap` collects the process.
    pidfd: int  # Descriptor that becomes readable as soon as the process dies.
    # Socket that carries the program's status bytes, and a byte that starts a round; None if the program closed it.
    channel: socket.socket | None
    out: int  # Descriptor of the file with the program's output; the interpreter only checks its size.
    once: bool  # Whether the program has only one round.
    started: float = 0.0
    deadline: float = math.inf  # Time at which the round must end, in monotonic seconds; infinite between rounds.
    # The round is stopped when all the program's processes together have used this many CPU seconds.
    cpu_deadline: float = math.inf
    loaded: bool = False  # Whether the tables are loaded, so that the program's own code has started.
    killed: bool = False  # Whether the program was killed; it may not be dead yet.
    exceeded: str | None = None  # The limit that the program exceeded, so that it was killed.

    @property
    def is_running(self) -> bool:
        return self.deadline < math.inf

    def wait_for_death(self, seconds: float) -> bool:
        """Wait up to `seconds` for a process to die; return whether it died."""
        return bool(select.select([self.pidfd], [], [], max(0, seconds))[0])

    def start_clock(self, timeout: float) -> None:
        """Start the limits on wall time and CPU time of one execution of the program."""
        self.started = time.monotonic()
        self.deadline = self.started + timeout
        self.cpu_deadline = kernel.read_cpu_seconds(self.pid) + timeout

    def stop_clock(self) -> float:
        """Stop the limits of one execution of the program, and return how many seconds it took."""
        self.deadline = math.inf
        return time.monotonic() - self.started

    def read_status(self) -> bytes:
        """Read one status byte from a program's channel; return b"" if the program has closed it."""
        try:
            return self.channel.recv(1) if self.channel else b""
        except OSError:
            return b""

    def pause(self) -> bool:
        """Suspend the process between rounds; return False if other processes of the program would keep running."""
        os.kill(self.pid, signal.SIGSTOP)
        return self.channel is not None and len(self.isolation.map_program_processes([self.pid])[self.pid]) == 1

    def resume(self) -> None:
        """Start the next round; first discard status bytes that the program sent between rounds."""
        if self.channel is not None:
            with contextlib.suppress(OSError):
                while self.channel.recv(1):
                    pass
            with contextlib.suppress(OSError):
                self.channel.send(b"g")
        os.kill(self.pid, signal.SIGCONT)

    def kill(self, exceeded: str | None = None) -> None:
        """Kill the program's processes; `exceeded` names the limit that they have exceeded."""
        self.killed = True
        self.exceeded = self.exceeded or exceeded
        with contextlib.suppress(ProcessLookupError):  # The process has died already.
            self.isolation.kill_program(self.pid)

    def reap(self) -> str:
        """Collect the dead processes, and close the remaining descriptors; return how the program ended."""
        status = self.isolation.reap_program(self.pid, self.key)
        os.close(self.pidfd)
        os.close(self.out)
        if self.exceeded is not None:
            return self.exceeded
        code = os.waitstatus_to_exitcode(status)
        return f"exit {code}" if code >= 0 else f"signal {-code}"


def _preload_matplotlib() -> None:
    from matplotlib import pyplot as plt

    plt.plot([1, 2])
    plt.title("Sales")
    plt.savefig(io.BytesIO(), format="png")
    plt.close("all")


def _preload_pandas() -> None:
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


if __name__ == "__main__":
    ForkingInterpreter(socket.socket(fileno=0)).serve_host()
