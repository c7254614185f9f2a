"""What a new process takes over from the one that starts it, as Linux tells it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

INHERITED = (
    b"Uid:",
    b"Gid:",
    b"Groups:",
    b"Umask:",
    b"Cpus_allowed:",
    b"NoNewPrivs:",
    b"Seccomp:",
)
"""Lines of /proc/PID/status that pass from parent to child as they are."""

SIGNALS = (b"SigBlk:", b"SigIgn:")
"""Lines with the signals that are blocked and ignored, a bit each; they pass on as well."""

OF_THE_C_LIBRARY = 1 << 31 | 1 << 32
"""Signals 32 and 33, which programs cannot use; posix_spawn, and so Python from 3.13 on, leaves them ignored."""


class Surroundings(NamedTuple):
    """Two processes in which these are equal could have been started by the same parent in the same instant.

    Attributes:
        environment: its variables when it was started, sorted.
        cwd: where it is.
        root: its root directory.
        limits: of its resources, as Linux prints them.
        niceness: its priority.
        group: its process group and its session.
        inherited: the `INHERITED` lines of its status.
        signals: that are blocked and ignored.
        namespaces: of mounts, processes, networks and the rest.
    """

    environment: tuple[bytes, ...]
    cwd: str
    root: str
    limits: bytes
    niceness: int
    group: tuple[int, int]
    inherited: tuple[bytes, ...]
    signals: tuple[int, ...]
    namespaces: tuple[tuple[str, str], ...]


def surroundings(pid: int) -> Surroundings:
    """Those of a process that is running.

    Raises:
        OSError: it is not, or belongs to somebody else.
    """
    place = Path("/proc") / str(pid)
    status = (place / "status").read_bytes().splitlines()
    return Surroundings(
        tuple(sorted((place / "environ").read_bytes().split(b"\0"))),
        str((place / "cwd").readlink()),
        str((place / "root").readlink()),
        (place / "limits").read_bytes(),
        os.getpriority(os.PRIO_PROCESS, pid),
        (os.getpgid(pid), os.getsid(pid)),
        tuple(line for line in status if line.startswith(INHERITED)),
        tuple(_signals(line) for line in status if line.startswith(SIGNALS)),
        tuple((entry.name, str(entry.readlink())) for entry in sorted((place / "ns").iterdir())),
    )


def _signals(line: bytes) -> int:
    return int(line.partition(b":")[2], 16) & ~OF_THE_C_LIBRARY
