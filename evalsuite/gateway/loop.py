"""One background event loop per process runs all asynchronous code, so that tests can be ordinary functions."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from evalsuite.core.errors import SettingsError

T = TypeVar("T")
MOST_THREADS = 4096
"""Maximum threads for `asyncio.to_thread`, made on demand. asyncio's own limit is six on two cores; if six agents
wait in threads for the model, the model's client gets no thread, so all would wait for ever."""


def refuse_work_in_forked_child(parent_pid: int, work: Coroutine[Any, Any, object] | None = None) -> None:
    """Refuse work in a forked child, because the parent's loop would never run it."""
    if os.getpid() != parent_pid:
        if work is not None:
            work.close()
        raise SettingsError(
            "a forked child process cannot ask a model: threads do not survive a fork. Ask in the test's own "
            "process, or start the child with multiprocessing's method `spawn` and hand it the answers"
        )


def is_current_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether the calling code runs on this event loop, where it must not block."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


async def await_on_loop(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Await a coroutine on an event loop, which may run in another thread."""
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class BackgroundLoop:
    """An event loop in its own daemon thread; it runs until `close`."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(ThreadPoolExecutor(MOST_THREADS, "evalsuite"))
        self._process, self._ending = os.getpid(), False
        self._thread = threading.Thread(target=self._run_loop, name="evalsuite-loop", daemon=True)
        self._thread.start()

    def _run_loop(self) -> None:
        while not self._ending:
            # A task that raises SystemExit or KeyboardInterrupt also stops the loop, so run the loop again.
            with suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine; threads other than the loop's may wait for the returned future."""
        refuse_work_in_forked_child(self._process, work)
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def raise_in_forked_child(self) -> None:
        refuse_work_in_forked_child(self._process)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and wait for its result in the calling thread."""
        return self.submit(work).result()

    def schedule_call(self, call: Callable[..., object], *args: Any) -> None:
        """Schedule a call in the loop's thread; calls after `close` are ignored."""
        # Ignore the error, because another thread may have closed the loop.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(call, *args)

    def close(self) -> None:
        """Cancel all running tasks, and end the thread."""
        if self.loop.is_closed():
            return
        self.run(self._cancel_tasks())
        self._ending = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _cancel_tasks(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_default_executor()
