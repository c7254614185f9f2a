"""Runs Python as a process that ends when its parent process ends: `-m evalsuite.clusters.tethered`.

On systems other than Linux, the process may survive its parent until its unanswered calls have ended.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress

PR_SET_PDEATHSIG = 1  # PR_SET_PDEATHSIG from linux/prctl.h; the setting survives `exec`.


def main() -> None:
    """Replace this process by `python` with the given arguments; on Linux, the process dies with its parent."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])  # noqa: S606 - without a shell


if __name__ == "__main__":
    main()
