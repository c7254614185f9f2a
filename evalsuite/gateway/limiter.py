"""Admits calls within the limits of the user and of the server.

Connections are limited over the whole run. Limits on requests and tokens per minute, and a server's inferred limit,
apply per model, so that a slow judge delays only its own calls.
"""

import asyncio
import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evalsuite.gateway.pacing import CallInFlight, Pacing

DRY_SHARE = 0.2
"""Pause before each probe, as a share of the outage so far: the pause delays the run at most by this share."""

FIRST_PROBE, LONGEST_PROBE = 0.1, 30.0
"""Shortest pause in seconds (some round trips), and longest pause (what a user accepts after a long outage)."""

LEAST_DRY, BELIEVED = 0.5, 1.0
"""LEAST_DRY: seconds without an answer, beyond the usual latency, before the circuit opens; equal to the longest first
wait of plain back-off. BELIEVED: if the server asks to wait longer or cannot be reached, the circuit opens at once."""

PRECISION = 1e-6  # Tolerance in seconds, because a timer may fire a little early.
SERVED = 2.0
"""A probe counts as accepted after SERVED times the duration of a refusal, because an answer may take minutes."""


class CircuitBreaker:
    """A circuit breaker: lets through only one request at a time, as a probe, while a server refuses everything.

    Attributes:
        on_change: called with a one-line message when the server goes down, and when it is back.
        probes: number of failed probes since the circuit opened.
        probe: the probe in flight; None if no probe is in flight.
        try_at: the time at which the server's headers promise new quota; a later probe is moved to this time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.on_change: Callable[[str], None] = lambda _: None
        self.probes = self._refusals = 0
        self.try_at = self._refused_since = self._first_refused_sent = self._next_try = self._latency = 0.0
        self._open = self._down = False
        self.probe: CallInFlight | None = None
        self._refusal_seconds = FIRST_PROBE

    @property
    def refusing_since(self) -> float | None:
        """The time since which the server has refused everything; None if the server accepts calls."""
        return self._refused_since if self._open else None

    @property
    def seconds_down(self) -> float | None:
        """Seconds since the first failed call to a server that is down; None if the server is up."""
        return self._clock() - self._refused_since if self._open and self._down else None

    @property
    def seconds_until_probe(self) -> float | None:
        """Seconds until the next probe; None while a probe is in flight, or if the server accepts calls."""
        return max(0.0, self._next_try - self._clock()) if self._open and self.probe is None else None

    def compute_delay(self) -> float:
        """Return the seconds until the next call may be sent."""
        if not self._open:
            return 0.0
        free_at = self.probe.sent + SERVED * self._refusal_seconds if self.probe else self._next_try
        delay = free_at - self._clock()
        if self.probe and delay < PRECISION:
            self.close()
        return delay

    def record_answer(self, call: CallInFlight) -> None:
        """Record an answered call; close the circuit breaker unless the call was sent before the first refusal."""
        self._latency += (self._clock() - call.sent - self._latency) / 8
        if call.sent >= self._first_refused_sent:
            self.close()

    def close(self) -> None:
        """Close the circuit breaker, so that all calls may be sent."""
        seconds = self.seconds_down
        self.probes = self._refusals = 0
        self._open, self.probe = False, None
        if seconds is not None:
            self.on_change(f"the server is back after {seconds:.0f} s")

    def record_refusal(
        self, call: CallInFlight, wait: float | None, most_chance_refusals: float, message: str, min_seconds: float
    ) -> None:
        """Record a failed call, and open the circuit if necessary; `Limiter.record_refusal` explains the arguments."""
        now = self._clock()
        self._refusal_seconds = max(0.01, now - call.sent)
        self._refusals += 1
        if self._refusals == 1:
            self._refused_since, self._first_refused_sent = now, call.sent
        soon = now - self._refused_since < LEAST_DRY + self._latency and not min_seconds and (wait or 0.0) <= BELIEVED
        if call is self.probe:
            self.probes += 1
        elif self._open or self._refusals < most_chance_refusals or soon:
            return
        if not self._open:
            self._open, self._down = True, bool(message)
            if message:
                self.on_change(f"all calls wait, and one at a time tries again: {message}")
        pause = min(LONGEST_PROBE, max(FIRST_PROBE, min_seconds, DRY_SHARE * (now - self._refused_since)))
        self._next_try = now + (pause if wait is None else wait)
        if now < self.try_at < self._next_try:
            self._next_try = self.try_at


class RatePacer:
    """Spaces amounts evenly: at most `rate` per second, with no credit for idle time."""

    def __init__(self, rate: float = math.inf) -> None:
        self.rate = rate
        self.free_at = 0.0

    def book_amount(self, amount: float, now: float) -> None:
        """Count requests or tokens as sent now; a negative amount corrects an estimate that was too high."""
        self.free_at = max(self.free_at, now) + amount / self.rate


class ConnectionPool:
    """Counts the calls in flight to all models of a run, and limits their number."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.in_flight = 0
        self.waiters: dict[Callable[[], None], None] = {}
        self._idle: asyncio.Event | None = None

    def release_connection(self) -> None:
        """Release the connection of a call that has ended; then let the limiters of all models admit waiting calls."""
        self.in_flight -= 1
        if not self.in_flight and self._idle:
            self._idle.set()
        # Each limiter that must wait again moves to the end of `waiters`, so that all models take turns.
        for admit_more in list(self.waiters):
            if self.in_flight >= self.most:
                return
            self.waiters.pop(admit_more, None)
            admit_more()

    async def wait_until_idle(self) -> None:
        if self.in_flight:
            self._idle = asyncio.Event()
            await self._idle.wait()


class Limiter:
    """Admits the calls to one model: retries of refused calls before new calls, each in order of arrival.

    Args:
        rpm: maximum of requests per minute; None means no limit.
        tpm: maximum of tokens per minute, prompt and answer together; None means no limit.

    Attributes:
        most: number of calls that the server can serve at once; None if the server states no number.
        waiting: number of calls that wait to be admitted.
    """

    def __init__(
        self,
        connections: ConnectionPool | int,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connections = connections if isinstance(connections, ConnectionPool) else ConnectionPool(connections)
        self._rpm, self._tpm, self._clock = rpm, tpm, clock
        self._requests, self._tokens = (RatePacer(limit / 60 if limit else math.inf) for limit in (rpm, tpm))
        self.pacing, self.breaker = Pacing(self.connections.most), CircuitBreaker(clock)
        self.most: int | None = None
        self._queue: list[tuple[bool, int, int, asyncio.Future[CallInFlight]]] = []
        self._numbers = itertools.count()
        self._timer: asyncio.Handle | None = None
        self.waiting = self._backing_off = 0

    def make_connection_sharing_limiter(self) -> "Limiter":
        """Return a limiter for another model of the run; it shares the connections, but has its own rates."""
        return Limiter(self.connections, self._rpm, self._tpm, self._clock)

    async def admit_call(self, tokens: int, *, is_retry: bool = False) -> CallInFlight:
        """Wait until a call may be sent; after the call, the caller must call `end_call`."""
        turn: asyncio.Future[CallInFlight] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (not is_retry, next(self._numbers), tokens, turn))
        self.waiting += 1
        self._admit_waiting_calls()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and not turn.exception():
                self.end_call(turn.result())
            raise
        finally:
            self.waiting -= 1

    def _admit_waiting_calls(self) -> None:
        """Admit all calls that may be sent now, and set a timer for the next call."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        while self._queue:
            fresh, _, tokens, turn = self._queue[0]
            if turn.done():
                heapq.heappop(self._queue)
                continue
            if self.most is not None and len(self.pacing.calls) >= self.most:
                return
            if self.connections.in_flight >= self.connections.most:
                self.connections.waiters[self._admit_waiting_calls] = None
                return
            now = self._clock()
            delay = max(
                max(self._requests.free_at, self._tokens.free_at) - now,
                self.breaker.compute_delay(),
                self.pacing.compute_delay(now, self._backing_off if fresh else None),
            )
            if delay > PRECISION:
                if delay < math.inf:
                    self._timer = asyncio.get_running_loop().call_later(delay, self._admit_waiting_calls)
                return
            heapq.heappop(self._queue)
            self._requests.book_amount(1, now)
            self._tokens.book_amount(tokens, now)
            self.connections.in_flight += 1
            call = self.pacing.record_sent_call(now)
            if self.breaker.refusing_since is not None:
                self.breaker.probe = call
            turn.set_result(call)

    def end_call(self, call: CallInFlight) -> None:
        """Count a call that has ended, with or without success."""
        self.pacing.calls.pop(call)
        if call is self.breaker.probe:
            self.breaker.probe = None
        self.connections.release_connection()
        # Admit waiting calls in the event loop's next iteration, when a refused call already counts as backing off.
        # Therefore, no new call overtakes the refused call.
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_soon(self._admit_waiting_calls)

    @contextmanager
    def count_retry_wait(self) -> Iterator[None]:
        """Count a refused request while it waits to be sent again."""
        self._backing_off += 1
        try:
            yield
        finally:
            self._backing_off -= 1

    def record_answer(self, call: CallInFlight) -> None:
        """Record a call that the server answered, or refused because of the request itself."""
        self.pacing.record_answer(call, self._clock())
        self.breaker.record_answer(call)

    def correct_tokens(self, estimated: int, used: int) -> None:
        """Replace the estimate of a call's tokens by the actual number."""
        self._tokens.book_amount(used - estimated, self._clock())

    def record_refusal(
        self, call: CallInFlight, retry_after: float | None, message: str = "", min_seconds: float = 0.0
    ) -> None:
        """Record a call that did not reach the server, or that the server refused for lack of capacity.

        Args:
            retry_after: seconds that the server asks to wait; None if it states no time.
            message: the failure message for the terminal if the server is down; empty for a rate limit.
            min_seconds: the shortest time before the first probe of a server that is down.
        """
        self.pacing.record_refusal(call, self._clock(), probing=self.breaker.refusing_since is not None)
        self.breaker.record_refusal(call, retry_after, self.pacing.most_chance_refusals, message, min_seconds)

    def fail_waiting_calls(self, error: Exception) -> None:
        """Fail all waiting calls with an error, because no call can succeed."""
        queue, self._queue = self._queue, []
        for *_, turn in queue:
            if not turn.done():
                turn.set_exception(error)
        self.breaker.close()

    def set_quota_reset(self, seconds: float) -> None:
        """Store when the server's headers promise new quota; the next probe is sent at this time at the latest."""
        self.breaker.try_at = self._clock() + seconds
