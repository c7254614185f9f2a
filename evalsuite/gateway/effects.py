"""The tool calls of a case: each happens once, even if the run is resumed or replayed.

Tool calls take the same path as model calls: the process that runs the case asks the gateway, which has the journal.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from evalsuite.core.errors import ReplayMiss, RunError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from evalsuite.journal.tool_calls import ToolCalls


@dataclass(frozen=True, slots=True)
class Effect:
    """A tool call of a case and its place among the others.

    Attributes:
        case: pytest's node id.
        epoch: of the case.
        number: within the case, from 1.
        name: of the tool.
        arguments: JSON data.
    """

    case: str
    epoch: int
    number: int
    name: str
    arguments: Any

    def plain(self) -> dict[str, Any]:
        """As JSON data: the arguments of `Effect`."""
        return {name: getattr(self, name) for name in ("case", "epoch", "number", "name", "arguments")}


class Keeper(Protocol):
    """Remembers tool calls: the gateway itself, or the wire to it."""

    async def recall(self, effect: Effect) -> Any: ...

    async def keep(self, effect: Effect, result: Any) -> None: ...


class EffectLog:
    """The gateway's side.

    Args:
        calls: the table in the journal of the run, or of the run that is replayed.
    """

    def __init__(self, calls: ToolCalls) -> None:
        self._calls = calls

    def recall(self, effect: Effect) -> Any:
        """The result that the journal holds for a call, or None.

        Raises:
            ReplayMiss: this is a replay, and the journal does not hold the call.
            RunError: the journal cannot be read.
        """
        kept = self._calls.get(effect.case, effect.epoch, effect.number)
        if kept is not None and kept[:2] == (effect.name, effect.arguments):
            return kept[2]
        if self._calls.read_only:
            instead = f"a call of {kept[0]} with {kept[1]!r:.200}" if kept else "nothing"
            raise ReplayMiss(
                f"the journal holds {instead} where {effect.case} (epoch {effect.epoch}) makes its tool call "
                f"{effect.number}, {effect.name} with {effect.arguments!r:.200}; a replay never runs a tool"
            )
        return None

    def keep(self, effect: Effect, result: Any) -> None:
        """Stores a call before the model sees its result.

        Raises:
            RunError: it cannot be written.
        """
        if self._calls.read_only:
            raise RunError("a replay never runs a tool")
        self._calls.put(effect.case, effect.epoch, effect.number, effect.name, effect.arguments, result)


class Effects:
    """The tool calls of one case, in the process that runs it. Belongs to one event loop's thread.

    Args:
        keeper: the gateway, or the wire to it; None keeps nothing.
        case: pytest's node id.
        epoch: of the case.

    Attributes:
        recalled: name and arguments of the calls that were answered from the journal, in their order.
    """

    def __init__(self, keeper: Keeper | None = None, case: str = "", epoch: int = 1) -> None:
        self._keeper, self._case, self._epoch = keeper, case, epoch
        self._numbers = itertools.count(1)
        self.recalled: list[tuple[str, Mapping[str, Any]]] = []

    async def once(self, name: str, arguments: Mapping[str, Any], run: Callable[[], Awaitable[Any]]) -> Any:
        """The result of a call: from the journal if the call happened before, else by running it.

        Calls are numbered in the order in which this is called, so calls that run at the same time must be
        started in an order that does not depend on chance.

        Args:
            name: of the tool.
            arguments: JSON data.
            run: makes the call; its result is JSON data and never None.

        Raises:
            ReplayMiss: a replay makes a call that the run did not make.
            RunError: the journal cannot be used.
            Exception: whatever `run` raises; nothing is kept then.
        """
        effect = Effect(self._case, self._epoch, next(self._numbers), name, dict(arguments))
        if self._keeper is None:
            return await run()
        kept = await self._keeper.recall(effect)
        if kept is not None:
            self.recalled.append((name, arguments))
            return kept
        result = await run()
        await self._keeper.keep(effect, result)
        return result
