"""Several calls at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

T = TypeVar("T")


async def together(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Waits for all calls; if any failed, raises the error of the first one in order.

    A task group would stop the others at the first failure in time. Here all run to their end, so that
    neither the error that is reported nor what was paid depends on who answered fastest.
    """
    results = await asyncio.gather(*calls, return_exceptions=True)
    done: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done
