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
    b"SigBlk:",
    b"SigIgn:",
    b"Cpus_allowed:",
    b"NoNewPrivs:",
    b"Seccomp:",
)
"""Lines of /proc/PID/status; masks, ignored signals and the rest pass from parent to child."""


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
        namespaces: of mounts, processes, networks and the rest.
    """

    environment: tuple[bytes, ...]
    cwd: str
    root: str
    limits: bytes
    niceness: int
    group: tuple[int, int]
    inherited: tuple[bytes, ...]
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
        tuple((entry.name, str(entry.readlink())) for entry in sorted((place / "ns").iterdir())),
    )
