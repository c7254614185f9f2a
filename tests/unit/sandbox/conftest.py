"""One warm sandbox for all tests here, and one without pandas, each behind an event loop of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.errors import SandboxUnavailable
from evalsuite.sandbox import Execution, Limits, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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

    def at_once(self, *codes: str, timeout: float = 20) -> list[Execution]:
        async def gather() -> list[Execution]:
            return await asyncio.gather(*(self.sandbox.run(code, timeout=timeout) for code in codes))

        return self.runner.run(gather())

    def rounds(
        self, *codes: str, tables: Any = None, timeout: float = 20, pause: float = 0
    ) -> list[Execution]:
        async def converse() -> list[Execution]:
            async with self.sandbox.session(tables, timeout) as session:
                done = []
                for code in codes:
                    done.append(await session.run(code))
                    await asyncio.sleep(pause)
                return done

        return self.runner.run(converse())

    def processes(self) -> list[int]:
        """The sandbox's processes as the host sees them: bubblewrap, the warm interpreter, programs."""
        assert self.sandbox._running is not None
        assert self.sandbox._running.warm is not None
        process = self.sandbox._running.warm.end.peek()[2][0]  # type: ignore[index] # it is alive
        return family(process.pid)

    def warm_interpreter(self) -> int:
        """The process id of the warm interpreter on the host."""
        return self.processes()[1]

    def programs(self) -> list[int]:
        """The process ids of programs on the host."""
        return self.processes()[2:]

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


@pytest.fixture(scope="session")
def bare() -> Iterator[Lab]:
    """Without pandas, and with little of everything."""
    limits = Limits(memory=256 << 20, files=4 << 20, file=1 << 20, output=10_000, processes=16)
    lab = Lab(limits=limits, preload=())
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
