"""Faults that are injected into a world, to see what an agent makes of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.tools.execution import ToolFailure, as_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.gateway.effects import Effects
    from evalsuite.protocols import Model
    from evalsuite.tools.documents import ToolDocument
    from evalsuite.tools.execution import Executor


_WORDS = {
    "fails": "fails at call",
    "slow": "is slow at call",
    "stale": "is stale at call",
    "poisoned": "is poisoned at call",
}


@dataclass(frozen=True, slots=True)
class Injected:
    """Faults by tool and number of the call, from 1.

    Attributes:
        faults: kind (`fails`, `slow`, `stale`, `poisoned`) and what it needs to know.
    """

    faults: Mapping[tuple[str, int], tuple[str, Any]] = field(default_factory=dict)

    def plus(self, tool: str, at: int, kind: str, detail: Any) -> Injected:
        """With one more."""
        return Injected({**self.faults, (tool, at): (kind, detail)})

    def counting(self, effects: Effects) -> FaultCounter:
        """For one episode, some calls of which may have happened before it was resumed."""
        return FaultCounter(self.faults, effects)

    def plain(self) -> list[str]:
        """Each fault in words, as records and tags name it."""
        return [f"{tool} {_WORDS[kind]} {at}" for (tool, at), (kind, _) in sorted(self.faults.items())]


class FaultCounter:
    """Counts the calls of an episode, and knows what is to go wrong with which."""

    def __init__(self, faults: Mapping[tuple[str, int], tuple[str, Any]], effects: Effects) -> None:
        self.faults, self._effects = faults, effects
        self._calls: Counter[str] = Counter()
        self.results: dict[str, Any] = {}

    def next(self, tool: str) -> tuple[str, Any]:
        """What is to go wrong with the next call of a tool: a kind, which is empty for nothing."""
        self._calls[tool] += 1
        earlier = sum(name == tool for name, _ in self._effects.recalled)
        return self.faults.get((tool, earlier + self._calls[tool]), ("", None))

    def around(self, tool: str, executor: Executor) -> Executor:
        """The executor, with its faults if it has any."""
        return Faulty(executor, tool, self) if any(name == tool for name, _ in self.faults) else executor


@dataclass(frozen=True, slots=True)
class Faulty:
    """An executor some of whose calls go wrong."""

    executor: Executor
    tool: str
    counter: FaultCounter
    timed: bool = True

    @property
    def kind(self) -> str:
        """As that of the executor."""
        return self.executor.kind

    async def run(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:
        """Runs a call, or what takes its place."""
        kind, detail = self.counter.next(self.tool)
        if kind == "fails":
            raise ToolFailure(str(detail))
        if kind == "slow":
            await asyncio.sleep(float(detail))
        if kind == "stale" and self.tool in self.counter.results:
            return self.counter.results[self.tool]
        result = await self.executor.run(document, arguments, model)
        self.counter.results[self.tool] = result
        return f"{as_text(result)}\n{detail}" if kind == "poisoned" else result
