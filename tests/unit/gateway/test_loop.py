"""The background loop: work from other threads, and its end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from evalsuite.gateway.loop import BackgroundLoop


async def answer() -> int:
    await asyncio.sleep(0)
    return 42


def test_work_is_done_in_a_thread_of_its_own() -> None:
    loop = BackgroundLoop()

    async def where() -> str:
        return threading.current_thread().name

    assert loop.run(where()) == "evalsuite-loop"
    assert loop.submit(answer()).result(10) == 42
    loop.close()


def test_what_the_work_raises_is_raised_where_it_is_waited_for() -> None:
    loop = BackgroundLoop()

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        loop.run(fail())
    assert loop.run(answer()) == 42
    loop.close()


def test_closing_cancels_what_still_runs_and_lets_it_clean_up() -> None:
    loop, cleaned = BackgroundLoop(), threading.Event()

    async def endless() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    future = loop.submit(endless())
    loop.run(answer())
    loop.close()
    assert cleaned.is_set()
    assert future.cancelled()
    assert not loop._thread.is_alive()


def test_closing_twice_and_calling_after_the_end_do_nothing() -> None:
    loop, called = BackgroundLoop(), threading.Event()
    loop.schedule_call(called.set)
    assert called.wait(10)
    loop.close()
    loop.close()
    called.clear()
    loop.schedule_call(called.set)
    assert not called.is_set()


def test_the_loop_hears_other_threads_while_it_sleeps() -> None:
    loop = BackgroundLoop()
    heard = threading.Event()
    sleeping = loop.submit(asyncio.sleep(0.9))
    loop.schedule_call(heard.set)
    assert heard.wait(0.8)
    sleeping.cancel()
    loop.close()


def test_a_hundred_agents_may_wait_in_threads_at_once() -> None:
    loop, together = BackgroundLoop(), threading.Barrier(100)

    async def wait_in_threads() -> None:
        await asyncio.gather(*(asyncio.to_thread(together.wait, 20.0) for _ in range(together.parties)))

    loop.run(wait_in_threads())
    loop.close()
