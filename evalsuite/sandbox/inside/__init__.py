"""The code that runs within the sandbox: the warm interpreter and the processes that it forks for programs.

The folder of this package is mounted into the sandbox without the rest of evalsuite. So this package imports only the
standard library and, for tables, pandas.

A program's output is never parsed as control messages, because the program could forge them. Code, tables and output
pass between host and program in memory files. The warm interpreter, from which programs are forked, reads only status
bytes, so its memory contains no data of other programs.
"""

from __future__ import annotations

from dataclasses import dataclass

OWN_FILES = "/tmp"  # noqa: S108 - each program has its own tmpfs there
LOADING = "/sandbox/loading"  # Folder to which packages may write while the warm interpreter imports them.


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one program; each round has its own time limit.

    Attributes:
        memory: maximum bytes of address space of one process, and of all processes of a program together.
        files: maximum bytes of the program's private tmpfs.
        file: maximum bytes of a single file.
        output: maximum bytes that a program may print in a round.
        processes: maximum number of a program's simultaneous processes and threads together.
        descriptors: maximum number of open files per process.
        waiting: maximum bytes of all sessions that wait for their next round; above this total, a new session waits.
            Only memory that a session does not share with the warm interpreter counts.
    """

    memory: int = 2 << 30
    files: int = 64 << 20
    file: int = 32 << 20
    output: int = 200_000
    processes: int = 32
    descriptors: int = 128
    waiting: int = 2 << 30
