"""Admits calls, within what the user, the machine and the server allow.

Connections are counted over the whole run. Requests and tokens a minute, and the rate that a server was found to
allow, are each model's own, so that a slow judge holds up nobody but its own askers.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from evalsuite.gateway.rate_finder import RateFinder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


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
        """Whether one more call may go."""
        return self.in_flight < self.most

    def release(self) -> None:
        """One call less."""
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
        tpm: tokens a minute at most, prompt and answer together; None is no limit.
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
        self._found = RateFinder(self.places.most)
        self._gate = asyncio.Lock()

    def another(self) -> Limiter:
        """A limiter for another model of the same run: the same connections, paces of its own."""
        return Limiter(self.places, self._rpm, self._tpm, self._clock)

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
        try:
            yield admitted
        finally:
            self.places.release()

    async def _turn(self, tokens: int) -> float:
        # One admission a turn of the loop: a refusal is heard before the next request is out.
        await asyncio.sleep(0)
        while True:
            if not self.places.free:
                await self.places.changed()
                continue
            now = self._clock()
            paces = (self._requests, self._tokens, self._found)
            delay = max(pace.delay(now) for pace in paces)
            if delay <= 0:
                self._requests.take(1, now)
                self._tokens.take(tokens, now)
                self._found.sent(now)
                self.places.in_flight += 1
                return now
            await asyncio.sleep(delay)

    def accepted(self, estimated: int, used: int) -> None:
        """A call was answered; its true number of tokens replaces the estimate.

        Args:
            estimated: the tokens it was admitted with.
            used: the tokens it took.
        """
        now = self._clock()
        self._found.accepted(now)
        self._tokens.take(used - estimated, now)

    def refused(self, admitted: float, retry_after: float | None) -> None:
        """A call was refused for being one too many.

        Args:
            admitted: what `admit` gave to that call.
            retry_after: seconds that the server asks for, if it does.
        """
        self._found.refused(admitted, retry_after, self._clock())

    def exhausted(self, seconds: float) -> None:
        """The server's headers say that nothing is left for so many seconds."""
        self._found.wait_for(seconds, self._clock())
