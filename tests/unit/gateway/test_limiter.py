"""The limiter, in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.gateway.limiter import Limiter
from evalsuite.gateway.pacing import Pacing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from evalsuite.gateway.pacing import CallInFlight
    from tests.unit.gateway.conftest import Virtual


def limiter(connections: int = 4, **paces: float) -> Limiter:
    return Limiter(connections, clock=asyncio.get_running_loop().time, **paces)


@asynccontextmanager
async def admitted(limits: Limiter, tokens: int) -> AsyncIterator[CallInFlight]:
    """Hold a place while the block runs."""
    call = await limits.admit_call(tokens)
    try:
        yield call
    finally:
        limits.end_call(call)


async def admit_all(limits: Limiter, count: int, lasting: float = 0.0, tokens: int = 1) -> list[float]:
    """When each of some calls was admitted."""

    async def one() -> float:
        async with admitted(limits, tokens) as call:
            await asyncio.sleep(lasting)
            return call.sent

    return await asyncio.gather(*(one() for _ in range(count)))


@given(
    connections=st.integers(1, 5), calls=st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3)), min_size=1, max_size=25)
)
@settings(max_examples=40, deadline=None)
def test_no_more_calls_than_connections_are_ever_in_flight(
    virtual: Virtual, connections: int, calls: list[tuple[float, float]]
) -> None:
    async def main() -> int:
        limits, flying, most = limiter(connections), 0, 0

        async def one(begins: float, lasts: float) -> None:
            nonlocal flying, most
            await asyncio.sleep(begins)
            async with admitted(limits, 1):
                flying += 1
                most = max(most, flying)
                assert flying <= limits.connections.in_flight <= connections
                await asyncio.sleep(lasts)
                flying -= 1

        await asyncio.gather(*(one(*call) for call in calls))
        assert (limits.connections.in_flight, limits.waiting) == (0, 0)
        return most

    assert virtual(main()) <= connections


def test_all_connections_are_used_where_there_is_work(virtual: Virtual) -> None:
    async def main() -> list[float]:
        return await admit_all(limiter(3), 9, lasting=2.0)

    assert virtual(main()) == [0.0] * 3 + [2.0] * 3 + [4.0] * 3


def test_calls_are_admitted_in_the_order_in_which_they_ask(virtual: Virtual) -> None:
    async def main() -> list[int]:
        limits, order = limiter(2, rpm=600), []

        async def one(number: int) -> None:
            async with admitted(limits, 1):
                order.append(number)
                # The first ones last longest, so that places become free in another order.
                await asyncio.sleep(1.0 / (1 + number % 3))

        await asyncio.gather(*(one(number) for number in range(20)))
        return order

    assert virtual(main()) == list(range(20))


def test_requests_a_minute_are_spaced_evenly(virtual: Virtual) -> None:
    async def main() -> list[float]:
        return await admit_all(limiter(100, rpm=30), 5)

    assert virtual(main()) == pytest.approx([0, 2, 4, 6, 8])


def test_a_pause_of_the_askers_earns_no_credit(virtual: Virtual) -> None:
    async def main() -> list[float]:
        limits = limiter(100, rpm=60)
        await admit_all(limits, 1)
        await asyncio.sleep(100)
        return await admit_all(limits, 3)

    assert virtual(main()) == pytest.approx([100, 101, 102])


def test_tokens_a_minute_hold_back_the_call_after_a_large_one(virtual: Virtual) -> None:
    async def main() -> list[float]:
        return await admit_all(limiter(100, tpm=6000), 3, tokens=500)

    assert virtual(main()) == pytest.approx([0, 5, 10])


def test_tokens_that_were_not_used_are_given_back_and_those_above_the_estimate_are_paid(virtual: Virtual) -> None:
    async def main(used: int) -> list[float]:
        limits = limiter(100, tpm=6000)
        async with admitted(limits, 500):
            pass
        limits.correct_tokens(500, used)
        return await admit_all(limits, 2, tokens=100)

    assert virtual(main(500)) == pytest.approx([5, 6])
    assert virtual(main(100)) == pytest.approx([1, 2])
    assert virtual(main(800)) == pytest.approx([8, 9])


@given(rpm=st.floats(1, 600), tpm=st.floats(60, 60_000), sizes=st.lists(st.integers(1, 400), max_size=30))
@settings(max_examples=30, deadline=None)
def test_neither_pace_is_ever_passed(virtual: Virtual, rpm: float, tpm: float, sizes: list[int]) -> None:
    async def main() -> list[float]:
        limits, times = limiter(3, rpm=rpm, tpm=tpm), []
        for size in sizes:
            async with admitted(limits, size) as call:
                times.append(call.sent)
        return times

    times = virtual(main())
    for index in range(1, len(times)):
        # From any call on: so many later ones took so long at least.
        for first in range(index):
            span = (times[index] - times[first]) * (1 + 1e-9) + 1e-6
            assert (index - first) * 60 / rpm <= span
            assert sum(sizes[first:index]) * 60 / tpm <= span


def test_a_waiter_that_gives_up_leaves_nothing_behind(virtual: Virtual) -> None:
    async def main() -> tuple[list[float], int]:
        limits = limiter(1, rpm=60)

        async def hold(seconds: float) -> None:
            async with admitted(limits, 1):
                await asyncio.sleep(seconds)

        holder = asyncio.create_task(hold(10))
        await asyncio.sleep(0)
        impatient = [asyncio.create_task(hold(5)) for _ in range(5)]
        await asyncio.sleep(1)
        assert limits.waiting == 5
        for task in impatient:
            task.cancel()
        await asyncio.gather(*impatient, return_exceptions=True)
        assert limits.waiting == 0
        await holder
        return await admit_all(limits, 2), limits.connections.in_flight

    # Those that gave up hold no place and were booked on no pace.
    times, in_flight = virtual(main())
    assert times == pytest.approx([10, 11])
    assert in_flight == 0


def test_a_call_that_is_cancelled_gives_its_place_back(virtual: Virtual) -> None:
    async def main() -> list[float]:
        limits = limiter(1)

        async def hold() -> None:
            async with admitted(limits, 1):
                await asyncio.sleep(100)

        task = asyncio.create_task(hold())
        await asyncio.sleep(3)
        task.cancel()
        return await admit_all(limits, 1)

    assert virtual(main()) == [3.0]


def test_idle_waits_for_the_last_call(virtual: Virtual) -> None:
    async def main() -> float:
        limits = limiter(4)
        calls = asyncio.create_task(admit_all(limits, 6, lasting=2.0))
        await asyncio.sleep(0.5)
        limits.connections.most = 0
        await limits.connections.wait_until_idle()
        calls.cancel()
        return asyncio.get_running_loop().time()

    assert virtual(main()) == 2.0


def serve_one_at_once(pacing: Pacing, calls: int) -> float:
    """Send two calls at a time, of which the server answers one; return the time of the last answer."""
    time = 0.0
    for _ in range(calls):
        served, refused = pacing.record_sent_call(time), pacing.record_sent_call(time)
        pacing.record_refusal(refused, time + 0.01)
        pacing.calls.pop(refused)
        time += 0.2
        pacing.record_answer(served, time)
        pacing.calls.pop(served)
        if not pacing.plain:
            break
    return time


def test_calls_at_once_are_limited_where_all_refusals_came_at_one_number_in_service() -> None:
    pacing = Pacing(4)
    serve_one_at_once(pacing, 40)
    assert (pacing.plain, pacing.spaced, pacing.limit, pacing.rate) == (False, False, 1, None)


def test_a_call_that_never_ends_delays_the_others_only_until_paced_calls_fall_behind() -> None:
    pacing = Pacing(4)
    time = serve_one_at_once(pacing, 40)
    assert not pacing.plain
    pacing.record_sent_call(time)
    delay = pacing.compute_delay(time, None)
    assert 0 < delay < 2
    assert pacing.compute_delay(time + delay, None) == 0
    assert pacing.plain
