"""One program, in one round or several, between its first byte and its last."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from evalsuite.core.errors import SandboxError
from evalsuite.sandbox.execution import DEATH, ERROR_CHARACTERS, Execution, execution
from evalsuite.sandbox.files import MOST_BYTES, read_files
from evalsuite.sandbox.script_hosts import run_program
from evalsuite.sandbox.tables import payload
from evalsuite.sandbox.warm import WarmInterpreter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalsuite.sandbox.sandbox import Sandbox
    from evalsuite.sandbox.script_hosts import ScriptHost
    from evalsuite.sandbox.tables import TableSource
    from evalsuite.sandbox.warm import Ending


class ProgramSession:
    """A program whose variables live on between its rounds; see `Sandbox.session`.

    If a round is stopped or its process dies, the variables are lost: the next round starts afresh, with the
    original tables. Processes that a round leaves behind are killed.
    """

    def __init__(
        self, sandbox: Sandbox, tables: Mapping[str, TableSource], timeout: float, *, once: bool = False
    ) -> None:
        self.sandbox = sandbox
        self.tables = tables
        self.timeout = timeout
        self._once = once
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
        content = payload(code, self.tables, last=self._once, same_pandas=False, earlier=self._earlier)
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
        self._leave(payload(code, self.tables, last=self._once, same_pandas=own))
        self._key = warm.new_key()
        with _handed_over(self._files) as files:
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
        result = execution(
            ending.how, printed, complaint, timeout=seconds, seconds=ending.seconds, limits=limits
        )
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
def _handed_over(files: tuple[int, ...]) -> Iterator[list[int]]:
    """The files as the program gets them: opened anew, so that what it does to its own is not felt here."""
    modes = (os.O_RDONLY, *[os.O_WRONLY | os.O_APPEND] * (len(files) - 1))
    opened: list[int] = []
    try:
        opened += (os.open(f"/proc/self/fd/{file}", mode) for file, mode in zip(files, modes, strict=True))
        yield opened
    finally:
        for file in opened:
            os.close(file)
