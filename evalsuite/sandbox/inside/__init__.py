"""What runs within the sandbox: the warm interpreter and the programs that it forks.

The folder is bound into the sandbox by itself and runs there without the rest of evalsuite, so nothing
here imports anything but the standard library (and, for tables, pandas).

Nothing that a program writes is ever read as a protocol here. A program's text, its tables and its output
pass between it and the host in memory files, past the warm interpreter, which sees only a byte of status
from each; so no program finds traces of another's in the memory that it was forked from.
"""

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
        descriptors: open files per process.
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
