"""The result of a program."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.core.shortening import ending

if TYPE_CHECKING:
    from evalsuite.sandbox.files import ProgramFile
    from evalsuite.sandbox.inside.limits import Limits

ERROR_CHARACTERS = 4000
DEATH = "the program's process "
"""How an error begins that says that the process itself has ended."""


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of a program, or of one round of a session.

    Attributes:
        stdout: what it printed, in the order printed, up to the limit on output; also where it failed.
        error: None if it ran to its end (or to `exit()` with no status or 0); otherwise why it did not: its
            traceback, reduced to the program's own lines, or a sentence about the limit that it hit.
        timed_out: whether it was stopped for using too much wall time or CPU time; `error` then says so.
        seconds: wall time within the sandbox, including the fork and the loading of tables.
        variables_lost: in a session, whether the process ended with this round, so that the next one starts
            afresh; always False for a program with a single round.
        tier: what held it: `bubblewrap`, `landlock`, `docker:IMAGE`, or a server's address.
        files: pictures (PNG) and texts (CSV, TXT) that the round wrote to its folder, the figures among them that
            matplotlib still had open; at most eight, and 1 MiB in all.
    """

    stdout: str
    error: str | None
    timed_out: bool
    seconds: float
    variables_lost: bool = False
    tier: str = ""
    files: tuple[ProgramFile, ...] = ()


def execution(
    how: str, printed: bytes, complaint: bytes, *, timeout: float, seconds: float, limits: Limits
) -> Execution:
    """Describes how a round ended.

    Args:
        how: in the warm interpreter's words (see `inside/__main__.py`).
        printed: what stands in its standard output.
        complaint: what stands at the end of its standard error.
        timeout: seconds that it was given.
        seconds: seconds that it took.
        limits: the limits that it ran under.
    """
    if len(printed) > limits.output:
        how = "output"
    error = _error(
        how, ending(complaint.decode("utf-8", "replace").strip(), ERROR_CHARACTERS), timeout, limits
    )
    stdout = printed[: limits.output].decode("utf-8", "replace")
    return Execution(stdout, error, how in ("timeout", "cpu"), seconds)


def _error(how: str, complaint: str, timeout: float, limits: Limits) -> str | None:
    if how in ("ok", "exit 0"):
        return None
    limit = {
        "timeout": f"stopped after {timeout:g} s",
        "cpu": f"stopped after more than {timeout:g} s of CPU time",
        "output": f"stopped: more than {limits.output:,} bytes were printed",
        "processes": f"stopped: it had more than {limits.processes} processes and threads",
        "files": f"stopped: its files had more than {limits.files >> 20:,} MiB",
        "memory": f"stopped: its processes together had more than {limits.memory >> 20:,} MiB of memory",
    }
    if how in limit:
        return limit[how]
    if how == "raised":
        return complaint or "the program failed without a word"
    return f"{_death(how)}\n{complaint}".strip()


def _death(how: str) -> str:
    kind, _, number = how.partition(" ")
    if kind == "exit":
        return f"{DEATH}ended with status {number}"
    try:
        name = signal.Signals(int(number)).name
    except ValueError:
        name = f"signal {number}"
    return f"{DEATH}was killed ({name})"
