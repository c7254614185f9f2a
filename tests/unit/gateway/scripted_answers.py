"""What the servers of the gateway's tests answer, and what its journal keeps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from evalsuite.core.types import Completion, Usage
from evalsuite.journal.answers import Answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.core.types import Request
    from evalsuite.gateway.gateway import Gateway

ANSWER = Completion("fine", usage=Usage(1, 10, 5, unpriced=1))


def journal_of(gateway: Gateway) -> Answers:
    assert isinstance(gateway.store, Answers)
    return gateway.store


def script(*said: Completion | Exception) -> Any:
    """Answers in turn, the last one for ever."""
    rest: Iterator[Completion | Exception] = iter(said)
    last: list[Completion | Exception] = []

    def answer(_: Request) -> Completion:
        last[:] = [next(rest, *last)]
        if isinstance(last[0], Exception):
            raise last[0]
        return last[0]

    return answer


def slow(seconds: float, said: Completion = ANSWER) -> Any:
    async def answer(_: Request) -> Completion:
        await asyncio.sleep(seconds)
        return said

    return answer
