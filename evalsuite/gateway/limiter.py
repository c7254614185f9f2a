"""The one limiter of a run: connections, requests and tokens a minute, and one shared back-off.

It finds the rate that a server allows by counting. A server that answers 429 has, since the last time
it did, accepted a number of requests; spread over that time and the pause it now demands, this is the
rate it grants. Requests are then spaced at that rate, which grows slowly, so that a limit that has been
lifted is noticed and one that stands is touched rarely. A server that granted nothing at all has said
nothing about its rate: it is left alone as long as it wants, and found out then.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

GROWTH = 0.02
"""The share by which a rate found by back-off grows each second."""

LONGEST_GROWTH = 10.0
"""Seconds without a call that count as growth at most."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds: the pause after a 429 that names none, doubled while they go on, and its bound."""


class Pace:
    """Evenly spaced amounts: at most `rate` a second, with no credit for idle time.

    Args:
        rate: amount a second; None is no limit.
    """

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        self.free_at = 0.0

    def delay(self, now: float) -> float:
        """Seconds until the next amount may go."""
        return self.free_at - now if self.rate else 0.0

    def take(self, amount: float, now: float) -> None:
        """Books an amount that goes now; a negative one gives back what was booked too much."""
        if self.rate:
            self.free_at = max(self.free_at, now) + amount / self.rate


class Limiter:
    """Admits calls in the order in which they ask.

    Args:
        connections: calls in flight at most.
        rpm: requests a minute at most; None is no limit.
        tpm: tokens a minute at most, prompt and answer together; None is no limit.
        clock: seconds that only go forward.
    """

    def __init__(
        self,
        connections: int,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connections = connections
        self.in_flight = 0
        self.waiting = 0
        self._clock = clock
        self._requests = Pace(rpm / 60 if rpm else None)
        self._tokens = Pace(tpm / 60 if tpm else None)
        self._found = Pace(None)
        self._gate = asyncio.Lock()
        self._released = asyncio.Event()
        self._resume_at = 0.0
        self._since = self._grown_at = clock()
        self._admitted = 0
        self._window_start, self._granted = self._since, 0
        self._pauses = 0
        self._last_rate: float | None = None

    @property
    def rate(self) -> float | None:
        """Requests a second that the server was found to allow; None while it never refused."""
        return self._found.rate

    @asynccontextmanager
    async def admit(self, tokens: int) -> AsyncIterator[float]:
        """Waits for a place, and holds it while the block runs.

        Args:
            tokens: estimate of the call's tokens, prompt and answer.

        Yields:
            When the call was admitted, on this limiter's clock: `refused` wants it back.
        """
        self.waiting += 1
        try:
            async with self._gate:
                admitted = await self._turn(tokens)
        finally:
            self.waiting -= 1
        self.in_flight += 1
        try:
            yield admitted
        finally:
            self.in_flight -= 1
            self._released.set()

    async def idle(self) -> None:
        """Waits until nothing is in flight."""
        while self.in_flight:
            self._released.clear()
            await self._released.wait()

    async def _turn(self, tokens: int) -> float:
        # One admission a turn of the loop: a refusal is heard before the next request is out.
        await asyncio.sleep(0)
        while True:
            if self.in_flight >= self.connections:
                self._released.clear()
                await self._released.wait()
                continue
            now = self._clock()
            self._grow(now)
            paces = (self._requests, self._tokens, self._found)
            delay = max(self._resume_at - now, *(pace.delay(now) for pace in paces))
            if delay <= 0:
                self._requests.take(1, now)
                self._found.take(1, now)
                self._tokens.take(tokens, now)
                self._admitted += 1
                return now
            await asyncio.sleep(delay)

    def _grow(self, now: float) -> None:
        if self._found.rate:
            self._found.rate *= 1 + GROWTH * min(now - self._grown_at, LONGEST_GROWTH)
        self._grown_at = now

    def accepted(self, admitted: float, estimated: int, used: int) -> None:
        """A call was answered; its true number of tokens replaces the estimate.

        Args:
            admitted: what `admit` gave to that call.
            estimated: the tokens it was admitted with.
            used: the tokens it took.
        """
        if admitted >= self._since:
            self._pauses = 0
        self._tokens.take(used - estimated, self._clock())

    def refused(self, admitted: float, retry_after: float | None) -> None:
        """A call was answered 429: everybody pauses, and the rate is set to what the server allowed.

        Args:
            admitted: what `admit` gave to that call. Calls that were under way when the pause began
                are part of the same refusal.
            retry_after: seconds that the server asks for, if it does.
        """
        now = self._clock()
        if admitted >= self._since:
            # From the end of one pause to the end of the next: at both the server grants again.
            self._window_start = max(self._since, self._resume_at)
            self._granted = self._admitted
            self._since, self._admitted = now, 0
            self._pauses += 1
            self._last_rate = self._found.rate
        if retry_after is None:
            doubled = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._pauses - 1))
            retry_after = doubled * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, no secret
        # Calls still under way count as granted until they are refused, too.
        self._granted -= 1
        self._resume_at = max(self._resume_at, now + retry_after)
        if self._granted > 0:
            found = self._granted / max(self._resume_at - self._window_start, 1e-3)
            # Of a short time one cannot tell much; that a refusal raises the rate would be wrong in any case.
            self._found.rate = min(found, self._last_rate or found)
        else:
            # Who was here before has used up what there was: that says how long to wait, not how often to ask.
            self._found.rate = self._last_rate and self._last_rate / 2
