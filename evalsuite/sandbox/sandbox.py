"""The sandbox as the rest of evalsuite sees it: programs go in as text, what they print comes back as text."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalsuite.core.errors import SandboxError, SandboxUnavailable
from evalsuite.sandbox.environments import own_environment
from evalsuite.sandbox.inside.limits import Limits
from evalsuite.sandbox.script_hosts import installed
from evalsuite.sandbox.session import ProgramSession
from evalsuite.sandbox.tiers import TIERS, script_host, ways
from evalsuite.sandbox.unavailable import why
from evalsuite.sandbox.warm import WarmInterpreter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from evalsuite.sandbox.environments import ProgramEnvironment
    from evalsuite.sandbox.execution import Execution
    from evalsuite.sandbox.script_hosts import ScriptHost
    from evalsuite.sandbox.tables import TableSource

TIMEOUT = 10.0


@dataclass(slots=True)
class _Running:
    """What belongs to one event loop."""

    loop: asyncio.AbstractEventLoop
    turns: asyncio.Semaphore
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    place: WarmInterpreter | ScriptHost | None = None


class Sandbox:
    """Runs untrusted Python; make one per process and share it between cases.

    Nothing is started before the first program, which therefore takes about a second longer. No more programs
    run at once than this process has cores; the others wait, and waiting does not count against their time.

    Args:
        limits: what one program may use.
        preload: modules to import once, before any program; missing ones are skipped.
        tiers: the acceptable kinds of isolation, of which the strongest that works here is used:
            `bubblewrap`, then `landlock`. Or one elsewhere: `docker:IMAGE`, or the address of a server that speaks
            SandboxFusion's protocol. By default what the run's `--sandbox` names, else those of this machine.
        environment: what programs may import, see `environments.environment`; by default what the run's
            `--program-env` names, else what this process may import.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        preload: Sequence[str] = ("numpy", "pandas"),
        tiers: Sequence[str] | None = None,
        environment: ProgramEnvironment | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.preload = tuple(preload)
        self._tiers = None if tiers is None else tuple(tiers)
        self._environment = environment
        self._running: _Running | None = None

    @property
    def environment(self) -> ProgramEnvironment:
        """What programs may import."""
        return self._environment or own_environment()

    @property
    def tiers(self) -> tuple[str, ...]:
        """The kinds of walls that will do."""
        return TIERS if self._tiers is None else self._tiers

    def prefer(
        self, environment: ProgramEnvironment | None = None, tiers: Sequence[str] | None = None
    ) -> None:
        """Takes what a run names, unless this sandbox was made with its own; to be called before any program."""
        self._environment = self._environment or environment
        self._tiers = tuple(tiers) if self._tiers is None and tiers is not None else self._tiers

    async def run(
        self,
        code: str,
        tables: Mapping[str, TableSource] | None = None,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - the program's time, kept by the sandbox
    ) -> Execution:
        """Runs one program and leaves nothing of it behind.

        Args:
            code: Python source, run as `__main__`.
            tables: what the program finds as DataFrames, by the names of its variables: paths of CSV files,
                `Table`s or DataFrames. `pd` and `np` are there too.
            timeout: seconds of wall time, and of CPU time of all its processes together.

        Returns:
            What it printed and how it ended; a failing program does not raise here.

        Raises:
            SandboxUnavailable: this machine has no working sandbox; the message says how to get one.
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

    async def probe(self) -> str:
        """Checks whether programs can be run; takes a tenth of a second, as nothing is preloaded.

        Of a place elsewhere it also learns what is installed there.

        Returns:
            The tier whose walls would hold them.

        Raises:
            SandboxUnavailable: they cannot; the message says how to get a sandbox.
        """
        place = await self._place(())
        await place.aclose()
        return place.tier

    async def aclose(self) -> None:
        """Ends the warm interpreter and every program; a later `run` starts a new one."""
        running, self._running = self._running, None
        if running is not None and running.place is not None:
            await running.place.aclose()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[WarmInterpreter | ScriptHost]:
        """A warm interpreter or a place elsewhere, and the right to have it run one round."""
        loop = asyncio.get_running_loop()
        if self._running is None or self._running.loop is not loop:
            await self.aclose()
            host = script_host(self.tiers[0], self.limits) if len(self.tiers) == 1 else None
            self._running = _Running(loop, asyncio.Semaphore(host.at_once if host else _cores()))
        running = self._running
        async with running.turns:
            if self._running is not running:
                raise SandboxError("the sandbox was closed while the program waited for its turn")
            yield await self._started(running)

    async def room(self) -> None:
        """Waits until another session may begin, where those that wait for their next round hold much memory."""
        place = self._running.place if self._running is not None else None
        if isinstance(place, WarmInterpreter):
            await place.room(self.limits.waiting)

    async def _started(self, running: _Running) -> WarmInterpreter | ScriptHost:
        async with running.starting:
            if running.place is None or not running.place.alive:
                running.place = await self._place(self.preload)
            return running.place

    async def _place(self, preload: Sequence[str]) -> WarmInterpreter | ScriptHost:
        """The first place that works."""
        if len(self.tiers) == 1 and (host := script_host(self.tiers[0], self.limits)) is not None:
            try:
                self._environment = await installed(host, self.limits)
            except BaseException:
                await host.aclose()
                raise
            return host
        return await _start(self.tiers, self.environment, self.limits, preload)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


async def _start(
    tiers: Sequence[str], environment: ProgramEnvironment, limits: Limits, preload: Sequence[str]
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
