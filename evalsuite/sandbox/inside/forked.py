"""A forked program as the warm interpreter holds it: by its pid, a descriptor of it, and a channel to it."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import census

if TYPE_CHECKING:
    import socket

    from .walls import Walls


@dataclass(slots=True, eq=False)
class Forked:
    """One program's first process, with which the kernel ends all others of its pid namespace.

    Attributes:
        walls: what holds it.
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

    walls: Walls
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
        self.cpu_deadline = census.cpu_seconds(self.pid) + timeout

    def stop_clock(self) -> float:
        """Ends a round; returns its seconds."""
        self.deadline = math.inf
        return time.monotonic() - self.started

    def heard(self) -> bytes:
        """The byte that waits in the channel; empty if the program has closed its end."""
        try:
            return self.channel.recv(1) if self.channel else b""
        except OSError:
            return b""

    def pause(self) -> bool:
        """Stops it between rounds; False if it has left other processes, which cannot be stopped with it."""
        os.kill(self.pid, signal.SIGSTOP)
        return self.channel is not None and len(self.walls.families([self.pid])[self.pid]) == 1

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
            self.walls.kill(self.pid)

    def bury(self) -> str:
        """Reaps it and lets go of everything; returns how it ended."""
        status = self.walls.reap(self.pid, self.key)
        os.close(self.pidfd)
        os.close(self.out)
        if self.channel is not None:
            self.channel.close()
        if self.verdict is not None:
            return self.verdict
        if os.WIFEXITED(status):
            return f"exit {os.WEXITSTATUS(status)}"
        return f"signal {os.WTERMSIG(status)}"
