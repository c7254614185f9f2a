"""The limiter, in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.gateway.limiter import FIRST_PAUSE, GROWTH, LONGEST_PAUSE, Limiter

if TYPE_CHECKING:
    from tests.unit.gateway.conftest import Virtual


def limiter(connections: int = 4, **paces: float) -> Limiter:
    return Limiter(connections, clock=asyncio.get_running_loop().time, **paces)


async def admit_all(limits: Limiter, count: int, lasting: float = 0.0, tokens: int = 1) -> list[float]:
    """When each of some calls was admitted."""

    async def one() -> float:
        async with limits.admit(tokens) as admitted:
            await asyncio.sleep(lasting)
            return admitted

    return await asyncio.gather(*(one() for _ in range(count)))


@given(
    connections=st.integers(1, 5),
    calls=st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3)), min_size=1, max_size=25),
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
            async with limits.admit(1):
                flying += 1
                most = max(most, flying)
                assert limits.in_flight == flying
                await asyncio.sleep(lasts)
                flying -= 1

        await asyncio.gather(*(one(*call) for call in calls))
        assert (limits.in_flight, limits.waiting) == (0, 0)
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
            async with limits.admit(1):
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


def test_tokens_that_were_not_used_are_given_back_and_those_above_the_estimate_are_paid(
    virtual: Virtual,
) -> None:
    async def main(used: int) -> list[float]:
        limits = limiter(100, tpm=6000)
        async with limits.admit(500) as admitted:
            pass
        limits.accepted(admitted, 500, used)
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
            async with limits.admit(size) as admitted:
                times.append(admitted)
        return times

    times = virtual(main())
    for index in range(1, len(times)):
        # From any call on: so many later ones took so long at least.
        for first in range(index):
            span = (times[index] - times[first]) * (1 + 1e-9) + 1e-6
            assert (index - first) * 60 / rpm <= span
            assert sum(sizes[first:index]) * 60 / tpm <= span


def test_a_refusal_pauses_everybody_for_as_long_as_the_server_asks(virtual: Virtual) -> None:
    async def main() -> list[float]:
        limits = limiter(100)
        async with limits.admit(1) as admitted:
            limits.refused(admitted, 7.0)
        return await admit_all(limits, 2)

    assert virtual(main()) == [7.0, 7.0]


def test_the_longest_of_several_pauses_counts(virtual: Virtual) -> None:
    async def main() -> float:
        limits = limiter(100)
        async with limits.admit(1) as one, limits.admit(1) as other:
            limits.refused(one, 9.0)
            limits.refused(other, 2.0)
        return (await admit_all(limits, 1))[0]

    assert virtual(main()) == 9.0


def test_pauses_without_a_number_double_until_a_call_is_accepted(
    virtual: Virtual, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: (low + high) / 2)

    async def main() -> list[float]:
        limits, pauses = limiter(1), []
        clock = asyncio.get_running_loop().time

        async def refuse() -> None:
            async with limits.admit(1) as admitted:
                limits.refused(admitted, None)
            before = clock()
            pauses.append(limits._resume_at - before)

        for _ in range(9):
            await refuse()
        async with limits.admit(1) as admitted:
            limits.accepted(admitted, 1, 1)
        await refuse()
        return pauses

    doubled = [min(LONGEST_PAUSE, FIRST_PAUSE * 2**step) for step in range(9)]
    assert virtual(main()) == [*doubled, FIRST_PAUSE]


def test_calls_that_were_under_way_are_part_of_the_same_refusal(virtual: Virtual) -> None:
    async def main() -> float:
        limits = limiter(10)
        entered = [limits.admit(1) for _ in range(10)]
        admitted = [await one.__aenter__() for one in entered]
        await asyncio.sleep(1)
        for refused in admitted[4:]:
            limits.refused(refused, 1.0)
        for one in entered:
            await one.__aexit__(None, None, None)
        assert limits._pauses == 1
        return limits.rate or 0.0

    # Four of ten were granted, over the one second that passed and the one of the pause.
    assert virtual(main()) == pytest.approx(4 / 2)


class Bucket:
    """A server that grants so many requests a second on average, and some at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst, self.level, self.at = rate, burst, burst, 0.0
        self.granted: list[float] = []
        self.refusals: list[float] = []

    def ask(self, now: float) -> float | None:
        self.level = min(self.burst, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level < 1:
            self.refusals.append(now)
            return (1 - self.level) / self.rate
        self.level -= 1
        self.granted.append(now)
        return None


async def use(limits: Limiter, bucket: Bucket, calls: int) -> None:
    clock = asyncio.get_running_loop().time

    async def one() -> None:
        while True:
            async with limits.admit(1) as admitted:
                await asyncio.sleep(0.05)
                wait = bucket.ask(clock())
                if wait is None:
                    limits.accepted(admitted, 1, 1)
                    return
                limits.refused(admitted, wait)

    await asyncio.gather(*(one() for _ in range(calls)))


@pytest.mark.parametrize("rate", [2.0, 10.0])
def test_the_rate_that_a_server_allows_is_found_and_hardly_ever_touched(
    virtual: Virtual, rate: float
) -> None:
    async def main() -> tuple[Bucket, float]:
        bucket = Bucket(rate, burst=rate * 5)
        await use(limiter(16), bucket, 400)
        return bucket, asyncio.get_running_loop().time()

    bucket, took = virtual(main())
    assert len(bucket.granted) == 400
    # The least time that any client needs, and how near this one comes to it.
    assert took < 1.15 * (400 - 5 * rate) / rate
    assert len(bucket.refusals) < 60


@pytest.mark.parametrize(("burst", "used"), [(60, 0), (60, 60), (600, 600)])
def test_a_minute_that_others_have_used_up_costs_little_more_than_that_minute(
    virtual: Virtual, burst: int, used: int
) -> None:
    class Window(Bucket):
        """A server that counts requests in whole minutes."""

        def ask(self, now: float) -> float | None:
            if now // 60 > self.at // 60:
                self.level = self.burst
            self.at = now
            if self.level < 1:
                self.refusals.append(now)
                return 60 - now % 60
            self.level -= 1
            self.granted.append(now)
            return None

    async def main() -> float:
        server = Window(burst / 60, burst)
        server.level = burst - used
        await use(limiter(16), server, 5 * burst)
        return asyncio.get_running_loop().time()

    # The rest of the minute, then five such minutes of which the last one need not end.
    assert virtual(main()) < 60 + 5 * 60


def test_a_rate_at_which_nothing_is_granted_is_halved(virtual: Virtual) -> None:
    async def main() -> list[float | None]:
        limits, found = limiter(1), []
        async with limits.admit(1) as admitted:
            limits.refused(admitted, 5.0)
        found.append(limits.rate)
        async with limits.admit(1):
            await asyncio.sleep(2)
        async with limits.admit(1) as admitted:
            limits.refused(admitted, 2.0)
        found.append(limits.rate)
        async with limits.admit(1) as admitted:
            limits.refused(admitted, 1.0)
        return [*found, limits.rate]

    first, second, third = virtual(main())
    assert first is None
    assert second == pytest.approx(1 / 4)
    assert third == pytest.approx(1 / 8, rel=0.1)


@given(
    waits=st.lists(st.tuples(st.floats(0, 2), st.integers(0, 4), st.floats(0.01, 5)), min_size=1, max_size=12)
)
@settings(max_examples=30, deadline=None)
def test_a_refusal_never_raises_the_rate(virtual: Virtual, waits: list[tuple[float, int, float]]) -> None:
    async def main() -> None:
        limits = limiter(8)
        for pause, granted, wait in waits:
            await asyncio.sleep(pause)
            await admit_all(limits, granted)
            async with limits.admit(1) as admitted:
                before = limits.rate
                limits.refused(admitted, wait)
            assert before is None or (limits.rate or 0.0) <= before

    virtual(main())


def test_a_found_rate_grows_slowly_until_it_is_refused_again(virtual: Virtual) -> None:
    async def main() -> tuple[float, float]:
        limits = limiter(1)
        await admit_all(limits, 1)
        async with limits.admit(1) as admitted:
            await asyncio.sleep(1)
            limits.refused(admitted, 1.0)
        before = limits.rate or 0.0
        for _ in range(10):
            await asyncio.sleep(1.0)
            await admit_all(limits, 1)
        return before, limits.rate or 0.0

    before, after = virtual(main())
    assert before == pytest.approx(0.5)
    assert before * (1 + GROWTH) ** 9 <= after <= before * (1 + GROWTH) ** 25


def test_a_waiter_that_gives_up_leaves_nothing_behind(virtual: Virtual) -> None:
    async def main() -> tuple[list[float], int]:
        limits = limiter(1, rpm=60)

        async def hold(seconds: float) -> None:
            async with limits.admit(1):
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
        return await admit_all(limits, 2), limits.in_flight

    # Those that gave up hold no place and were booked on no pace.
    times, in_flight = virtual(main())
    assert times == pytest.approx([10, 11])
    assert in_flight == 0


def test_a_call_that_is_cancelled_gives_its_place_back(virtual: Virtual) -> None:
    async def main() -> list[float]:
        limits = limiter(1)

        async def hold() -> None:
            async with limits.admit(1):
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
        limits.connections = 0
        await limits.idle()
        calls.cancel()
        return asyncio.get_running_loop().time()

    assert virtual(main()) == 2.0
