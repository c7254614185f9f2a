"""One shard of a suite on a node of a cluster: a separate pytest session that sends its records as they come."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.errors import RunError
from evalsuite.results.record_file import JOURNAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BETWEEN_LOOKS = 0.5  # Seconds between two polls for new records.
TAIL = 20_000  # Characters of a session's output that are kept, from its end.


@dataclass(frozen=True, slots=True)
class ShardJob:
    """The work of one node."""

    part: int  # The shard's number, from 1.
    parts: int
    arguments: Sequence[str]
    gateway: str  # The addresses of the gateway services that all shards use.
    token: str | None  # The client token for the gateways; None if they require none.


@dataclass(frozen=True, slots=True)
class ShardResult:
    """The result of a shard."""

    part: int  # The shard's number, from 1.
    status: int  # Pytest's exit status.
    folder: bytes  # The run's folder as a tar file; empty without a folder.
    output: str  # The last part of the session's output.


def run_shard(job: ShardJob, send: Callable[[list[str]], None]) -> ShardResult:
    """Run a shard in the current directory, to its end."""
    with tempfile.TemporaryDirectory(prefix="evalsuite-shard-") as home:
        folder = Path(home) / "reports" / f"shard-{job.part}"
        with (Path(home) / "output").open("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(  # noqa: S603 - the user's own options
                _list_command(job, folder), stdout=output, stderr=subprocess.STDOUT, env=_make_environ(job)
            )
            try:
                _follow(process, folder / JOURNAL, send)
            finally:
                process.kill()
            output.seek(0)
            return ShardResult(job.part, process.wait(), _pack(folder), output.read()[-TAIL:])


def _list_command(job: ShardJob, folder: Path) -> list[str]:
    return [
        # End the session with the node's worker, because it would continue to pay for calls.
        *(sys.executable, "-m", "evalsuite.clusters.tethered"),
        *("-m", "pytest", "-p", "no:cacheprovider", *job.arguments),
        *(f"--shard={job.part}/{job.parts}", f"--gateway={job.gateway}"),
        *(f"--reports={folder.parent}", f"--run={folder.name}"),
    ]


def _make_environ(job: ShardJob) -> dict[str, str]:
    from evalsuite.service.clients import TOKEN

    return {**os.environ, **({TOKEN: job.token} if job.token else {})}


def _follow(process: subprocess.Popen[bytes], journal: Path, send: Callable[[list[str]], None]) -> None:
    """Send records until the session has ended, then send the remaining ones."""
    sent = 0
    while True:
        ended = process.poll() is not None
        lines, sent = _read_records_after(journal, sent)
        if lines:
            send(lines)
        if ended:
            return
        time.sleep(BETWEEN_LOOKS)


def _read_records_after(journal: Path, number: int) -> tuple[list[str], int]:
    from evalsuite.journal.database import Database

    if not journal.is_file():
        return [], number
    try:
        database = Database(journal, read_only=True)
    except RunError:
        # The session is still creating the file.
        return [], number
    try:
        rows = database.all("SELECT number, record FROM records WHERE number > ? ORDER BY number", number)
    except RunError:
        rows = []
    finally:
        database.close()
    return [record for _, record in rows], rows[-1][0] if rows else number


def _pack(folder: Path) -> bytes:
    if not folder.is_dir():
        return b""
    with io.BytesIO() as packed:
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            tar.add(folder, arcname=folder.name)
        return packed.getvalue()


def unpack(result: ShardResult, into: Path) -> Path:
    """Unpack a shard's run folder; return its path."""
    if not result.folder:
        raise RunError(
            f"shard {result.part} left no run (exit status {result.status}):\n{result.output.strip()[-2000:]}"
        )
    with tarfile.open(fileobj=io.BytesIO(result.folder)) as tar:
        tar.extractall(into, filter="data")
    return into / f"shard-{result.part}"
