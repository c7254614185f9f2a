"""Keeps a window of cases in flight: those that this process runs next are being solved and judged.

Concurrency is therefore set by the gateway, not by the number of processes.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TYPE_CHECKING

from evalsuite.core.errors import InternalError
from evalsuite.engine.solving import Models, Solved, solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evalsuite.core.settings import Settings
    from evalsuite.engine.bound import Bound
    from evalsuite.engine.cases import Case
    from evalsuite.gateway.loop import BackgroundLoop

IN_ONE_BATCH = 50_000
"""Cases in flight at most if requests are sent in batches; the largest batch holds as many."""


def window_of(settings: Settings, workers: int = 1) -> int:
    """Return how many cases a process keeps in flight: its share of the connections, doubled if it has siblings.

    Doubled, so that connections do not stay idle when another process falls behind.
    """
    if settings.batch:
        return IN_ONE_BATCH
    share = -(-settings.max_connections // workers)
    return min(settings.max_connections, 2 * share) if workers > 1 else share


class CaseQueue:
    """The cases of a process that knows all of them, in order.

    Args:
        cases: None for an item that is not a case or has no solver.
    """

    def __init__(self, cases: Sequence[Case | None]) -> None:
        self._cases, self._position, self._given = cases, 0, 0

    def move_to(self, position: int) -> None:
        """Set which item runs now."""
        self._position = position

    def __call__(self, most: int) -> Iterator[Case]:
        """Yield the cases among the next `most` items, each of them once."""
        self._given = max(self._given, self._position + 1)
        while self._given < min(self._position + 1 + most, len(self._cases)):
            case = self._cases[self._given]
            self._given += 1
            if case is not None:
                yield case


class Prefetcher:
    """Solves the cases that come next while the current one is tested.

    Args:
        background: the event loop that solves them.
        models: the run's.
        upcoming: yields the cases after the current one in order, each of them once; receives how far to look
            ahead, and is called in the loop's thread.
        window: cases in flight at most.
    """

    def __init__(
        self,
        background: BackgroundLoop,
        models: Models,
        upcoming: Callable[[int], Iterator[Case]],
        window: int,
    ) -> None:
        self._background, self._models, self._upcoming, self._window = background, models, upcoming, window
        self._tasks: set[asyncio.Task[None]] = set()
        # The main thread waits for these futures and removes them, so that the threads seldom have to wake each other.
        self._results: dict[Case, Future[Solved]] = {}
        self._bounds: set[Bound] = set()
        self._in_flight = 0

    def begin(self, case: Case | None) -> None:
        """Start the current case, and as many as the window has room for; called when an item begins."""
        is_started = case is None or case in self._results
        if not (is_started and self._in_flight >= self._window):
            # A started case may be removed before the loop runs this call, which would start it a second time.
            self._background.soon(self._begin, None if is_started else case)

    def result(self, case: Case) -> Solved:
        """Wait for a case's result, and start the case if need be."""
        self._background.refuse_in_child()
        future = self._results.get(case) or self._background.run(self._find_or_start(case))
        try:
            return future.result()
        finally:
            self._results.pop(case, None)

    def _begin(self, case: Case | None) -> None:
        if case is not None and case not in self._results:
            self._start(case)
        self._refill()

    async def _find_or_start(self, case: Case) -> Future[Solved]:
        return self._results.get(case) or self._start(case)

    def _refill(self) -> None:
        # The look-ahead bounds the results that wait for their test, because a slow test must not let them pile up.
        coming = self._upcoming(4 * self._window)
        while self._in_flight < self._window and (case := next(coming, None)) is not None:
            if case not in self._results:
                self._start(case)

    def _start(self, case: Case) -> Future[Solved]:
        future: Future[Solved] = Future()
        self._results[case] = future
        self._bounds.add(case.bound)
        self._in_flight += 1
        task = asyncio.get_running_loop().create_task(self._solve(case, future))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return future

    async def _solve(self, case: Case, future: Future[Solved]) -> None:
        try:
            solved = await solve(case, self._models)
        except asyncio.CancelledError:
            future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - whoever waits for the result gets it
            # Whatever a solver or scorer raises is part of the result.
            failed = InternalError(f"evalsuite failed on {case.id}: {type(error).__name__}: {error}")
            failed.__cause__ = error
            future.set_exception(failed)
        except BaseException as error:  # noqa: BLE001 - as above; SystemExit and its like keep their meaning
            future.set_exception(error)
        else:
            future.set_result(solved)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._in_flight -= 1
        self._refill()

    async def aclose(self) -> None:
        """Cancel the cases in flight, and close solvers and scorers."""
        self._upcoming = lambda _: iter(())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for bound in self._bounds:
            for holder in (bound.solver, *bound.scorers):
                close = getattr(holder, "aclose", None)
                if close is not None:
                    await close()
