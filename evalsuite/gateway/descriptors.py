"""How many connections this process may open: each is a file descriptor, of which the system grants so many."""

from __future__ import annotations

import os
from pathlib import Path

KEPT_FREE = 40
"""Descriptors left to everything else: the journal, the report, programs in the sandbox, the user's own files."""

FEWEST = 4
"""Connections, even where hardly any descriptor is left."""


def connections_within_limit(wanted: int, servers: int = 1) -> int:
    """As many connections as wanted, or as many as the limit on open files (`ulimit -n`) has room for.

    Args:
        wanted: calls in flight at most.
        servers: how many servers are asked. Idle connections to one stay open while another is asked.
    """
    try:
        import resource
    except ImportError:
        # Windows knows no such limit.
        return wanted
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return wanted
    room = (limit - _open_now() - KEPT_FREE) // servers
    return min(wanted, max(FEWEST, room))


def _open_now() -> int:
    folder = Path("/dev/fd")
    # Opening the lowest free one shows how many there are at most, where the system keeps no list.
    if folder.is_dir():
        return len(os.listdir(folder))  # noqa: PTH208 - no path objects for what may be gone by then
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    return lowest
