"""Cases in flight: each is solved once."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, cast

from evalsuite.engine import solving
from evalsuite.gateway.loop import BackgroundLoop

if TYPE_CHECKING:
    import pytest


def test_a_case_that_is_done_when_its_item_begins_is_not_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[Any] = []

    async def solve(case: Any, _models: Any) -> Any:
        solved.append(case)
        return case

    monkeypatch.setattr(solving, "solve_case", solve)
    background = BackgroundLoop()
    case = cast("Any", _Case())
    coming = iter([case])
    prefetcher = solving.Prefetcher(background, cast("Any", None), lambda _: iter([*coming]), window=5)
    try:
        prefetcher.begin_case(None)
        background.run(_turns())
        # The loop is busy with something else while the item begins, takes its result and ends.
        release = threading.Event()
        background.schedule_call(release.wait)
        prefetcher.begin_case(case)
        assert prefetcher.wait_for_result(case) is case
        release.set()
        background.run(_turns())
        assert solved == [case]
    finally:
        background.run(prefetcher.aclose())
        background.close()


class _Bound:
    solver, scorers = None, ()


class _Case:
    bound = _Bound()


async def _turns() -> None:
    """Lets the loop do what was scheduled before, and what that has scheduled."""
    for _ in range(5):
        await asyncio.sleep(0)
