"""One warm sandbox for all tests here, and one without pandas, each behind an event loop of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SandboxError, SandboxUnavailable
from evalsuite.sandbox import Execution, Limits, Sandbox
from evalsuite.sandbox.warm import WarmInterpreter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


SMALL = Limits(memory=256 << 20, files=4 << 20, file=1 << 20, output=10_000, processes=16)


class Lab:
    """A sandbox for tests that are no coroutines."""

    def __init__(self, **options: Any) -> None:
        self.runner = asyncio.Runner()
        self.sandbox = Sandbox(**options)
        try:
            assert self.run("print(1)").stdout == "1\n"
        except SandboxUnavailable as error:
            self.close()
            pytest.skip(str(error))

    def run(self, code: str, tables: Any = None, timeout: float = 20) -> Execution:
        return self.runner.run(self.sandbox.run(code, tables, timeout))

    def run_as_long_as_it_takes_to_print(self, code: str, at_first: float = 0.4) -> tuple[Execution, float]:
        """Runs a program that is going to be stopped, with more time where it has not come to print.

        On a machine with other work, a short time may be over before a program's first line. Returns what
        came of it, and the seconds that it was given.
        """
        for seconds in (at_first, 5 * at_first + 1, 60):
            try:
                execution = self.run(code, timeout=seconds)
            except SandboxError:  # not even its tables were loaded
                continue
            if execution.stdout:
                return execution, seconds
        raise AssertionError("it prints nothing")

    def at_once(self, *codes: str, tables: Any = None, timeout: float | tuple[float, ...] = 20) -> list[Execution]:
        timeouts = timeout if isinstance(timeout, tuple) else (timeout,) * len(codes)

        async def gather() -> list[Execution]:
            runs = (self.sandbox.run(code, tables, seconds) for code, seconds in zip(codes, timeouts, strict=True))
            return await asyncio.gather(*runs)

        return self.runner.run(gather())

    def rounds(self, *codes: str, tables: Any = None, timeout: float | tuple[float, ...] = 20) -> list[Execution]:
        timeouts = timeout if isinstance(timeout, tuple) else (timeout,) * len(codes)

        async def converse() -> list[Execution]:
            async with self.sandbox.session(tables) as session:
                return [await session.run(code, seconds) for code, seconds in zip(codes, timeouts, strict=True)]

        return self.runner.run(converse())

    def processes(self) -> list[int]:
        """The sandbox's processes as the host sees them: bubblewrap, the warm interpreter, programs."""
        assert self.sandbox._state is not None
        assert isinstance(self.sandbox._state.host, WarmInterpreter)
        process = self.sandbox._state.host.end.peek()[2][0]  # type: ignore[index] # it is alive
        return family(process.pid)

    @property
    def wrappers(self) -> int:
        """How many processes stand above the warm interpreter: bubblewrap, where it is there."""
        assert self.sandbox._state is not None
        assert self.sandbox._state.host is not None
        return self.sandbox._state.host.tier == "bubblewrap"

    def warm_interpreter(self) -> int:
        """The process id of the warm interpreter on the host."""
        return self.processes()[self.wrappers]

    def programs(self) -> list[int]:
        """The process ids of programs on the host."""
        return self.processes()[self.wrappers + 1 :]

    def close(self) -> None:
        self.runner.run(self.sandbox.aclose())
        self.runner.close()


def family(root: int) -> list[int]:
    """A process and its descendants, parents first; without those that are dead but not reaped."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(folder.name)] = int(parent)
    found = [root] if root in parents else []
    for pid in found:
        found += sorted(child for child, parent in parents.items() if parent == pid)
    return found


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    lab = Lab()
    yield lab
    lab.close()


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
def tier_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A sandbox of each tier that works here."""
    lab = Lab(tiers=(request.param,))
    yield lab
    lab.close()


@pytest.fixture(scope="session")
def landlocked() -> Iterator[Lab]:
    """Landlock's walls alone, as on machines without user namespaces."""
    lab = Lab(limits=SMALL, preload=(), tiers=("landlock",))
    yield lab
    lab.close()


@pytest.fixture(scope="session")
def bare() -> Iterator[Lab]:
    """Without pandas, and with little of everything."""
    lab = Lab(limits=SMALL, preload=())
    yield lab
    lab.close()


@pytest.fixture
def new_lab() -> Iterator[Callable[..., Lab]]:
    """Makes sandboxes of one test's own."""
    made: list[Lab] = []

    def make(**options: Any) -> Lab:
        made.append(Lab(**({"preload": ()} | options)))
        return made[-1]

    yield make
    for lab in made:
        lab.close()


@pytest.fixture
def family_of() -> Callable[[int], list[int]]:
    return family
