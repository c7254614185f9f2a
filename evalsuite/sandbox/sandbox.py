"""`Sandbox` runs programs that are given as text, and returns what they print."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from evalsuite.core.errors import SandboxError, SandboxUnavailable
from evalsuite.sandbox.environments import OWN, ProgramEnvironment, get_own_environment
from evalsuite.sandbox.execution import (
    DEATH,
    Execution,
    TableSource,
    compute_read_limits,
    make_execution,
    write_payload,
)
from evalsuite.sandbox.inside import Limits
from evalsuite.sandbox.script_hosts import ScriptHost, inspect_host, make_script_host, run_program
from evalsuite.sandbox.tiers import TIERS, explain_failures, list_launches
from evalsuite.sandbox.warm import RoundEnd, WarmInterpreter

TIMEOUT = 10.0


@dataclass(slots=True)
class _LoopResources:
    """The objects that a sandbox creates for one event loop, such as the warm interpreter."""

    loop: asyncio.AbstractEventLoop
    cores: asyncio.Semaphore
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    host: WarmInterpreter | ScriptHost | None = None


class Sandbox:
    """Runs untrusted Python. Make one sandbox per process, and share it between cases.

    The first program takes about a second longer, because it starts the warm interpreter. This process runs one program
    per available core at the same time. A program that waits for a free core does not use up its time limit.

    Args:
        limits: the resource limits of one program.
        preload: modules that are imported once, before any program. Modules that are not installed are skipped.
        tiers: the kinds of isolation that may be used on this machine (`bubblewrap`, `landlock`); the first that works
            is used. Alternatively, one host: `docker:IMAGE`, or the address of a SandboxFusion server. By default, the
            run's `--sandbox` applies or, without it, all kinds on this machine.
        environment: the packages that programs may import; see `provide_environment`. By default, the run's
            `--program-env` applies or, without it, `usual`.
        usual: the environment's name if the run has no `--program-env`; by default this process's own environment.
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
        self.usual, self.limits, self.preload = usual, limits or Limits(), tuple(preload)
        self._tiers = None if tiers is None else tuple(tiers)
        self._environment = environment
        self._state: _LoopResources | None = None

    @property
    def environment(self) -> ProgramEnvironment:
        """The packages that programs may import."""
        return self._environment or get_own_environment()

    @property
    def tiers(self) -> tuple[str, ...]:
        """The tiers (kinds of isolation) that this sandbox may use, in order of preference."""
        return TIERS if self._tiers is None else self._tiers

    def set_defaults(self, environment: ProgramEnvironment | None = None, tiers: Sequence[str] | None = None) -> None:
        """Use the run's environment and tiers unless the sandbox has its own; call this before the first program."""
        self._environment = self._environment or environment
        self._tiers = tuple(tiers) if self._tiers is None and tiers is not None else self._tiers

    async def run(
        self,
        code: str,
        tables: Mapping[str, TableSource] | None = None,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - the sandbox enforces the program's time
        stdin: str | bytes | None = None,
    ) -> Execution:
        """Run one program; afterwards remove its processes and files.

        Args:
            code: Python source, run as `__main__`.
            tables: the program's DataFrames by variable name: paths of CSV files, `TableFile`s or DataFrames. The
                program also has the variables `pd` and `np`.
            timeout: limit in seconds, both for wall time and for the CPU time of all the program's processes together.
            stdin: what the program reads from standard input; empty by default.

        Returns:
            What the program printed, and how it ended. If the program fails, no exception is raised.

        Raises:
            SandboxUnavailable: programs cannot be isolated on this machine; the message says how to get a sandbox.
            SandboxError: the sandbox failed, or could not load a table.
        """
        async with ProgramSession(self, tables or {}, timeout, once=True, stdin=stdin) as session:
            return await session.run(code)

    def session(self, tables: Mapping[str, TableSource] | None = None, timeout: float = TIMEOUT) -> ProgramSession:
        """Open a session: a program that runs in several rounds and keeps its variables between them.

            async with sandbox.session(tables={"df": "cities.csv"}) as session:
                await session.run("big = df[df.population > 1e6]")
                print((await session.run("print(len(big))")).stdout)

        Args:
            tables: the tables to load before the first round, in the same form as in `run`.
            timeout: the time limit of each round in seconds, unless the round sets another.
        """
        return ProgramSession(self, tables or {}, timeout)

    async def probe(self) -> str:
        """Check whether programs can be run; this takes about a tenth of a second, because packages are not imported.

        If a container or server runs the programs, also find out which packages it has.

        Returns:
            The tier (kind of isolation) that would be used for programs.

        Raises:
            SandboxUnavailable: programs cannot be run; the message says how to get a sandbox.
        """
        host = await self._start_host(())
        await host.aclose()
        return host.tier

    async def aclose(self) -> None:
        """End the warm interpreter and all programs; a later `run` starts a new warm interpreter."""
        state, self._state = self._state, None
        if state is not None and state.host is not None:
            await state.host.aclose()

    @contextlib.asynccontextmanager
    async def acquire_host(self) -> AsyncIterator[WarmInterpreter | ScriptHost]:
        """Wait for a free core; then yield the warm interpreter or script host, which runs one round."""
        loop = asyncio.get_running_loop()
        if self._state is None or self._state.loop is not loop:
            await self.aclose()
            host = make_script_host(self.tiers[0], self.limits) if len(self.tiers) == 1 else None
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
            self._state = _LoopResources(loop, asyncio.Semaphore(host.at_once if host else cores))
        state = self._state
        async with state.cores:
            if self._state is not state:
                raise SandboxError("the sandbox was closed while the program waited for its turn")
            async with state.starting:
                if state.host is None or not state.host.is_alive:
                    state.host = await self._start_host(self.preload)
            yield state.host

    async def wait_for_memory(self) -> None:
        """Wait until idle sessions (between two rounds) together use at most `limits.waiting` bytes of memory."""
        if self._state is not None and isinstance(self._state.host, WarmInterpreter):
            await self._state.host.wait_for_memory(self.limits.waiting)

    async def _start_host(self, preload: Sequence[str]) -> WarmInterpreter | ScriptHost:
        """Start the first tier that works; return its warm interpreter or its script host."""
        if len(self.tiers) == 1 and (host := make_script_host(self.tiers[0], self.limits)) is not None:
            try:
                self._environment = await inspect_host(host, self.limits)
            except BaseException:
                await host.aclose()
                raise
            return host
        failures: dict[str, str] = {}
        for launch in list_launches(self.tiers, self.environment, failures):
            try:
                warm = WarmInterpreter(launch, self.environment, self.limits, preload)
                await warm.wait_until_ready()
            except SandboxUnavailable as error:
                failures[launch.name] = str(error)
            else:
                return warm
        raise SandboxUnavailable(explain_failures(failures))


class ProgramSession:
    """A program that keeps its variables between rounds; see `Sandbox.session`.

    If a round was stopped or the session's process ended, variables are lost, and the next round has only the original
    tables. At the end of a round, all processes that the program has started are killed.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        tables: Mapping[str, TableSource],
        timeout: float,
        *,
        once: bool = False,
        stdin: str | bytes | None = None,
    ) -> None:
        self.sandbox, self.tables, self.timeout, self._once = sandbox, tables, timeout, once
        self._stdin = stdin.encode() if isinstance(stdin, str) else stdin
        self._one_round = asyncio.Lock()
        self._files: tuple[int, ...] = ()
        self._warm: WarmInterpreter | None = None
        self._key: int | None = None
        # The code of earlier rounds; hosts that lose variables between rounds run this code again.
        self._earlier: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._key is not None and self._warm is not None:
            await self._warm.kill_program(self._key)
        for file in self._files:
            os.close(file)
        self._files = ()

    async def run(
        self,
        code: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the sandbox enforces the program's time
    ) -> Execution:
        """Run one round; if several calls are made at once, they wait for each other.

        Args:
            code: Python source, which may use variables from earlier rounds.
            timeout: limit of this round in seconds of wall time.

        Raises:
            SandboxUnavailable: programs cannot be isolated on this machine.
            SandboxError: the sandbox failed, or could not load a table.
        """
        seconds = self.timeout if timeout is None else timeout
        if self._key is None and not self._once:
            await self.sandbox.wait_for_memory()
        async with self._one_round, self.sandbox.acquire_host() as host:
            if isinstance(host, WarmInterpreter):
                return await self._run_in_interpreter(host, code, seconds)
            return await self._run_on_host(host, code, seconds)

    async def _run_on_host(self, host: ScriptHost, code: str, seconds: float) -> Execution:
        payload = {"is_last": self._once, "earlier_code": self._earlier, "stdin": self._stdin}
        result = await run_program(host, code, self.tables, seconds, self.sandbox.limits, **payload)
        ended = result.timed_out or (result.error or "").startswith(DEATH)
        self._earlier = [] if ended else [*self._earlier, code]
        return replace(result, variables_lost=ended and not self._once)

    async def _run_in_interpreter(self, interpreter: WarmInterpreter, code: str, seconds: float) -> Execution:
        if interpreter is not self._warm:
            self._warm, self._key = interpreter, None
        end = await self._run_round(interpreter, code, seconds)
        if not end.alive:
            self._key = None
        _, out, err, files = self._files
        limits = self.sandbox.limits
        most, error_size = compute_read_limits(limits), os.fstat(err).st_size
        contents = map(os.pread, (out, err, files), most, (0, max(0, error_size - most[1]), 0))
        result = make_execution(end.ending, *contents, timeout=seconds, seconds=end.seconds, limits=limits)
        return replace(result, variables_lost=not (self._once or end.alive), tier=interpreter.tier)

    async def _run_round(self, interpreter: WarmInterpreter, code: str, seconds: float) -> RoundEnd:
        if self._key is not None:
            self._write_payload(code, {}, is_last=False)
            end = await interpreter.run_round(self._key, seconds)
            if end.ending != "gone":
                return end
        await interpreter.import_mentioned_packages(code)
        same_pandas = self.sandbox.environment.is_current
        self._write_payload(code, self.tables, is_last=self._once, same_pandas=same_pandas, stdin=self._stdin)
        self._key = next(interpreter.keys)
        modes = (os.O_RDONLY, *[os.O_WRONLY | os.O_APPEND] * (len(self._files) - 1))
        opened: list[int] = []
        try:
            # Open the files again, because a program must not share this process's positions and flags.
            opened += (os.open(f"/proc/self/fd/{file}", mode) for file, mode in zip(self._files, modes, strict=True))
            return await interpreter.run_round(self._key, seconds, opened, is_only_round=self._once)
        finally:
            for file in opened:
                os.close(file)

    def _write_payload(self, code: str, tables: Mapping[str, TableSource], **options: Any) -> None:
        """Write the round's code and inputs to the payload file, and empty the files for its output."""
        if not self._files:
            self._files = tuple(os.memfd_create(name) for name in ("payload", "stdout", "stderr", "files"))
        for file in self._files:
            os.ftruncate(file, 0)
        with open(self._files[0], "wb", closefd=False) as payload:
            write_payload(payload, code, tables, **options)


@dataclass(frozen=True, slots=True)
class SandboxUser:
    """Base of the scorers and solvers that run programs in a sandbox."""

    sandbox: Sandbox
    owns_sandbox: bool  # Whether `aclose` ends the sandbox; false for a sandbox that is shared.

    def sandbox_for(self, _sample: object) -> Sandbox:
        """Return the sandbox in which the sample's programs run."""
        return self.sandbox

    async def aclose(self) -> None:
        if self.owns_sandbox:
            await self.sandbox.aclose()
