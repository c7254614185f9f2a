"""Sessions that wait for their model share a budget of memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from evalsuite.sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

Lab = Any
HELD = "held = bytearray(40 << 20)"


def test_a_session_begins_when_those_that_wait_leave_room(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab(limits=Limits(waiting=30 << 20))

    async def converse() -> tuple[bool, str, str]:
        async with lab.sandbox.session() as second:
            async with lab.sandbox.session() as first:
                await first.run(HELD)
                began = asyncio.ensure_future(second.run("print(2)"))
                # One that has begun goes on, whatever it holds.
                proceeded = await first.run("print(len(held))")
                waits = not began.done()
            return waits, proceeded.stdout, (await began).stdout

    assert lab.runner.run(converse()) == (True, f"{40 << 20}\n", "2\n")


def test_programs_of_one_round_do_not_wait_for_sessions(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab(limits=Limits(waiting=30 << 20))

    async def converse() -> str:
        async with lab.sandbox.session() as session:
            await session.run(HELD)
            return str((await lab.sandbox.run("print(1)")).stdout)

    assert lab.runner.run(converse()) == "1\n"
