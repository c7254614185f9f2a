"""Run shards as tasks of Ray, and join them into one run, with one report and one exit status."""

import io
import logging
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import BackendUnavailable, RunError, write_count
from evalsuite.journal.database import Database
from evalsuite.journal.lease import RunLock
from evalsuite.output.reports.write import RunReport, write_run_report
from evalsuite.results.merge import merge_runs
from evalsuite.results.run_folders import JOURNAL, RunFolder, check_run_name

TETHERED_PYTHON = (sys.executable, "-m", "evalsuite.clusters.tethered")
POLL_PAUSE = 0.5  # Seconds between two polls for new records.
TAIL = 20_000  # Characters of a session's output that are kept, from its end.


@dataclass(frozen=True, slots=True)
class ShardResult:
    """The result of running one shard."""

    part: int  # The shard's number, from 1.
    status: int  # Pytest's exit status.
    folder: bytes  # The run's folder as a tar file; empty if the session left no folder.
    output: str  # The last part of the session's output.


def run_shard(part: int, arguments: Sequence[str], token: str | None, collector: Any) -> ShardResult:
    """Run a shard's session in the current directory, put its ended cases into Ray's queue `collector`; await its end.

    `token` is the client token for the gateway; None if the gateway requires none.
    """
    from evalsuite.service.clients import TOKEN

    environment = {**os.environ, **({TOKEN: token} if token else {})}
    with tempfile.TemporaryDirectory(prefix="evalsuite-shard-") as home:
        folder = Path(home) / "reports" / f"shard-{part}"
        with (Path(home) / "output").open("w+", encoding="utf-8", errors="replace") as output:
            # Let the session end when the node's worker ends, because it would otherwise continue to pay for calls.
            command = [
                *(*TETHERED_PYTHON, "-m", "pytest", "-p", "no:cacheprovider", *arguments),
                *(f"--reports={folder.parent}", f"--run={folder.name}"),
            ]
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)  # noqa: S603 - the user's own options
            try:
                ended, sent = False, 0
                while not ended:
                    ended = process.poll() is not None
                    cases, sent = _list_cases_after(folder / JOURNAL, sent)
                    if cases:
                        collector.put_nowait_batch(cases)
                    if not ended:
                        time.sleep(POLL_PAUSE)
            finally:
                process.kill()
            output.seek(0)
            packed = io.BytesIO()
            if folder.is_dir():
                with tarfile.open(fileobj=packed, mode="w:gz") as tar:
                    tar.add(folder, arcname=folder.name)
            return ShardResult(part, process.wait(), packed.getvalue(), output.read()[-TAIL:])


def _list_cases_after(journal: Path, number: int) -> tuple[list[str], int]:
    """List the cases of the records whose numbers are greater than `number`; also return the last record's number."""
    try:
        with closing(Database(journal, read_only=True)) as database:
            rows = database.read_rows('SELECT number, "case" FROM records WHERE number > ? ORDER BY number', number)
    except RunError:
        rows = []  # The session may not have finished creating the journal.
    return [case for _, case in rows], rows[-1][0] if rows else number


GRACE = 30.0  # Seconds within which a stopped gateway must exit.


@contextmanager
def run_own_gateway(options: Sequence[str], root: Path, store: Path) -> Iterator[str]:
    """Run a gateway service on loopback for the shards of one run; yield its address.

    Models that are Python functions are imported from the folder `root`.
    """
    # End the gateway if this driver is killed, because a surviving gateway would keep its store locked.
    command = [*TETHERED_PYTHON, "-m", "evalsuite", "gateway", "--port=0", f"--store={store}", *options]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)  # noqa: S603 - the user's own options
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


STORE = "gateway.sqlite"  # The store of the gateway that serves one run; deleted once the run's shards are joined.
NO_TESTS = 5
ENDED = {0, 1, 10, 11, 12}  # Exit statuses of sessions that ended normally.


class ShardedRun:
    """Counts the cases of shards that have ended, and joins the shards into one run."""

    def __init__(self, reports: Path, name: str) -> None:
        self.path = reports / name
        if not (self.path / STORE).is_file():
            # A gateway's store means that an earlier driver died; this run then reuses the stored answers.
            check_run_name(reports, name)
        self.path.mkdir(parents=True, exist_ok=True)
        # Two drivers must not join their shards into one run; the lock ends with this process.
        self._lease = RunLock(self.path)
        self.cases: set[str] = set()  # The cases that have ended; a shard that runs again reports its cases again.
        self._statuses: list[int] = []

    def join_results(self, results: Iterable[ShardResult], declarations: Declarations) -> RunReport:
        """Wait for all shards, join their runs into one, and write its report."""
        with tempfile.TemporaryDirectory(prefix="evalsuite-shards-") as home:
            folders = [RunFolder(self._unpack_result(result, Path(home))) for result in results]
            joined = merge_runs(folders, self.path)
        return write_run_report(joined, declarations)

    def _unpack_result(self, result: ShardResult, folder: Path) -> Path:
        """Record a shard's exit status, unpack its run into `folder`, and return the path of the run's folder."""
        self._statuses.append(result.status)
        if result.status == NO_TESTS:
            raise RunError(f"shard {result.part} has no case: there are fewer cases than --shards")
        if not result.folder:
            raise RunError(
                f"shard {result.part} left no run (exit status {result.status}):\n{result.output.strip()[-2000:]}"
            )
        with tarfile.open(fileobj=io.BytesIO(result.folder)) as tar:
            tar.extractall(folder, filter="data")
        return folder / f"shard-{result.part}"

    def compute_exit_status(self, verdict: int) -> int:
        """Compute the exit status that a single session with all cases would have."""
        stopped = [status for status in self._statuses if status not in ENDED]
        return verdict if verdict >= 10 else max(stopped) if stopped else max(verdict, min(1, max(self._statuses)))


RETRIES = 5  # Maximum number of times that a shard is run again after its node has died.
CONNECT = 10.0  # Seconds within which the cluster must accept a connection.
BETWEEN_LOOKS = 1.0  # Seconds between two polls for results.
EXCLUDED_FILES = ["reports", "**/reports", ".git", ".venv", "**/__pycache__", "*.sqlite", "*.sqlite-*"]
"""Files that are not copied to the nodes."""


class RayCluster:
    """A connection to an existing cluster, or to a new cluster on this machine.

    Args:
        address: the cluster's address; None starts a new cluster, `auto` finds an existing one.
        packages: the packages to install on every node with pip; empty if the nodes have them already.
    """

    def __init__(self, address: str | None, root: Path, packages: Sequence[str], cpus: float) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Keep Ray from sending usage statistics.
        # Otherwise, Ray starts workers by `uv run` in a copy of the suite without the project, in which they die.
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        try:
            import ray
        except ImportError as error:
            raise BackendUnavailable("evalsuite ray needs Ray: pip install 'evalsuite[ray]'") from error
        self._ray: Any = ray  # Ray's types are incomplete.
        self._cpus = cpus
        environment: dict[str, Any] = {"working_dir": str(root), "excludes": EXCLUDED_FILES}
        if packages:
            # Without these tools, Ray would retry for minutes.
            if missing := [name for name in ("virtualenv", "pip") if find_spec(name) is None]:
                raise BackendUnavailable(
                    f"--pip: Ray needs {' and '.join(missing)} in this environment and on every node: pip install "
                    "'evalsuite[ray]', or uv pip install virtualenv pip"
                )
            environment["pip"] = list(packages)
        _require_listener(address)
        try:
            ray.init(
                # Without an address, Ray would join any cluster on this machine, even one with a dead head node.
                address=address or "local",
                runtime_env=environment,
                log_to_driver=False,
                logging_level=logging.WARNING,
                include_dashboard=None,
            )
        except Exception as error:  # Ray raises a plain Exception if its node starts too slowly.
            raise BackendUnavailable(f"--address {address or 'local'}: {error}") from error

    @property
    def is_on_one_host(self) -> bool:
        """Whether all nodes are on this host, so that they can reach servers on its loopback address."""
        own_address = self._ray.util.get_node_ip_address()
        return all(node["NodeManagerAddress"] == own_address for node in self._list_alive_nodes())

    def _list_alive_nodes(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    def run_shards(
        self,
        arguments_by_part: Mapping[int, Sequence[str]],
        token: str | None,
        receive_cases: Callable[[list[str]], None],
        report_progress: Callable[[str], None],
    ) -> Iterator[ShardResult]:
        """Run shards, given each session's arguments and the token for the gateway; yield each result as it arrives."""
        from ray.util.queue import Queue

        ray = self._ray
        own_node = ray.get_runtime_context().get_node_id()
        nearby = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(own_node, soft=False)
        # Keep the queue on this node, because the death of another node would lose the queue's cases.
        collector: Any = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": nearby})
        task = ray.remote(run_shard).options(num_cpus=self._cpus, max_retries=RETRIES)
        waiting = {
            task.remote(part, arguments, token, collector): part for part, arguments in arguments_by_part.items()
        }
        shards = write_count(len(waiting), "shard")
        while waiting:
            ended, _ = ray.wait(list(waiting), timeout=BETWEEN_LOOKS)
            receive_cases(collector.get_nowait_batch(collector.qsize()))
            for reference in ended:
                part = waiting.pop(reference)
                try:
                    result: ShardResult = ray.get(reference)
                except ray.exceptions.RayError as error:
                    raise RunError(f"shard {part} of {len(arguments_by_part)} could not be run: {error}") from error
                yield result
            done = f"{len(arguments_by_part) - len(waiting)} of {shards}"
            report_progress(f"{done} on {write_count(len(self._list_alive_nodes()), 'node')}")
        receive_cases(collector.get_nowait_batch(collector.qsize()))

    def close(self) -> None:
        """Disconnect from the cluster; end the cluster if this process started it."""
        self._ray.shutdown()


def _require_listener(address: str | None) -> None:
    """Check that an address accepts connections, because Ray itself would retry for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or "://" in host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise BackendUnavailable(f"--address {address}: no cluster can be reached there: {error}") from error
