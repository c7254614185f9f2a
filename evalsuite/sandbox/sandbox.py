"""The sandbox as the rest of evalsuite sees it: programs go in as text, what they print comes back as text."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalsuite.errors import SandboxError, SandboxUnavailable
from evalsuite.sandbox.environments import own_environment
from evalsuite.sandbox.inside.limits import Limits
from evalsuite.sandbox.session import ProgramSession
from evalsuite.sandbox.unavailable import why
from evalsuite.sandbox.warm import WarmInterpreter
from evalsuite.sandbox.ways import TIERS, Tier, ways

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from evalsuite.sandbox.environments import ProgramEnvironment
    from evalsuite.sandbox.execution import Execution
    from evalsuite.sandbox.tables import TableSource

TIMEOUT = 10.0


@dataclass(slots=True)
class _Running:
    """What belongs to one event loop."""

    loop: asyncio.AbstractEventLoop
    turns: asyncio.Semaphore
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    warm: WarmInterpreter | None = None


class Sandbox:
    """Runs untrusted Python; make one a process and share it between its cases.

    Nothing is started before the first program, which therefore takes about a second longer. At most as
    many programs run at a time as this process has cores; others wait, and waiting does not count against
    their time.

    Args:
        limits: what one program may use.
        preload: modules that are loaded once, before any program; those that are missing are left out.
        tiers: the kinds of walls that will do, of which the strongest that works here is taken:
            `bubblewrap`, then `landlock`.
        environment: what programs may import, see `environments.environment`; by default what the run's
            `--program-env` names, else what this process may import.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        preload: Sequence[str] = ("numpy", "pandas"),
        tiers: Sequence[Tier] = TIERS,
        environment: ProgramEnvironment | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.preload = tuple(preload)
        self.tiers = tuple(tiers)
        self._environment = environment
        self._running: _Running | None = None

    @property
    def environment(self) -> ProgramEnvironment:
        """What programs may import."""
        return self._environment or own_environment()

    def prefer(self, environment: ProgramEnvironment) -> None:
        """Takes a run's environment, unless this sandbox was made for one; to be called before any program."""
        self._environment = self._environment or environment

    async def run(
        self,
        code: str,
        tables: Mapping[str, TableSource] | None = None,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - the program's time, kept by the sandbox
    ) -> Execution:
        """Runs one program, of which nothing is left afterwards.

        Args:
            code: Python source, run as `__main__`.
            tables: what the program finds as DataFrames, by the names of its variables: paths of CSV files,
                `Table`s or DataFrames. `pd` and `np` are there too.
            timeout: seconds of wall time, and of CPU time of all its processes together.

        Returns:
            What it printed and how it ended; a program that fails raises nothing here.

        Raises:
            SandboxUnavailable: no sandbox is to be had on this machine; the message says how to get one.
            SandboxError: a table cannot be loaded, or the sandbox failed.
        """
        async with ProgramSession(self, tables or {}, timeout, once=True) as session:
            return await session.run(code)

    def session(
        self, tables: Mapping[str, TableSource] | None = None, timeout: float = TIMEOUT
    ) -> ProgramSession:
        """A program in several rounds, whose variables live on from one to the next.

            async with sandbox.session(tables={"df": "cities.csv"}) as session:
                await session.run("big = df[df.population > 1e6]")
                print((await session.run("print(len(big))")).stdout)

        Args:
            tables: as for `run`, loaded before the first round.
            timeout: for each round that does not say otherwise.
        """
        return ProgramSession(self, tables or {}, timeout)

    async def probe(self) -> Tier:
        """Sees whether programs can be run here, in a tenth of a second as nothing is preloaded.

        Returns:
            The tier whose walls would hold them.

        Raises:
            SandboxUnavailable: none can be had; the message says how to get one.
        """
        warm = await _start(self.tiers, self.environment, self.limits, ())
        warm.close("it was started to see whether it can be")
        return warm.tier

    async def aclose(self) -> None:
        """Ends the warm interpreter and every program; a later `run` starts anew."""
        running, self._running = self._running, None
        if running is not None and running.warm is not None:
            running.warm.close("the sandbox was closed while the program ran")

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[WarmInterpreter]:
        """A warm interpreter, and the right to have it run one round."""
        loop = asyncio.get_running_loop()
        if self._running is None or self._running.loop is not loop:
            await self.aclose()
            self._running = _Running(loop, asyncio.Semaphore(_cores()))
        running = self._running
        async with running.turns:
            if self._running is not running:
                raise SandboxError("the sandbox was closed while the program waited for its turn")
            yield await self._warm(running)

    async def _warm(self, running: _Running) -> WarmInterpreter:
        async with running.starting:
            if running.warm is None or not running.warm.alive:
                running.warm = await _start(self.tiers, self.environment, self.limits, self.preload)
            return running.warm


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


async def _start(
    tiers: Sequence[Tier], environment: ProgramEnvironment, limits: Limits, preload: Sequence[str]
) -> WarmInterpreter:
    """The first way that works."""
    failures: dict[str, str] = {}
    for way in ways(tiers, environment, failures):
        try:
            warm = WarmInterpreter(way, environment, limits, preload)
            await warm.start()
        except SandboxUnavailable as error:
            failures[way.name] = str(error)
        else:
            return warm
    raise SandboxUnavailable(why(failures))
