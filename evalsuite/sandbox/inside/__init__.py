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
    """What one program may use; each round has its own time limit."""

    memory: int = 2 << 30  # Bytes of address space, per process and for all processes of a program together.
    files: int = 64 << 20  # Bytes of the program's private tmpfs.
    file: int = 32 << 20  # Bytes of a single file.
    output: int = 200_000  # Bytes that a program may print in a round.
    processes: int = 32  # Simultaneous processes and threads.
    descriptors: int = 128  # Open files per process.
    # Bytes that all sessions between two rounds may use together before a new session has to wait. A session counts for
    # what it uses beyond the warm interpreter.
    waiting: int = 2 << 30
