"""Code that runs inside the sandbox: the warm interpreter, and the process that it forks for each program.

Only the folder of this package is mounted into the sandbox, without the rest of evalsuite. The modules of this package
import only the standard library and, for tables, pandas, because the rest of evalsuite is missing in the sandbox.

Control messages never come from a program's output, because the program could forge them. Host and program exchange
code, tables and output in memory files. The warm interpreter reads only status bytes of programs; its memory, which
each new program inherits, therefore has no data of other programs.
"""

from dataclasses import dataclass

OWN_FILES = "/tmp"  # noqa: S108 - each program has its own tmpfs there
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
LOADING = "/sandbox/loading"  # Folder in which packages may write while the warm interpreter imports them.


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one program, apart from the time limit, which each round sets.

    Attributes:
        memory: maximum bytes of address space, both for one process and for all processes of a program together.
        files: maximum bytes of all files in the program's private folder (a tmpfs).
        file: maximum bytes of a single file.
        output: maximum bytes that a program may print in one round.
        processes: maximum number of processes and threads that a program has at the same time.
        descriptors: maximum number of open files in one process.
        waiting: maximum bytes that all idle sessions (between two rounds) may use together; beyond that, a new session
            has to wait. Memory that sessions share with the warm interpreter does not count.
    """

    memory: int = 2 << 30
    files: int = 64 << 20
    file: int = 32 << 20
    output: int = 200_000
    processes: int = 32
    descriptors: int = 128
    waiting: int = 2 << 30
