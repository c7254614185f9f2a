"""Admits calls within the limits of the user and of the server.

Connections are counted over the whole run. Requests and tokens per minute, and the rate that a server turned out to
allow, are counted per model, so that a slow judge holds up only those who ask it.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from evalsuite.gateway.common_rate import CommonRate
from evalsuite.gateway.rate_finder import RateFinder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path


class Pace:
    """Spaces amounts evenly: at most `rate` per second, with no credit for idle time.

    Args:
        rate: amount per second; None for no limit.
    """

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        self.free_at = 0.0

    def delay(self, now: float) -> float:
        """Seconds until the next amount may go."""
        return self.free_at - now if self.rate else 0.0

    def take(self, amount: float, now: float) -> None:
        """Books an amount that goes now; a negative one returns what was booked in excess."""
        if self.rate:
            self.free_at = max(self.free_at, now) + amount / self.rate


class Connections:
    """Calls in flight, over all models of a run.

    Args:
        most: at once.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.in_flight = 0
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def free(self) -> bool:
        """Whether another call may start."""
        return self.in_flight < self.most

    def release(self) -> None:
        """A call has ended."""
        self.in_flight -= 1
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def changed(self) -> None:
        """Waits until a call has ended."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    async def idle(self) -> None:
        """Waits until nothing is in flight."""
        while self.in_flight:
            await self.changed()


class Limiter:
    """Admits the calls to one model in the order in which they ask.

    Args:
        connections: calls in flight at most; shared by the limiters of a run.
        rpm: requests per minute at most; None for no limit.
        tpm: tokens per minute at most, prompt and answer together; None for no limit.
        clock: seconds that only go forward.
    """

    def __init__(
        self,
        connections: Connections | int,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.places = connections if isinstance(connections, Connections) else Connections(connections)
        self.waiting = 0
        self._rpm, self._tpm, self._clock = rpm, tpm, clock
        self._requests = Pace(rpm / 60 if rpm else None)
        self._tokens = Pace(tpm / 60 if tpm else None)
        self._found: RateFinder | CommonRate = RateFinder(self.places.most)
        self._gate = asyncio.Lock()

    def another(self) -> Limiter:
        """A limiter for another model of the run, with the same connections and its own paces."""
        return Limiter(self.places, self._rpm, self._tpm, self._clock)

    def share(self, file: Path) -> None:
        """Finds the server's rate together with all runs on this machine that share the same file.

        Raises:
            OSError: the file cannot be used.
        """
        self._found = CommonRate(RateFinder(self.places.most), file, self._clock)

    def close(self) -> None:
        """Lets go of what is shared with other runs."""
        if isinstance(self._found, CommonRate):
            self._found.close()

    @property
    def rate(self) -> float | None:
        """Requests per second that the server allows, as far as is known; None if it never refused."""
        return self._found.rate

    @property
    def paused_for(self) -> float:
        """Seconds for which nothing is sent, as the server refuses everything or asks to wait; 0.0 without a pause."""
        return max(0.0, self._found.resume_at - self._clock())

    @asynccontextmanager
    async def admit(self, tokens: int) -> AsyncIterator[float]:
        """Waits for a place, and holds it while the block runs.

        Args:
            tokens: estimate of the call's tokens, prompt and answer.

        Yields:
            When the call was admitted, on this limiter's clock; to be passed to `refused`.
        """
        self.waiting += 1
        try:
            async with self._gate:
                admitted = await self._turn(tokens)
        finally:
            self.waiting -= 1
        try:
            yield admitted
        finally:
            self.places.release()

    async def _turn(self, tokens: int) -> float:
        while True:
            if not self.places.free:
                await self.places.changed()
                continue
            now = self._clock()
            delay = max(self._requests.delay(now), self._tokens.delay(now))
            if delay > 0:
                await asyncio.sleep(delay)
                continue
            await asyncio.sleep(self._found.book(now) - now)
            now = self._clock()
            if self._may_go(now):
                self._requests.take(1, now)
                self._tokens.take(tokens, now)
                self.places.in_flight += 1
                return now

    def _may_go(self, now: float) -> bool:
        """False if another model's call has taken the last place since, or everybody was paused."""
        return self.places.free and self._found.send(now)

    def accepted(self, estimated: int, used: int) -> None:
        """A call was answered; the actual number of tokens replaces the estimate.

        Args:
            estimated: the tokens that it was admitted with.
            used: the tokens that it took.
        """
        now = self._clock()
        self._found.accepted(now)
        self._tokens.take(used - estimated, now)

    def refused(self, admitted: float, retry_after: float | None) -> None:
        """A call was refused because of a rate limit.

        Args:
            admitted: what `admit` yielded for the call.
            retry_after: seconds that the server asks to wait, if it does.
        """
        self._found.refused(admitted, retry_after, self._clock())

    def exhausted(self, seconds: float) -> None:
        """The server's headers say that no request is left for this many seconds."""
        self._found.wait_for(seconds, self._clock())
