"""What several cases write goes into one transaction, which itself is most of what a write costs."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from evalsuite.core.errors import RunError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from evalsuite.journal.database import Database

    Work = Callable[[sqlite3.Connection], object]
    Done = Callable[[RunError | None], object]


class GroupCommit:
    """Work that waits for the next transaction.

    Args:
        database: of the journal.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[Work, Done | None]] = []
        self._lock = threading.RLock()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, work: Work, done: Done | None = None) -> None:
        """Has work done with the next transaction, after whatever was added before; from any thread.

        Args:
            work: given the connection, writes.
            done: hears when the work outlives the process, or why it was not done. Without it, work that cannot be
                done is tried again with the next transaction.
        """
        with self._lock:
            self._waiting.append((work, done))

    def settle(self) -> None:
        """Does all that waits; from any thread."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
            if waiting and not self._did([work for work, _ in waiting]):
                # What one of them cannot do must not keep the others from being written.
                for work, done in waiting:
                    error = self._error(work)
                    if error is not None and done is None:
                        self._waiting.append((work, None))
                    elif done is not None:
                        done(error)
                return
        for _, done in waiting:
            if done is not None:
                done(None)

    def _did(self, every: list[Work]) -> bool:
        try:
            with self._database.transaction() as db:
                for work in every:
                    work(db)
        except RunError:
            return False
        return True

    def _error(self, work: Work) -> RunError | None:
        try:
            with self._database.transaction() as db:
                work(db)
        except RunError as error:
            return error
        return None

    def settle_within(self, seconds: float) -> None:
        """Has all that waits done at the latest after so many seconds; in the thread of an event loop."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._timer is None or due < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(due, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.settle()

    async def commit(self, work: Work) -> None:
        """Has work done together with what else this turn of the event loop brings.

        When this returns, its effect outlives the process.

        Raises:
            RunError: it was not done.
        """
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        outcome: asyncio.Future[RunError | None] = loop.create_future()

        def tell(error: RunError | None) -> None:
            if not outcome.done():
                outcome.set_result(error)

        def done(error: RunError | None) -> None:
            if threading.get_ident() == thread:
                tell(error)
                return
            # Nobody waits in a loop that is closed.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(tell, error)

        self.add(work, done)
        self.settle_within(0.0)
        error = await outcome
        if error is not None:
            raise error
