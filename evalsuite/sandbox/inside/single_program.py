"""One program where no warm interpreter waits: in a container, or on a server that runs scripts.

The whole way there and back is a script and its two outputs: standard output is the program's; on standard error stand
its error and, behind a word that the host chose, the files that it wrote. The exit status says how it ended.
"""

from __future__ import annotations

import base64
import fcntl
import os
import platform
import signal
import tempfile
from typing import NoReturn

from . import kernel, program
from .calls import AUDIT_ARCH, call_filter
from .isolation import CHANNEL, FILES, PAYLOAD, STDERR

STATUS = {program.OK: 0, program.RAISED: 1, program.NO_TABLE: 97}


def main(payload: str, word: str, seconds: float) -> NoReturn:
    """Runs the program of a payload, in a folder of its own.

    Args:
        payload: file with what the host's `tables.payload` wrote; it is removed.
        word: stands before the files on standard error.
        seconds: after which the process is killed by SIGALRM, once its tables are there.
    """
    _shut_in()
    real_error = fcntl.fcntl(STDERR, fcntl.F_DUPFD, FILES + 1)
    os.chdir(tempfile.mkdtemp())
    for number, path, mode in (
        (STDERR, ".error", os.O_RDWR | os.O_CREAT),
        (CHANNEL, os.devnull, os.O_WRONLY),
        (PAYLOAD, payload, os.O_RDONLY),
        (FILES, ".files", os.O_RDWR | os.O_CREAT),
    ):
        os.dup2(os.open(path, mode), number)
    os.unlink(payload)  # noqa: PTH108 - the program is not to find it
    names = program.prepared()
    status = program.round_of(names, "<program>", lambda: signal.setitimer(signal.ITIMER_REAL, seconds))
    signal.setitimer(signal.ITIMER_REAL, 0)
    error, files = (os.pread(number, 4 << 20, 0) for number in (STDERR, FILES))
    _write(real_error, error + b"\n" + word.encode() + base64.b64encode(files))
    os._exit(STATUS[status])


def _shut_in() -> None:
    """Where this is the first process of a container, goes on in a child, behind the same call filter as elsewhere.

    No timer and no memory limit ends the first process.
    """
    if os.getpid() != 1:
        return
    kernel.close_to_others()
    if child := os.fork():
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(128 - status if status < 0 else status)
    # Engines differ in what they allow: Podman's lets programs make namespaces and mount in them.
    if platform.machine() in AUDIT_ARCH:
        kernel.forbid_new_privileges()
        kernel.filter_calls(call_filter(platform.machine()))


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
