"""A gateway service for the shards of one run, where the user names none."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evalsuite.core.errors import BackendUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TETHERED = (sys.executable, "-m", "evalsuite.clusters.tethered")

GRACE = 30.0
"""Seconds that it has for its end."""


@contextmanager
def own_gateway(options: Sequence[str], root: Path, store: Path) -> Iterator[str]:
    """Runs a service on loopback; gives its address.

    Args:
        options: of `evalsuite gateway`.
        root: the suite's root directory, from which functions named as models are imported.
        store: the file of its answers.

    Raises:
        BackendUnavailable: it does not start; it has said why.
    """
    # It must not outlive a driver that is killed, as its store could then serve no other.
    command = [*TETHERED, "-m", "evalsuite", "gateway", "--port=0", f"--store={store}", *options]
    process = subprocess.Popen(  # noqa: S603 - the user's own options
        command, cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    try:
        url = process.stdout.readline().partition(": ")[2].strip()
        if not url:
            raise BackendUnavailable("the gateway of this run did not start; its message is above")
        yield url
    finally:
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
