"""A model that follows a script, and one warm sandbox for the solvers that run programs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SandboxUnavailable
from evalsuite.core.types import Completion, Message
from evalsuite.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class ScriptedModel:
    """Says what it is told to say, and remembers what it was asked."""

    name = "scripted"

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.asked: list[tuple[Message, ...]] = []
        self.params: dict[str, Any] = {}

    async def chat(self, prompt: Any, *, tools: Sequence[Any] = (), **params: Any) -> Completion:
        self.asked.append(tuple(prompt))
        self.params = params
        return Completion(self.texts.pop(0), reasoning="thought", finish_reason="stop")

    def peer(self, name: str, base_url: str | None = None, epoch: int | None = None) -> Any:
        raise NotImplementedError


@pytest.fixture
def scripted() -> type[ScriptedModel]:
    return ScriptedModel


@pytest.fixture(scope="session")
def program_runner() -> Iterator[tuple[asyncio.Runner, Sandbox]]:
    """A sandbox that works here, and the event loop that it lives on."""
    runner, sandbox = asyncio.Runner(), Sandbox()
    try:
        runner.run(sandbox.run("pass"))
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    yield runner, sandbox
    runner.run(sandbox.aclose())
    runner.close()
