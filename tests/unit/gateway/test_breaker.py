"""While a server is down, one call at a time tries whether it is back, and the terminal can say when."""

from __future__ import annotations

import asyncio

from evalsuite.gateway.breaker import OPENING, Breaker, DownTime


class Clock:
    """Seconds that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def down(breaker: Breaker, times: int = OPENING) -> None:
    for _ in range(times):
        breaker.down("refused")


def test_a_server_that_is_up_has_no_outage() -> None:
    breaker = Breaker(Clock())
    down(breaker, OPENING - 1)
    assert breaker.outage() is None


def test_an_outage_is_counted_from_the_first_call_that_came_to_nothing() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    breaker.down("refused")
    clock.now = 107.0
    down(breaker, OPENING - 1)
    assert breaker.outage() == DownTime(7.0, None)
    breaker.answered()
    assert breaker.outage() is None


def test_whoever_waits_for_the_next_try_sees_when_it_comes() -> None:
    clock = Clock()

    async def wait() -> DownTime | None:
        breaker = Breaker(clock)
        down(breaker)
        waiting = asyncio.ensure_future(breaker.passage())
        await asyncio.sleep(0)
        clock.now += 0.5
        outage = breaker.outage()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert breaker.outage() == DownTime(0.5, None)
        return outage

    outage = asyncio.run(wait())
    assert outage is not None
    assert outage.next_try is not None
    # A first pause of a second, give or take a quarter.
    assert 0.25 <= outage.next_try <= 0.75
