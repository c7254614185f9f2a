"""Faults injected into a world, to see how an agent copes with them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.tools.execution import ToolFailure, as_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.core.protocols import Model
    from evalsuite.gateway.handle import Effects
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
    """Faults by tool and number of the call, counted from 1.

    Attributes:
        faults: the kind of each (`fails`, `slow`, `stale`, `poisoned`) and its argument.
    """

    faults: Mapping[tuple[str, int], tuple[str, Any]] = field(default_factory=dict)

    def plus(self, tool: str, at: int, kind: str, detail: Any) -> Injected:
        """These faults and one more."""
        return Injected({**self.faults, (tool, at): (kind, detail)})

    def counting(self, effects: Effects) -> FaultCounter:
        """A counter for one episode, which knows the calls made before the episode was resumed."""
        return FaultCounter(self.faults, effects)

    def plain(self) -> list[str]:
        """The faults in words, for records and tags."""
        return [f"{tool} {_WORDS[kind]} {at}" for (tool, at), (kind, _) in sorted(self.faults.items())]


class FaultCounter:
    """Counts the calls of an episode and says which of them go wrong."""

    def __init__(self, faults: Mapping[tuple[str, int], tuple[str, Any]], effects: Effects) -> None:
        self.faults, self._effects = faults, effects
        self._calls: Counter[str] = Counter()
        self.results: dict[str, Any] = {}

    def next(self, tool: str) -> tuple[str, Any]:
        """The fault of a tool's next call: its kind, empty for none, and its argument."""
        self._calls[tool] += 1
        earlier = sum(name == tool for name, _ in self._effects.recalled)
        return self.faults.get((tool, earlier + self._calls[tool]), ("", None))

    def around(self, tool: str, executor: Executor) -> Executor:
        """The executor, wrapped if any of the tool's calls go wrong."""
        return Faulty(executor, tool, self) if any(name == tool for name, _ in self.faults) else executor


@dataclass(frozen=True, slots=True)
class Faulty:
    """An executor with calls that go wrong."""

    executor: Executor
    tool: str
    counter: FaultCounter
    timed: bool = True

    @property
    def kind(self) -> str:
        """The wrapped executor's."""
        return self.executor.kind

    async def run(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:
        """Runs a call, or lets it go wrong."""
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
