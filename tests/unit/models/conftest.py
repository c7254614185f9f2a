"""Requests, and one way to ask a backend once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.types import Message, Request

if TYPE_CHECKING:
    from evalsuite.core.types import Completion
    from evalsuite.models.protocol import Backend


class Once:
    """Asks a backend once, in a loop of its own, and closes it."""

    def __call__(self, backend: Backend, text: str = "hello", **more: Any) -> Completion:
        return self.send(backend, Request("m", (Message("user", text),), **more))

    def send(self, backend: Backend, request: Request) -> Completion:
        async def main() -> Completion:
            try:
                return await backend.complete(request)
            finally:
                await backend.aclose()

        return asyncio.run(main())


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of whoever runs the tests has no part in them."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def once() -> Once:
    return Once()
