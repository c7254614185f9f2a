"""Run a user's plain function from a coroutine without blocking the event loop."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from evalsuite.core.errors import describe_error

P = ParamSpec("P")
T = TypeVar("T")


class RaisedInThread(Exception):  # noqa: N818 - says what happened
    """Wraps an exception that a coroutine must not raise, such as SystemExit or StopIteration."""


async def run_in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a daemon thread of its own, and await its result.

    Each call gets its own thread, because a user's function may wait for any length of time. The number of cases in
    flight limits the number of threads. Python does not wait for daemon threads, so a function that never returns
    cannot keep the run from ending.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def resolve_future_if_pending(set_outcome: Callable[[Any], None], outcome: object) -> None:
        # If the caller was cancelled, the future is already done and must not be set again.
        if not result.done():
            set_outcome(outcome)

    def call_function_and_resolve_future() -> None:
        set_outcome: Callable[[Any], None] = result.set_result
        outcome: object
        try:
            outcome = function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - whatever it is, somebody waits for it
            set_outcome, outcome = result.set_exception, error
            if not isinstance(error, Exception) or isinstance(error, (StopIteration, StopAsyncIteration)):
                # A future cannot raise these errors.
                outcome = RaisedInThread(describe_error(error))
                outcome.__cause__ = error
        # If the event loop has ended, nobody waits for the result.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(resolve_future_if_pending, set_outcome, outcome)

    context = contextvars.copy_context()
    threading.Thread(
        target=context.run, args=(call_function_and_resolve_future,), name="evalsuite-call", daemon=True
    ).start()
    return await result


async def call_maybe_async(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call an async function in this thread, a plain function in a new one; await the result if it is awaitable."""
    result = await (function(*args, **kwargs) if is_async(function) else run_in_thread(function, *args, **kwargs))
    return await result if inspect.isawaitable(result) else result


def is_async(function: object) -> bool:
    """Tell whether a call of a function or callable object returns a coroutine."""
    return any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004
