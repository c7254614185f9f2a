"""What one program may use."""

from __future__ import annotations

from dataclasses import dataclass

OWN_FILES = "/tmp"  # noqa: S108 - where each program has a tmpfs of its own

LOADING = "/sandbox/loading"
"""Where packages may write while they are imported into the warm interpreter."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use; time is given for each round apart.

    Attributes:
        memory: bytes of address space, of a process and of all processes of a program together.
        files: bytes of the program's private tmpfs.
        file: bytes of any one file.
        output: bytes that a program may print in a round.
        processes: processes and threads at a time.
        descriptors: open files a process.
        waiting: bytes that sessions between two rounds may have together before another one begins; each counts for
            what it has beyond the warm interpreter.
    """

    memory: int = 2 << 30
    files: int = 64 << 20
    file: int = 32 << 20
    output: int = 200_000
    processes: int = 32
    descriptors: int = 128
    waiting: int = 2 << 30
