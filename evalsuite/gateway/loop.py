"""One background event loop a process: everything asynchronous runs there, tests stay ordinary functions."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

T = TypeVar("T")


class BackgroundLoop:
    """An event loop in a daemon thread of its own; it runs until `close`."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="evalsuite-loop", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts work; the future may be waited for in any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Does work and waits for it."""
        return self.submit(work).result()

    def soon(self, call: Callable[..., object], *args: Any) -> None:
        """Calls a function in the loop's thread, a little later; after `close`, never."""
        # It may be closed by another thread in between.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(call, *args)

    def close(self) -> None:
        """Cancels what still runs, and ends the thread."""
        if self.loop.is_closed():
            return
        self.run(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _cancel_all(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_default_executor()
