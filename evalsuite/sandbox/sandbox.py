"""The sandbox as the rest of evalsuite sees it: programs go in as text, what they print comes back as text."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from evalsuite.core.errors import SandboxError, SandboxUnavailable
from evalsuite.sandbox.environments import OWN, own_environment
from evalsuite.sandbox.execution import DEATH, ERROR_CHARACTERS, MOST_BYTES, Execution, describe_round, read_files
from evalsuite.sandbox.inside import Limits
from evalsuite.sandbox.script_hosts import inspect_host, run_program, script_host
from evalsuite.sandbox.tables import payload
from evalsuite.sandbox.tiers import TIERS, explain_failures, list_ways
from evalsuite.sandbox.warm import WarmInterpreter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from evalsuite.sandbox.environments import ProgramEnvironment
    from evalsuite.sandbox.execution import Execution
    from evalsuite.sandbox.script_hosts import ScriptHost
    from evalsuite.sandbox.tables import TableSource
    from evalsuite.sandbox.warm import Ending

TIMEOUT = 10.0


@dataclass(slots=True)
class _Running:
    """State of one event loop."""

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
            `--program-env` names, else what `usual` names.
        usual: name of the environment of a run without `--program-env`; by default what this process may import.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        preload: Sequence[str] = ("numpy", "pandas"),
        tiers: Sequence[str] | None = None,
        environment: ProgramEnvironment | None = None,
        usual: str = OWN,
    ) -> None:
        self.usual = usual
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
        """The acceptable tiers."""
        return TIERS if self._tiers is None else self._tiers

    def prefer(self, environment: ProgramEnvironment | None = None, tiers: Sequence[str] | None = None) -> None:
        """Takes what a run names, unless this sandbox was made with its own; to be called before any program."""
        self._environment = self._environment or environment
        self._tiers = tuple(tiers) if self._tiers is None and tiers is not None else self._tiers

    async def run(
        self,
        code: str,
        tables: Mapping[str, TableSource] | None = None,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - the program's time, kept by the sandbox
        stdin: str | None = None,
    ) -> Execution:
        """Runs one program and leaves nothing of it behind.

        Args:
            code: Python source, run as `__main__`.
            tables: what the program finds as DataFrames, by the names of its variables: paths of CSV files,
                `Table`s or DataFrames. `pd` and `np` are there too.
            timeout: seconds of wall time, and of CPU time of all its processes together.
            stdin: the program's standard input, which is empty by default.

        Returns:
            What it printed and how it ended; a failing program does not raise here.

        Raises:
            SandboxUnavailable: this machine has no working sandbox; the message says how to get one.
            SandboxError: a table cannot be loaded, or the sandbox failed.
        """
        async with ProgramSession(self, tables or {}, timeout, once=True, stdin=stdin) as session:
            return await session.run(code)

    def session(self, tables: Mapping[str, TableSource] | None = None, timeout: float = TIMEOUT) -> ProgramSession:
        """Opens a program that runs in several rounds and keeps its variables between them.

            async with sandbox.session(tables={"df": "cities.csv"}) as session:
                await session.run("big = df[df.population > 1e6]")
                print((await session.run("print(len(big))")).stdout)

        Args:
            tables: tables like those of `run`, loaded before the first round.
            timeout: default time limit of a round, in seconds.
        """
        return ProgramSession(self, tables or {}, timeout)

    async def probe(self) -> str:
        """Checks whether programs can be run; takes a tenth of a second, as nothing is preloaded.

        For a host elsewhere, it also finds what is installed there.

        Returns:
            The tier that would isolate them.

        Raises:
            SandboxUnavailable: they cannot; the message says how to get a sandbox.
        """
        place = await self._start_interpreter(())
        await place.aclose()
        return place.tier

    async def aclose(self) -> None:
        """Ends the warm interpreter and every program; a later `run` starts a new one."""
        running, self._running = self._running, None
        if running is not None and running.place is not None:
            await running.place.aclose()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[WarmInterpreter | ScriptHost]:
        """Waits for a free core; provides the warm interpreter or the host that runs one round."""
        loop = asyncio.get_running_loop()
        if self._running is None or self._running.loop is not loop:
            await self.aclose()
            host = script_host(self.tiers[0], self.limits) if len(self.tiers) == 1 else None
            self._running = _Running(loop, asyncio.Semaphore(host.at_once if host else _cores()))
        running = self._running
        async with running.turns:
            if self._running is not running:
                raise SandboxError("the sandbox was closed while the program waited for its turn")
            yield await self._ensure_started(running)

    async def room(self) -> None:
        """Waits until another session may begin, where those that wait for their next round hold much memory."""
        place = self._running.place if self._running is not None else None
        if isinstance(place, WarmInterpreter):
            await place.room(self.limits.waiting)

    async def _ensure_started(self, running: _Running) -> WarmInterpreter | ScriptHost:
        async with running.starting:
            if running.place is None or not running.place.alive:
                running.place = await self._start_interpreter(self.preload)
            return running.place

    async def _start_interpreter(self, preload: Sequence[str]) -> WarmInterpreter | ScriptHost:
        """Starts the first tier that works."""
        if len(self.tiers) == 1 and (host := script_host(self.tiers[0], self.limits)) is not None:
            try:
                self._environment = await inspect_host(host, self.limits)
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
    """Start the first way that works."""
    failures: dict[str, str] = {}
    for way in list_ways(tiers, environment, failures):
        try:
            warm = WarmInterpreter(way, environment, limits, preload)
            await warm.start()
        except SandboxUnavailable as error:
            failures[way.name] = str(error)
        else:
            return warm
    raise SandboxUnavailable(explain_failures(failures))


class ProgramSession:
    """A program whose variables live on between its rounds; see `Sandbox.session`.

    If a round is stopped or its process dies, the variables are lost: the next round starts afresh, with the
    original tables. Processes that a round leaves behind are killed.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        tables: Mapping[str, TableSource],
        timeout: float,
        *,
        once: bool = False,
        stdin: str | None = None,
    ) -> None:
        self.sandbox = sandbox
        self.tables = tables
        self.timeout = timeout
        self._once = once
        self._stdin = None if stdin is None else stdin.encode()
        self._one_round = asyncio.Lock()
        self._files: tuple[int, ...] = ()
        self._warm: WarmInterpreter | None = None
        self._key: int | None = None
        # Where no process keeps variables, the code of the rounds before is run once more.
        self._earlier: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._key is not None and self._warm is not None:
            await self._warm.dismiss(self._key)
        for file in self._files:
            os.close(file)
        self._files = ()

    async def run(
        self,
        code: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the program's time, kept by the sandbox
    ) -> Execution:
        """Runs one round; concurrent calls run one after the other.

        Args:
            code: Python source; it finds the variables of the rounds before.
            timeout: seconds of wall time for this round.

        Raises:
            SandboxUnavailable: no sandbox is to be had on this machine.
            SandboxError: a table cannot be loaded, or the sandbox failed.
        """
        seconds = self.timeout if timeout is None else timeout
        if self._key is None and not self._once:
            await self.sandbox.room()
        async with self._one_round, self.sandbox.turn() as place:
            if isinstance(place, WarmInterpreter):
                return await self._here(place, code, seconds)
            return await self._elsewhere(place, code, seconds)

    async def _elsewhere(self, host: ScriptHost, code: str, seconds: float) -> Execution:
        content = payload(
            code, self.tables, last=self._once, same_pandas=False, earlier=self._earlier, stdin=self._stdin
        )
        result = await run_program(host, content, seconds, self.sandbox.limits)
        ended = result.timed_out or (result.error or "").startswith(DEATH)
        self._earlier = [] if ended else [*self._earlier, code]
        return replace(result, variables_lost=ended and not self._once)

    async def _here(self, warm: WarmInterpreter, code: str, seconds: float) -> Execution:
        if warm is not self._warm:
            self._warm, self._key = warm, None
        ending = await self._round(warm, code, seconds)
        if not ending.alive:
            self._key = None
        lost = not (self._once or ending.alive)
        return replace(self._execution(ending, seconds), variables_lost=lost, tier=warm.tier)

    async def _round(self, warm: WarmInterpreter, code: str, seconds: float) -> Ending:
        if self._key is not None:
            self._leave(payload(code, {}, last=False))
            ending = await warm.proceed(self._key, seconds)
            if ending.how != "gone":
                return ending
        await warm.load(code)
        own = self.sandbox.environment.is_own
        self._leave(payload(code, self.tables, last=self._once, same_pandas=own, stdin=self._stdin))
        self._key = warm.new_key()
        with _open_for_program(self._files) as files:
            return await warm.begin(self._key, files, seconds, once=self._once)

    def _leave(self, content: bytes) -> None:
        """Writes what the round needs to where the program's process reads it, and clears the output."""
        if not self._files:
            self._files = tuple(os.memfd_create(name) for name in ("payload", "stdout", "stderr", "files"))
        for file in self._files:
            os.ftruncate(file, 0)
        os.pwrite(self._files[0], content, 0)

    def _execution(self, ending: Ending, seconds: float) -> Execution:
        _, out, err, files = self._files
        limits = self.sandbox.limits
        printed = os.pread(out, limits.output + 1, 0)
        longest = 4 * ERROR_CHARACTERS + 4
        complaint = os.pread(err, longest, max(0, os.fstat(err).st_size - longest))
        _refuse_unreached(ending.how, complaint, seconds)
        written = read_files(os.pread(files, 2 * MOST_BYTES, 0))
        result = describe_round(ending.how, printed, complaint, timeout=seconds, seconds=ending.seconds, limits=limits)
        return replace(result, files=written)


def _refuse_unreached(how: str, complaint: bytes, seconds: float) -> None:
    """Raises if the program's own code was never reached, since that says nothing about the program."""
    words = complaint.decode("utf-8", "replace").strip()
    if how.startswith("refused"):
        raise SandboxError(f"a program could not be started: {how.removeprefix('refused ')}")
    if how == "unfit":
        raise SandboxError(f"a program could not be isolated: {words}")
    if how == "table":
        raise SandboxError(f"the program's tables could not be loaded: {words}")
    if how.startswith("early"):
        ended = how.removeprefix("early ")
        raise SandboxError(
            f"the program's tables could not be loaded within its {seconds:g} s and its limits ({ended})"
        )


@contextlib.contextmanager
def _open_for_program(files: tuple[int, ...]) -> Iterator[list[int]]:
    """Open the files anew for the program, so that what it does to its descriptors has no effect here."""
    modes = (os.O_RDONLY, *[os.O_WRONLY | os.O_APPEND] * (len(files) - 1))
    opened: list[int] = []
    try:
        opened += (os.open(f"/proc/self/fd/{file}", mode) for file, mode in zip(files, modes, strict=True))
        yield opened
    finally:
        for file in opened:
            os.close(file)
