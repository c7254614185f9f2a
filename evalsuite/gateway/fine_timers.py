"""An event loop whose timers are punctual to a tenth of a millisecond, so that requests leave evenly.

asyncio waits with epoll, which counts in whole milliseconds, and rounds up. A server without any store of permits
that allows 500 requests a second refuses what comes half a millisecond too early after one that left late.
"""

from __future__ import annotations

import asyncio
import select
import selectors

LARGEST_FILE = 1024
"""`select` watches descriptors below this number only."""

LONG = 1.0
"""Seconds from which on a millisecond does not matter."""


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop with fine timers, where the system's own are coarse; otherwise asyncio's usual one."""
    if not hasattr(selectors, "EpollSelector"):
        return asyncio.new_event_loop()

    class FineSelector(selectors.EpollSelector):
        """Epoll's descriptor is itself waited for with `select`, which counts in microseconds."""

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and 0 < timeout < LONG and self.fileno() < LARGEST_FILE:
                select.select([self.fileno()], [], [], timeout)
                timeout = 0
            return super().select(timeout)

    return asyncio.SelectorEventLoop(FineSelector())
