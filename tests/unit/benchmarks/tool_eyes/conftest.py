"""Scripted models before the handle that a case has, and episodes by them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.tool_eyes import TOOL_EYES
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Completion, Request
from evalsuite.gateway.handle import ModelHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalsuite.core.types import Sample, Transcript


class Backend:
    """Answers by a function and keeps every request that reached it."""

    def __init__(self, answer: Callable[[Request], str | Completion]) -> None:
        self.answer = answer
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> Completion:
        self.requests.append(request)
        await asyncio.sleep(0)
        said = self.answer(request)
        return said if isinstance(said, Completion) else Completion(said)

    def handle(self, name: str = "tested", epoch: int = 1) -> ModelHandle:
        return ModelHandle(self, name, epoch=epoch)


@pytest.fixture(scope="session")
def backend() -> type[Backend]:
    return Backend


def spoken(turns: Sequence[str | Completion]) -> Callable[[Request], str | Completion]:
    """Answers by the number of the model's turn, so that episodes at the same time do not mix."""
    return lambda request: turns[sum(message.role == "assistant" for message in request.messages)]


@pytest.fixture(scope="session")
def play() -> Callable[..., Transcript]:
    """Plays one sample by a script."""

    def played(sample: Sample, turns: Sequence[str | Completion], setup: Setup | None = None) -> Transcript:
        setup = setup or Setup("tested", modes=(sample.tags["mode"],))

        async def run() -> Transcript:
            solver: Any = TOOL_EYES.solver(setup)
            try:
                return await solver(sample, Backend(spoken(turns)).handle())  # type: ignore[no-any-return]
            finally:
                await solver.aclose()

        return asyncio.run(run())

    return played
