"""The n-th write, fsync, send or receive of a run fails, for every n, and the run is resumed afterwards.

A small library in C, built on the spot and preloaded, counts the calls and fails one. Each n has a forked process of
its own, which plans cases, asks a server through the gateway, and keeps answers and records in a journal. `lost` are
answers that were given out and are asked again, `wrong` answers and records that are not what they should be after
the run was resumed, `crashed` failures other than an error in evalsuite's own words.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from echo_server import EchoServer
from row import Row

# Before anything is forked, and before anything fails.
import evalsuite.models.openai_client  # noqa: F401
from evalsuite.core.errors import EvalsuiteError
from evalsuite.core.json_codec import dumps, encode_record
from evalsuite.core.settings import make_settings
from evalsuite.core.types import Message, Record, Request
from evalsuite.gateway.opening import open_gateway
from evalsuite.journal.journal import Journal
from evalsuite.journal.planned import PlannedCase, digest_fingerprints
from evalsuite.results.run_folders import JOURNAL, RECORDS, export_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.gateway.gateway import Gateway

CASES = [f"case {number}" for number in range(12)]


@dataclass(frozen=True, slots=True)
class Call:
    """A kind of system call, and how it fails.

    Attributes:
        words: for the table.
        kind: its number in fail_nth.c.
        error: what it fails with.
        forever: whether all later ones fail, too.
    """

    words: str
    kind: int
    error: int
    forever: bool = False


CALLS = (
    Call("the n-th write finds the disk full", 1, errno.ENOSPC),
    Call("from the n-th write on the disk is full", 1, errno.ENOSPC, forever=True),
    Call("the n-th fsync fails", 2, errno.EIO),
    Call("the n-th send is reset", 3, errno.ECONNRESET),
    Call("the n-th receive is reset", 4, errno.ECONNRESET),
)


def rows(*, short: bool) -> Iterator[Row]:
    """The part of the table."""
    if sys.platform != "linux" or shutil.which("cc") is None:
        yield Row("calls: not measured, as that needs Linux and a C compiler", 0)
        return
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "fail_nth.so"
        source = Path(__file__).with_name("fail_nth.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        command = [sys.executable, __file__, "9" if short else "1000000"]
        environment = os.environ | {"LD_PRELOAD": str(library)}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield Row(**json.loads(line))
        if process.returncode:
            yield Row("calls: the measurement itself", 1, crashed=1)


def fingerprints(case: str) -> dict[str, str]:
    """What stands for the case's sample."""
    return {"input": case}


def plan() -> list[PlannedCase]:
    """The cases of every session."""
    return [PlannedCase(case, "b", case, 1, {}, "", "", True, fingerprints(case)) for case in CASES]


async def session(folder: Path, address: str, told: int) -> None:
    """One session of the run; writes a line of JSON for each answer that it was given."""
    settings = make_settings({"model": "m", "model_base_url": address, "max_connections": 4, "patience": 5})
    journal = Journal(folder / JOURNAL)
    journal.begin_session(datetime.now(UTC).isoformat(), "perf")
    journal.store_plan(plan())
    gateway = open_gateway(settings, journal.answers)
    try:
        await asyncio.gather(*(ask(case, gateway, journal, address, told) for case in CASES))
        journal.end_session(datetime.now(UTC).isoformat(), None)
        export_records(journal, folder)
    finally:
        await gateway.aclose()
        journal.close()


async def ask(case: str, gateway: Gateway, journal: Journal, address: str, told: int) -> None:
    """One case, from its question to its record."""
    completion = await gateway.ask(Request("m", (Message("user", case),), base_url=address))
    os.write(told, json.dumps([case, completion.text]).encode() + b"\n")
    outcome: Any = "passed" if completion.text == case else "failed"
    record = Record(case, "b", case, 1, "m", outcome, fingerprints=fingerprints(case))
    journal.store_record(case, digest_fingerprints(record.fingerprints), dumps(encode_record(record)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a forked session.

    Attributes:
        told: case and text of each answer that was given out.
        calls: of the kind that was counted.
        crashed: whether it ended otherwise than well or with one message.
    """

    told: list[tuple[str, str]]
    calls: int
    crashed: bool


def forked(folder: Path, address: str, call: Call, number: int) -> Outcome:
    """A session in a process of its own, in which one call fails; number 0 fails none."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os._exit(child_session(folder, address, writing, call, number))
    os.close(writing)
    with os.fdopen(reading) as stream:
        *lines, calls = [json.loads(line) for line in stream] or [0]
    _, status = os.waitpid(child, 0)
    return Outcome([tuple(line) for line in lines], calls, status != 0)


def child_session(folder: Path, address: str, told: int, call: Call, number: int) -> int:
    """The child's part; its exit status."""
    library, status = ctypes.CDLL(None), 0
    library.fail_nth_arm(call.kind, number, call.error, call.forever)
    try:
        asyncio.run(session(folder, address, told))
    except (EvalsuiteError, OSError):
        # One message to the user; an OSError is what the plugin's edge puts into words.
        status = 0
    except BaseException:  # noqa: BLE001 - that is what is counted
        sys.stderr.write(f"{call.words}, n = {number}: {traceback.format_exc()}\n")
        status = 1
    os.write(told, f"{library.fail_nth_count()}\n".encode())
    return status


def attempt(call: Call, number: int, server: EchoServer) -> tuple[int, int, int]:
    """Lost, wrong and crashed of one n."""
    with tempfile.TemporaryDirectory(prefix="fail-nth-") as name:
        folder = Path(name)
        first = forked(folder, server.address, call, number)
        server.asked()
        second = forked(folder, server.address, Call("none", 0, 0), 0)
        again = server.asked()
        lost = sum(again[case] > 0 for case, _ in first.told)
        wrong = sum(case != text for case, text in (*first.told, *second.told))
        wrong += sorted(case for case, _ in second.told) != sorted(CASES)
        wrong += not recorded(folder / RECORDS)
    return lost, wrong, first.crashed + second.crashed


def recorded(file: Path) -> bool:
    """Whether records.jsonl holds every case, each passed."""
    records = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.is_file() else []
    return [(one["case"], one["outcome"]) for one in records] == [(case, "passed") for case in sorted(CASES)]


def chosen(calls: int, most: int) -> Sequence[int]:
    """All n, or so many of them, evenly spread."""
    every = range(1, calls + 1)
    return every if calls <= most else [every[index * calls // most] for index in range(most)]


def main(most: int) -> None:
    """Prints each row as JSON, for the process that preloaded the library."""
    with EchoServer() as server:
        for call in CALLS:
            with tempfile.TemporaryDirectory(prefix="fail-nth-") as folder:
                calls = forked(Path(folder), server.address, call, 0).calls
            totals = [0, 0, 0]
            numbers = chosen(calls, most)
            for number in numbers:
                counts = attempt(call, number, server)
                totals = [sum(pair) for pair in zip(totals, counts, strict=True)]
            row = Row(f"calls: {call.words}", len(numbers), totals[0], totals[1], totals[2], note=f"n up to {calls}")
            print(json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
