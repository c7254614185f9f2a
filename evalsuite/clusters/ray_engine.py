"""Run shards as tasks of Ray; if a node dies, Ray repeats its tasks on other nodes."""

from __future__ import annotations

import logging
import os
import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evalsuite.clusters.shard import ShardJob, ShardResult, run_shard
from evalsuite.core.errors import BackendUnavailable, RunError
from evalsuite.core.phrases import number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

RETRIES = 5  # Maximum number of times that a shard is run again after its node has died.
CONNECT = 10.0  # Seconds within which a cluster's address must accept a connection.
BETWEEN_LOOKS = 1.0  # Seconds between two polls for results.
LEFT_BEHIND = ["reports", "**/reports", ".git", ".venv", "**/__pycache__", "*.sqlite", "*.sqlite-*"]
"""Files that are not copied to the nodes."""


class RayCluster:
    """A connection to an existing cluster, or to a new cluster on this machine.

    Args:
        address: the cluster's address; None starts a new cluster, `auto` finds an existing one.
        packages: the packages to install on every node with pip; empty if the nodes have them already.
    """

    def __init__(self, address: str | None, root: Path, packages: Sequence[str], cpus: float) -> None:
        # Send no usage statistics from a test run.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Under `uv run`, Ray would start each worker with the same command in a copy of the suite, which lacks the
        # project. The workers would die, and the run would never end.
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        try:
            import ray
        except ImportError as error:
            raise BackendUnavailable("evalsuite ray needs Ray: pip install 'evalsuite[ray]'") from error
        # Ray's types are incomplete.
        self._ray: Any = ray
        self._cpus = cpus
        environment: dict[str, Any] = {"working_dir": str(root), "excludes": LEFT_BEHIND}
        if packages:
            _demand_installers()
            environment["pip"] = list(packages)
        _demand_listener(address)
        try:
            ray.init(
                # Without an address, Ray would use any cluster that it finds here, even one whose head has died.
                address=address or "local",
                runtime_env=environment,
                log_to_driver=False,
                logging_level=logging.WARNING,
                include_dashboard=None,
            )
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise BackendUnavailable(f"--address {address}: {error}") from error

    @property
    def is_on_one_host(self) -> bool:
        """Whether every node is on this host, so that its loopback can be reached."""
        own_address = self._ray.util.get_node_ip_address()
        return all(node["NodeManagerAddress"] == own_address for node in self._list_alive())

    def _list_alive(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    def nodes(self) -> int:
        return len(self._list_alive())

    def run(
        self, jobs: Sequence[ShardJob], receive: Callable[[list[str]], None], tell: Callable[[str], None]
    ) -> Iterator[ShardResult]:
        """Run shards; yield each result as it arrives."""
        ray = self._ray
        own_node = ray.get_runtime_context().get_node_id()
        nearby = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(own_node, soft=False)
        # The actor holds records of nodes that may die, so it runs on this node.
        collector = ray.remote(Collector).options(num_cpus=0, scheduling_strategy=nearby).remote()
        task = ray.remote(_run_task).options(num_cpus=self._cpus, max_retries=RETRIES)
        waiting = {task.remote(job, collector): job for job in jobs}
        while waiting:
            ended, _ = ray.wait(list(waiting), timeout=BETWEEN_LOOKS)
            receive(ray.get(collector.take.remote()))
            for reference in ended:
                job = waiting.pop(reference)
                yield self._result(reference, job)
            done = f"{len(jobs) - len(waiting)} of {number_of(len(jobs), 'shard')}"
            tell(f"{done} on {number_of(self.nodes(), 'node')}")
        receive(ray.get(collector.take.remote()))

    def _result(self, reference: Any, job: ShardJob) -> ShardResult:
        try:
            result: ShardResult = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            raise RunError(f"shard {job.part} of {job.parts} could not be run: {error}") from error
        return result

    def close(self) -> None:
        """Disconnect from the cluster; end it if this process started it."""
        self._ray.shutdown()


def _demand_listener(address: str | None) -> None:
    """Check that something listens at an address, because Ray itself tries for minutes before it gives up."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or "://" in host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise BackendUnavailable(f"--address {address}: no cluster can be reached there: {error}") from error


def _demand_installers() -> None:
    """Check that Ray can install packages, because without these tools it tries for minutes before it fails."""
    missing = [name for name in ("virtualenv", "pip") if find_spec(name) is None]
    if missing:
        raise BackendUnavailable(
            f"--pip: Ray needs {' and '.join(missing)} in this environment and on every node: pip install "
            "'evalsuite[ray]', or uv pip install virtualenv pip"
        )


class Collector:
    """A Ray actor that holds records from nodes until they are fetched."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def put(self, lines: list[str]) -> None:
        self._lines += lines

    def take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines


def _run_task(job: ShardJob, collector: Any) -> ShardResult:
    import ray

    def send(lines: list[str]) -> None:
        # Wait for each transfer, so that a slow network does not fill the memory.
        ray.get(collector.put.remote(lines))

    return run_shard(job, send)
