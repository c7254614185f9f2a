"""Faults of the journal's file.

`lost` are answers that somebody was told of and that would be asked again, `wrong` answers that differ from what was
put, `crashed` attempts that ended otherwise than with one message.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from row import Row

from evalsuite.core.errors import RunError
from evalsuite.core.types import Completion, Message, Request
from evalsuite.journal.answers import Answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANSWERS, AT_ONCE = 100, 4
WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from journal_faults import fill
fill(Path(sys.argv[1]), lambda index: print(index, flush=True))
"""


def answer(index: int) -> Completion:
    """What is put under a number."""
    return Completion(f"answer {index} " * 40)


async def put(answers: Answers, index: int, told: Callable[[int], object]) -> None:
    """Puts one answer, and says so once it is kept."""
    request = Request("m", (Message("user", f"question {index} " * 40),))
    await answers.store_completion(str(index), request, answer(index))
    told(index)


def fill(path: Path, told: Callable[[int], object] = lambda _: None) -> None:
    """Puts all answers, several at a time; `told` hears of each that is kept."""
    answers = Answers.open(path)

    async def put_all() -> None:
        for first in range(0, ANSWERS, AT_ONCE):
            await asyncio.gather(*(put(answers, index, told) for index in range(first, first + AT_ONCE)))

    asyncio.run(put_all())
    answers.close()


def look(path: Path, kept: int = ANSWERS) -> tuple[int, int, int]:
    """Lost, wrong and crashed, of so many answers that somebody was told of."""
    try:
        answers = Answers.open(path)
    except RunError:
        return kept, 0, 0
    except Exception:  # noqa: BLE001 - that is what is counted
        return kept, 0, 1
    present = [answers.get(str(index)) for index in range(kept)]
    answers.close()
    wrong = sum(completion not in (None, answer(index)) for index, completion in enumerate(present))
    return present.count(None), wrong, 0


def flip(path: Path, chance: random.Random) -> int:
    """One bit, anywhere in the file."""
    fill(path)
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return ANSWERS


def truncate(path: Path, chance: random.Random) -> int:
    """The end of the file is gone."""
    fill(path)
    os.truncate(path, chance.randrange(path.stat().st_size))
    return ANSWERS


def kill(path: Path, chance: random.Random) -> int:
    """The writer is killed after the n-th answer."""
    command = [sys.executable, "-c", WRITER, str(path), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = 0
        for _ in range(chance.randrange(1, ANSWERS)):
            acknowledged += bool(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        acknowledged += sum(line.endswith("\n") for line in writer.stdout)
    return acknowledged


def fill_disk(path: Path, chance: random.Random) -> int:
    """SQLite's own full disk, from a random page on."""
    answers = Answers.open(path)
    kept: list[int] = []
    answers._database.write((f"PRAGMA max_page_count = {chance.randrange(30, 80)}", ()))  # noqa: SLF001 - a fault from within

    async def put_all() -> None:
        for index in range(ANSWERS):
            await put(answers, index, kept.append)

    with suppress(RunError):
        asyncio.run(put_all())
    answers.close()
    return len(kept)


FAULTS = {
    "kill -9 of the writer at a random answer": kill,
    "one flipped bit anywhere in the file": flip,
    "the file cut off at a random byte": truncate,
    "a full disk from a random page on": fill_disk,
}
DAMAGE = {"one flipped bit anywhere in the file", "the file cut off at a random byte"}
"""What is lost there was lost on the disk."""


def measure(name: str, fault: Callable[[Path, random.Random], int], attempts: int) -> Row:
    """Tries one fault so many times."""
    chance, totals = random.Random(0), [0, 0, 0]
    kept = 0
    for _ in range(attempts):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "journal.sqlite"
            acknowledged = fault(path, chance)
            kept += acknowledged
            totals = [sum(pair) for pair in zip(totals, look(path, acknowledged), strict=True)]
    note = f"of {kept} answers in all"
    return Row(f"journal: {name}", attempts, totals[0], totals[1], totals[2], note=note, may_lose=name in DAMAGE)


def rows(*, short: bool) -> Iterator[Row]:
    """The part of the table."""
    for name, fault in FAULTS.items():
        yield measure(name, fault, 5 if short else 50)
