"""The code that runs within the sandbox: the warm interpreter and the processes that it forks for programs.

This folder is mounted into the sandbox without the rest of evalsuite, so it imports only the standard library and, for
tables, pandas.

Nothing that a program writes is read as a protocol here. Code, tables and output pass between host and program in
memory files. The warm interpreter sees only status bytes, so a program finds no trace of another one in the memory
that it was forked from.
"""

from __future__ import annotations

from dataclasses import dataclass

OWN_FILES = "/tmp"  # noqa: S108 - each program has its own tmpfs there
# Packages may write here while they are imported into the warm interpreter.
LOADING = "/sandbox/loading"


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources of one program; each round has its own time limit.

    Attributes:
        memory: bytes of address space, per process and for all processes of a program together.
        files: bytes of the program's private tmpfs.
        file: bytes of a single file.
        output: bytes that a program may print in a round.
        processes: simultaneous processes and threads.
        descriptors: open files per process.
        waiting: bytes that all sessions between two rounds may use together before a new session has to wait. A
            session counts for what it uses beyond the warm interpreter.
    """

    memory: int = 2 << 30
    files: int = 64 << 20
    file: int = 32 << 20
    output: int = 200_000
    processes: int = 32
    descriptors: int = 128
    waiting: int = 2 << 30
