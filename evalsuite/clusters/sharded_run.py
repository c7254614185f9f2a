"""Joins shards that run elsewhere into one run, with one report and one exit status."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.clusters.shard import unpack
from evalsuite.core.errors import BackendUnavailable, RunError
from evalsuite.results.merge import join_runs
from evalsuite.results.record_file import JOURNAL
from evalsuite.results.run_folders import RunFolder, check_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalsuite.clusters.shard import ShardResult
    from evalsuite.core.declarations import Declarations
    from evalsuite.output.reports.write import RunReport

TETHERED = (sys.executable, "-m", "evalsuite.clusters.tethered")
GRACE = 30.0  # Seconds within which the gateway must end.


@contextmanager
def own_gateway(options: Sequence[str], root: Path, store: Path) -> Iterator[str]:
    """Run a gateway service on loopback for the shards of one run; yield its address.

    Functions named as models are imported from `root`.
    """
    # The gateway must not outlive a killed driver, because it would keep its store locked.
    command = [*TETHERED, "-m", "evalsuite", "gateway", "--port=0", f"--store={store}", *options]
    process = subprocess.Popen(  # noqa: S603 - the user's own options
        command, cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    try:
        url = process.stdout.readline().partition(": ")[2].strip()
        if not url:
            raise BackendUnavailable("the gateway of this run did not start; its message is above")
        yield url
    finally:
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


STORE = "gateway.sqlite"  # The answers of a run with its own gateway, until its shards are joined.
NO_TESTS = 5
ENDED = {0, 1, 10, 11, 12}  # exit statuses of sessions that ran to their end


class ShardedRun:
    """Gathers the records of shards, and joins them into one run."""

    def __init__(self, reports: Path, name: str, command: str) -> None:
        from evalsuite.journal.journal import Journal

        self.path = reports / name
        if not (self.path / STORE).is_file():
            # A run whose driver died continues with the answers in its gateway's store.
            check_name(reports, name)
        self.path.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(self.path / JOURNAL)
        self._journal.begin(datetime.now(UTC).isoformat(timespec="seconds"), command)
        self._cases: set[str] = set()
        self._statuses: list[int] = []

    @property
    def cases(self) -> int:
        return len(self._cases)

    def add_records(self, lines: Iterable[str]) -> None:
        """Store records; if a case has several records, the last one counts."""
        import json

        from evalsuite.journal.planned import same_ask

        for line in lines:
            plain = json.loads(line)
            self._cases.add(plain["case"])
            self._journal.record(plain["case"], same_ask(plain.get("fingerprints", {})), line)

    def join(self, results: Iterable[ShardResult], declarations: Declarations) -> RunReport:
        """Wait for all shards, and write the report."""
        from evalsuite.output.reports.write import write_run

        try:
            with tempfile.TemporaryDirectory(prefix="evalsuite-shards-") as home:
                folders = [RunFolder(self._unpack(result, Path(home))) for result in results]
                self._journal.close()
                joined = join_runs(folders, self.path)
        finally:
            self._journal.close()
        return write_run(joined, declarations)

    def _unpack(self, result: ShardResult, home: Path) -> Path:
        self._statuses.append(result.status)
        if result.status == NO_TESTS:
            raise RunError(f"shard {result.part} has no case: there are fewer cases than --shards")
        return unpack(result, home)

    def status(self, verdict: int) -> int:
        """Compute the exit status that one session would have had."""
        stopped = [status for status in self._statuses if status not in ENDED]
        return verdict if verdict >= 10 else max(stopped) if stopped else max(verdict, min(1, max(self._statuses)))
