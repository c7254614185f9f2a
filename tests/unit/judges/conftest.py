"""A scripted model: it answers by a function of the conversation and remembers what it was asked."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.types import Completion, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Answer = "Callable[[Asked], str | Completion]"


@dataclass(frozen=True)
class Asked:
    """One call: of which model, with which conversation and parameters, and which calls were under way."""

    model: str
    messages: tuple[Message, ...]
    params: Mapping[str, Any]
    beside: int

    @property
    def system(self) -> str:
        return self.messages[0].content

    @property
    def prompt(self) -> str:
        """All that was said, with the marks' keys left out, so that sections are easily found."""
        return re.sub(r' key="[0-9a-f]{12}"', "", self.exact)

    @property
    def exact(self) -> str:
        return "\n".join(message.content for message in self.messages)


@dataclass
class Scripted:
    """See the module's docstring. A string answered is a completion's text; an exception is raised."""

    answer: Callable[[Asked], Any]
    name: str = "scripted"
    calls: list[Asked] = field(default_factory=list)
    under_way: list[int] = field(default_factory=lambda: [0])
    overrides: Mapping[str, Any] = field(default_factory=dict)

    async def chat(
        self, prompt: str | Sequence[Message | Mapping[str, Any]], *, tools: Sequence[Any] = (), **params: Any
    ) -> Completion:
        messages = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
        self.under_way[0] += 1
        await asyncio.sleep(0)
        asked = Asked(self.name, messages, params, self.under_way[0])  # type: ignore[arg-type] # only Messages here
        self.calls.append(asked)
        await asyncio.sleep(0)
        self.under_way[0] -= 1
        said = self.answer(asked)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Completion) else Completion(said)

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Scripted:
        return Scripted(self.answer, name, self.calls, self.under_way)


@pytest.fixture(scope="session")
def scripted() -> type[Scripted]:
    return Scripted
