"""The warm interpreter's loop: forks programs, watches them, and tells the host how each round ended."""

from __future__ import annotations

import errno
import gc
import importlib
import json
import math
import os
import resource
import select
import socket
import sys
import time
from typing import Any, NoReturn

from . import census, program, warming
from .forked import Forked
from .isolation import CHANNEL, FILES, PAYLOAD, STDERR, STDOUT, keep_only
from .limits import Limits
from .walls import walls

PATROL_SECONDS = 0.05
SPARE_DESCRIPTORS = 16
DYING_SECONDS = 1.0
# What the kernel may keep for a socket that is full: memory that is nobody's address space.
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
            self.walls = walls(setup, self.limits)
        except OSError as error:
            sys.exit(str(error))
        self._load(setup["preload"])
        self.programs: dict[int, Forked] = {}
        self.by_descriptor: dict[int, Forked] = {}
        self.poll = select.poll()
        # Registered, and so heard, first.
        self.poll.register(control, select.POLLIN)

    def _load(self, modules: list[str]) -> None:
        # Where this process stands there may be modules of ours with names that a package tries, such as `tables`.
        own_folder = sys.path.pop(0)
        with self.walls.room_to_load() as folder, warming.writing_to(folder):
            for name in modules:
                _load(name)
        sys.path.insert(0, own_folder)
        gc.collect()
        gc.freeze()  # a collection in a forked process would copy every page
        self.baseline = census.address_space(os.getpid())

    def serve(self) -> NoReturn:
        """Runs until the host goes away."""
        self.walls.prove()
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
            forked = self._forked(order, *descriptors)
        except OSError as error:  # too many at a time: of descriptors, processes or namespaces
            for descriptor in descriptors:
                os.close(descriptor)
            self._tell(key=order["key"], ending=f"refused {error}", seconds=0.0, alive=False)
            return
        forked.clock(order["timeout"])

    def _forked(self, order: dict[str, Any], payload: int, out: int, err: int, files: int) -> Forked:
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
        forked = Forked(self.walls, order["key"], pid, os.pidfd_open(pid), ours, out, order["once"])
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
        pid = self.walls.fork()
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
            self.walls.shut_in(key)
        except OSError as error:
            program.give_up(error)

    def _attend(self, forked: Forked, descriptor: int) -> None:
        if descriptor == forked.pidfd:
            while status := forked.heard():
                self._believe(forked, status)
            self._bury(forked)
        elif status := forked.heard():
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
            families = self.walls.families([forked.pid for forked in long])
            for forked in long:
                if limit := self._limit_met(forked, families[forked.pid]):
                    forked.kill(limit)

    def _limit_met(self, forked: Forked, family: set[int]) -> str | None:
        if sum(map(census.cpu_seconds, family)) > forked.cpu_deadline:
            return "cpu"
        if self._memory(family) > self.limits.memory:
            return "memory"
        if os.fstat(forked.out).st_size > self.limits.output:
            return "output"
        return self.walls.excess(forked.key, family) or None

    def _memory(self, pids: set[int]) -> int:
        """Bytes that these processes may have beyond what they have from the warm interpreter."""
        mapped = sum(max(0, census.address_space(pid) - self.baseline) for pid in pids)
        return mapped + SOCKET_BYTES * census.sockets(pids)

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
        warming.exercise(name)
    except Exception:  # noqa: BLE001 - what does not work here is for the programs that need it to say
        # A module that was imported by half would fail in another way than one that was not.
        for half in set(sys.modules) - before:
            del sys.modules[half]


def serve_forever() -> NoReturn:
    """Serves the host on the standard input."""
    ForkingInterpreter(socket.socket(fileno=0)).serve()
