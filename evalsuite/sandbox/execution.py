"""The result of a program."""

from __future__ import annotations

import base64
import re
import signal
import struct
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.core.phrases import ending
from evalsuite.sandbox.inside.files import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalsuite.sandbox.inside import Limits

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


def describe_round(
    how: str, printed: bytes, complaint: bytes, *, timeout: float, seconds: float, limits: Limits
) -> Execution:
    """Describes how a round ended.

    Args:
        how: the ending that the warm interpreter reported (see `inside/forking.py`).
        printed: its standard output.
        complaint: the end of its standard error.
        timeout: the round's time limit in seconds.
        seconds: the round's duration.
        limits: the program's limits.
    """
    if len(printed) > limits.output:
        how = "output"
    error = _error(how, ending(complaint.decode("utf-8", "replace").strip(), ERROR_CHARACTERS), timeout, limits)
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
        return complaint or "the program failed without a message"
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


MOST_FILES, MOST_BYTES, MOST_TEXT = 8, 1 << 20, 64 << 10
"""Of one round: how many files, bytes of all together, bytes of a text (a longer one is left out)."""
MOST_PIXELS = 4096
"""Of a picture's width and height: a small file may hold a picture that no browser can unpack."""
_PNG = b"\x89PNG\r\n\x1a\n"
_SIZE = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A file that a program wrote.

    Attributes:
        name: its own name, in letters of any script, digits and `.-_` alone; no two of a round are equal.
        content: a PNG picture of at most 4096 pixels each way, or text in UTF-8 (`.csv`, `.txt`).
    """

    name: str
    content: bytes = field(repr=False)

    @property
    def is_picture(self) -> bool:
        """Whether it is a PNG picture; otherwise it is text."""
        return self.name.endswith(".png")


def read_files(handed_over: bytes) -> tuple[ProgramFile, ...]:
    """Read the files that a program's process handed over, up to the limits; leave out what is malformed."""
    files: list[ProgramFile] = []
    room = MOST_BYTES
    for written, content in _parts(handed_over):
        name = _plain(written)
        if any(file.name == name for file in files):
            name = f"{len(files) + 1}_{name}"
        file = ProgramFile(name, content)
        if len(files) < MOST_FILES and len(content) <= room and _is_harmless(file):
            files.append(file)
            room -= len(content)
    return tuple(files)


def as_event(files: Sequence[ProgramFile]) -> Mapping[str, Any]:
    """Convert files to JSON for their program's event; an empty mapping if there are none.

    Pictures are `figures` (`name`, `png` in base64), texts `files` (`name`, `text`).
    """
    figures = [{"name": file.name, "png": base64.b64encode(file.content).decode()} for file in files if file.is_picture]
    texts = [{"name": file.name, "text": file.content.decode()} for file in files if not file.is_picture]
    return {**({"figures": figures} if figures else {}), **({"files": texts} if texts else {})}


def _parts(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at + HEAD.size <= len(data):
        name_size, size = HEAD.unpack_from(data, at)
        begin = at + HEAD.size + name_size
        at = begin + size
        if at <= len(data):
            yield data[begin - name_size : begin].decode("utf-8", "replace"), data[begin:at]


def _plain(name: str) -> str:
    """Keep letters of any script, digits and `.-_`; at most 60 characters, which every file system takes."""
    return re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", name)).lstrip(".")[-60:].lower()


def _is_harmless(file: ProgramFile) -> bool:
    if file.is_picture:
        head = file.content[: 16 + _SIZE.size]
        if not head.startswith(_PNG) or head[12:16] != b"IHDR" or len(head) < 16 + _SIZE.size:
            return False
        return all(0 < side <= MOST_PIXELS for side in _SIZE.unpack_from(head, 16))
    if not file.name.endswith((".csv", ".txt")) or len(file.content) > MOST_TEXT or b"\0" in file.content:
        return False
    try:
        file.content.decode()
    except UnicodeDecodeError:
        return False
    return True
