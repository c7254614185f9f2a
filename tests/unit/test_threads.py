from __future__ import annotations

import asyncio
import functools
import threading

import pytest

from evalsuite.core.threads import RaisedInThread, is_async, run_in_thread


def test_a_plain_function_runs_beside_the_event_loop() -> None:
    assert asyncio.run(run_in_thread(threading.current_thread)) is not threading.current_thread()


def test_calls_that_wait_for_each_other_all_have_a_thread() -> None:
    barrier = threading.Barrier(100, timeout=30)

    async def meet() -> list[int]:
        return await asyncio.gather(*(run_in_thread(barrier.wait) for _ in range(100)))

    assert sorted(asyncio.run(meet())) == list(range(100))


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration("no more")])
def test_what_would_end_the_loop_arrives_as_an_ordinary_exception(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RaisedInThread, match=type(error).__name__):
        asyncio.run(run_in_thread(fail))


def test_an_ordinary_exception_arrives_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_in_thread(lambda: 1 // 0))


def test_async_callables_are_known() -> None:
    async def waits() -> None: ...

    class Waits:
        async def __call__(self) -> None: ...

    assert all(map(is_async, (waits, Waits(), functools.partial(waits))))
    assert not any(map(is_async, (len, lambda: None)))
