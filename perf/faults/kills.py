"""Kills and signals at many instants of a real session with two workers, which is resumed afterwards.

`lost` are answers that the journal held when the session ended and that are asked again, `wrong` cases without the
right record in the end, and ends that leave no report where they should, `crashed` tracebacks and internal errors.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from echo_server import EchoServer
from row import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CASES = 30
SUITE = f"""
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=str(n), input=str(n), target=str(n)) for n in range({CASES})]

@benchmark("many", SAMPLES, solver=generate(), scorers=[exact_match()])
def test_many(scores):
    assert scores["exact_match"] == 1.0
"""
DELAY = 0.1
"""Seconds before each answer, so that a session has instants between its first case and its last."""


@dataclass(slots=True)
class Session:
    """A session that goes on.

    Attributes:
        folder: of the suite.
        process: of the controller.
        output: file that holds what it writes.
    """

    folder: Path
    process: subprocess.Popen[bytes]
    output: Path

    @property
    def run(self) -> Path:
        """The run's folder."""
        return self.folder / "reports" / "r"

    @property
    def crashed(self) -> bool:
        """Whether it showed what no user should see."""
        words = self.output.read_text("utf-8", "replace")
        return "INTERNALERROR" in words or "Traceback (most recent call last)" in words

    def answered(self) -> set[str]:
        """Questions whose answer is in the journal."""
        query = "SELECT request FROM answers JOIN requests USING (key)"
        with suppress(sqlite3.Error), closing(sqlite3.connect(self.run / "journal.sqlite")) as journal:
            return {json.loads(row[0])["messages"][-1]["content"] for row in journal.execute(query)}
        return set()

    def outcomes(self) -> dict[str, str]:
        """Outcome by sample, as records.jsonl has them."""
        file = self.run / "records.jsonl"
        lines = file.read_text("utf-8").splitlines() if file.is_file() else []
        records = [json.loads(line) for line in lines]
        return {record["sample"]: record["cause"] if record["outcome"] == "error" else record["outcome"]
                for record in records}  # fmt: skip

    def workers(self) -> list[int]:
        """Process numbers of the workers."""
        number = self.process.pid
        children = Path(f"/proc/{number}/task/{number}/children")
        return [int(child) for child in children.read_text().split()] if children.is_file() else []


def heed_signals() -> None:
    """In the session's process: `nohup` and `&` would have it ignore some, as they do this one."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def start(folder: Path, address: str, *options: str) -> Session:
    """Starts a session of the suite."""
    output = folder / f"output{len(list(folder.glob('output*')))}"
    command = [sys.executable, "-m", "pytest", "-p", "evalsuite.plugin", "--max-connections=2"]
    command += ["--model=m", f"--model-base-url={address}", *options]
    with output.open("wb") as stream:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=stream,
            stderr=subprocess.STDOUT,
            preexec_fn=heed_signals,  # noqa: PLW1509 - no threads here
        )
    return Session(folder, process, output)


def kill_controller(session: Session) -> None:
    """As the system does that has run out of memory."""
    session.process.kill()


def kill_worker(session: Session) -> None:
    """One of both, if there are any yet."""
    for worker in session.workers()[:1]:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def send(number: signal.Signals) -> Callable[[Session], None]:
    """A signal to the controller."""
    return lambda session: session.process.send_signal(number)


FAULTS: dict[str, tuple[Callable[[Session], None], int]] = {
    "kill -9 of the session": (kill_controller, 12),
    "kill -9 of a worker": (kill_worker, 12),
    "SIGTERM": (send(signal.SIGTERM), 4),
    "SIGHUP": (send(signal.SIGHUP), 4),
    "SIGINT": (send(signal.SIGINT), 4),
}
"""What is done to a session, and at how many instants."""


def attempt(name: str, answers: int, server: EchoServer) -> tuple[int, int, int]:
    """Lost, wrong and crashed, of a session to which it is done once so many answers were kept."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "test_many.py").write_text(SUITE)
        session = start(folder, server.address, "-n2", "--run=r")
        while session.process.poll() is None and len(session.answered()) < answers:
            time.sleep(0.02)
        FAULTS[name][0](session)
        session.process.wait(120)
        kept, crashed = session.answered(), session.crashed
        wrong = 0 if name == "kill -9 of the session" else unreported(session, name)
        server.asked()
        resumed = start(folder, server.address, "--resume=r")
        resumed.process.wait(120)
        again = server.asked()
        right = {str(number): "passed" for number in range(CASES)}
        wrong += sum(resumed.outcomes().get(sample) != outcome for sample, outcome in right.items())
        return sum(again[text] > 0 for text in kept), wrong, crashed + resumed.crashed


def unreported(session: Session, name: str) -> int:
    """Cases of the ended session whose record is missing or wrong, and a report that is not there."""
    outcomes = session.outcomes()
    wrong = sum(outcome not in {"passed", "WorkerDied"} for outcome in outcomes.values())
    # xdist takes the worker's tests to another one; the one that it ran is reported as the crash.
    wrong += max(0, list(outcomes.values()).count("WorkerDied") - 1)
    if name == "kill -9 of a worker":
        wrong += CASES - len(outcomes)
    else:
        wrong += "--resume r" not in session.output.read_text("utf-8", "replace")
    return wrong + (not (session.run / "report.md").is_file())


def rows(*, short: bool) -> Iterator[Row]:
    """The part of the table."""
    with EchoServer(DELAY) as server:
        for name, (_, instants) in FAULTS.items():
            if short and name in {"SIGHUP", "SIGINT"}:
                continue
            count = 1 if short else instants
            totals = [0, 0, 0]
            for index in range(count):
                answers = 1 + (index + 1) * (CASES - 4) // (count + 1)
                counts = attempt(name, answers, server)
                totals = [sum(pair) for pair in zip(totals, counts, strict=True)]
            yield Row(f"run: {name}", count, totals[0], totals[1], totals[2])
