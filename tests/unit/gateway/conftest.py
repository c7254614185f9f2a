"""Time that passes only while everything sleeps, requests, and backends that do what a test tells them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pytest

from evalsuite.core.types import Completion, Message, Request, Usage
from evalsuite.gateway.gateway import Gateway
from evalsuite.gateway.limiter import Limiter
from evalsuite.journal.answers import Answers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from pathlib import Path

    from evalsuite.gateway.spend import Ledger, Price

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Where all wait for a time, it is that time; where all wait for ever, that is an error."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        real = self._selector.select  # type: ignore[attr-defined] # asyncio's own

        def select(timeout: float | None) -> Any:
            if timeout is None:
                raise RuntimeError("everything waits for something that will never come")
            self._now += max(0.0, timeout)
            return real(0)

        self._selector.select = select  # type: ignore[attr-defined] # asyncio's own

    def time(self) -> float:
        return self._now


def run_virtual(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(eq=False)
class ScriptedBackend:
    """Answers by a function of the request; remembers what it was asked, and when."""

    answer: Callable[[Request], Awaitable[Completion] | Completion]
    identity: str = "scripted"
    metered: bool = True
    connections: int | None = None
    asked: list[Request] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    closed: bool = False

    def check(self) -> None:
        """Always well."""

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        self.times.append(now())
        said = self.answer(request)
        return said if isinstance(said, Completion) else await said

    async def aclose(self) -> None:
        self.closed = True


def echo(request: Request) -> Completion:
    return Completion(request.messages[-1].content, usage=Usage(1, 10, 5, unpriced=1))


def request(text: str = "hello", **more: Any) -> Request:
    return Request("gpt-test", (Message("user", text),), **more)


class House:
    """Makes gateways over a store in a folder of the test's own; time is the running loop's."""

    now = staticmethod(now)
    request = staticmethod(request)
    echo = staticmethod(echo)
    Backend = ScriptedBackend

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told: list[Exception] = []
        self.stores: list[Answers] = []

    def gateway(
        self,
        backend: ScriptedBackend,
        connections: int = 8,
        ledger: Ledger | None = None,
        prices: dict[str, Price] | None = None,
        call_timeout: float | None = None,
        **paces: float,
    ) -> Gateway:
        limiter = Limiter(connections, clock=now, **paces)
        store = Answers.open(self.path / "store.sqlite")
        self.stores.append(store)
        return Gateway(
            lambda *_: backend, store, limiter, ledger, prices, self.told.append, now, call_timeout=call_timeout
        )


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    for store in house.stores:
        store.close()


class Virtual(Protocol):
    """Runs a coroutine."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> T: ...


@pytest.fixture(scope="session")
def virtual() -> Virtual:
    """Runs a coroutine in virtual time."""
    return run_virtual
