"""A circuit breaker: while a server is down, all calls wait, and one at a time probes whether it is back."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

OPENING = 5
"""Failed calls in a row, with no answer in between, that open the circuit."""

FIRST_PROBE, LONGEST_PROBE = 1.0, 30.0
"""Seconds until the first probe, doubled for each further one, and the longest wait."""


@dataclass(frozen=True, slots=True)
class DownTime:
    """A server that is down just now.

    Attributes:
        seconds: since the first call came to nothing.
        next_try: seconds until the next one; None while one is under way.
    """

    seconds: float
    next_try: float | None


class Breaker:
    """Pauses all requests to a backend while it is down, but for one probe. One for each backend.

    Args:
        clock: seconds that only go forward.
        on_change: called with one line when the circuit opens, and when it closes.

    Attributes:
        probes: how many have failed since the circuit opened.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, on_change: Callable[[str], None] = lambda _: None
    ) -> None:
        self._clock, self._on_change = clock, on_change
        self._row = 0
        self.probes = 0
        self._opened_at: float | None = None
        self._down_since = 0.0
        self._next_try: float | None = None
        self._closed = asyncio.Event()
        self._closed.set()
        self._abandoned = asyncio.Event()
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether calls wait."""
        return self._opened_at is not None

    def outage(self) -> DownTime | None:
        """How long the server has been down and when it is tried again; None where it is up."""
        if not self.is_open:
            return None
        now = self._clock()
        waits = None if self._next_try is None else max(0.0, self._next_try - now)
        return DownTime(now - self._down_since, waits)

    async def passage(self) -> bool:
        """Waits while the server is down; True if the caller is to probe whether it is back."""
        while self.is_open:
            if self._probing:
                await self._closed_or_probe()
                continue
            self._probing = True
            pause = self._pause()
            self._next_try = self._clock() + pause
            try:
                await self._asleep(pause)
            except BaseException:
                self._probing = False
                self._wake()
                raise
            finally:
                self._next_try = None
            return True
        return False

    async def _asleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._abandoned.wait()

    async def _closed_or_probe(self) -> None:
        self._closed.clear()
        await self._closed.wait()

    def _pause(self) -> float:
        pause = min(LONGEST_PROBE, FIRST_PROBE * 2.0 ** min(self.probes, 10))
        return pause * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, no secret

    def _wake(self) -> None:
        self._closed.set()

    def tried(self) -> None:
        """The probe is over, even if it gave up before it asked: another may probe."""
        self._probing = False
        self._wake()

    def abandon(self) -> None:
        """No call can succeed: nobody needs to wait any longer to be told so."""
        self._opened_at = None
        self._wake()
        self._abandoned.set()
        # Whoever waits now is awake; there may be another outage.
        self._abandoned.clear()

    def answered(self) -> None:
        """The server responded, whatever its answer."""
        self._row = self.probes = 0
        self._probing = False
        if self._opened_at is not None:
            seconds, self._opened_at = self._clock() - self._opened_at, None
            self._on_change(f"the server is back after {seconds:.0f} s")
        self._wake()

    def down(self, words: str, *, probe: bool = False) -> None:
        """A call failed because the server, or the way to it, is down.

        Args:
            words: what the terminal is told.
            probe: whether the call was the one that tried again; others may have been under way for long.
        """
        self._row += 1
        if self._row == 1:
            self._down_since = self._clock()
        self.probes += probe
        if self._opened_at is None and self._row >= OPENING:
            self._opened_at = self._clock()
            self._on_change(f"all calls wait, and one at a time tries again: {words}")
