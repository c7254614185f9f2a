"""Several calls at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from evalsuite.core.errors import JudgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence
    from typing import Any


class Logged(Protocol):
    """A judgement with everything that was said for it."""

    @property
    def log(self) -> Sequence[Mapping[str, Any]]:
        """The messages, as plain data."""
        ...


T = TypeVar("T")
L = TypeVar("L", bound=Logged)


async def together(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Waits for all calls; if any failed, raises the error of the first one in order.

    A task group would stop the others at the first failure in time. Here all run to their end, so that
    neither the error that is reported nor what was paid depends on who answered fastest.
    """
    results = await asyncio.gather(*calls, return_exceptions=True)
    return [_or_raised(result) for result in results]


@dataclass(frozen=True, slots=True)
class Readable(Generic[L]):
    """The judgements that could be read, and everything that was said, for those that could not as well."""

    judgements: Sequence[L]
    log: tuple[Mapping[str, Any], ...]


async def readable(calls: Iterable[Awaitable[L]], quorum: int | None = None) -> Readable[L]:
    """Waits for all calls and parts the judgements that can be read from those that cannot.

    Args:
        calls: for one judgement each.
        quorum: how many must be readable; None for all.

    Raises:
        JudgeError: fewer are; its log holds what was said for all of them.
        ModelError: a call failed for good.
    """
    results = await asyncio.gather(*calls, return_exceptions=True)
    outcomes = [result if isinstance(result, JudgeError) else _or_raised(result) for result in results]
    judgements = [outcome for outcome in outcomes if not isinstance(outcome, JudgeError)]
    unread = [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]
    log = tuple(entry for outcome in outcomes for entry in outcome.log)
    needed = len(outcomes) if quorum is None else min(quorum, len(outcomes))
    if len(judgements) < needed:
        count = f" ({len(judgements)} of {len(outcomes)} answers could be read; {needed} are needed)"
        raise JudgeError(f"{unread[0]}{count if len(outcomes) > 1 else ''}", log) from unread[0]
    return Readable(judgements, log)


def _or_raised(result: T | BaseException) -> T:
    if isinstance(result, BaseException):
        raise result
    return result
