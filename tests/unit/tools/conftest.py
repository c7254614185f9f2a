"""A model handle as a case has it, before a backend that is a Python function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.core.types import Completion, Request
from evalsuite.gateway.handle import ModelHandle

if TYPE_CHECKING:
    from collections.abc import Callable


class Backend:
    """Answers by a function and keeps every request that reached it."""

    def __init__(self, answer: Callable[[Request], str | Completion]) -> None:
        self.answer = answer
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> Completion:
        self.requests.append(request)
        said = self.answer(request)
        return said if isinstance(said, Completion) else Completion(said)

    def handle(self, name: str = "tested", epoch: int = 1) -> ModelHandle:
        return ModelHandle(self, name, epoch=epoch)


@pytest.fixture(scope="session")
def backend() -> type[Backend]:
    return Backend
