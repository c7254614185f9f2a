"""The plugin's state in one process: settings, event loop, models and cases; made when a case first needs them."""

from __future__ import annotations

import atexit
import gc
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import pytest

from evalsuite.engine.checks import require_model_name
from evalsuite.plugin.items import get_case, get_solvable_case
from evalsuite.plugin.options import is_only_listing
from evalsuite.plugin.xdist import WorkerQueue, find_worker_queue, is_worker

if TYPE_CHECKING:
    from evalsuite.core.settings import Settings
    from evalsuite.decisions.quarantine import Quarantine
    from evalsuite.engine.cases import Case, ShardAssigner
    from evalsuite.engine.solving import Prefetcher, RunModels, SolvedCase, UpcomingCases
    from evalsuite.gateway.handle import CaseCallProvider
    from evalsuite.gateway.loop import BackgroundLoop
    from evalsuite.journal.planned import PlannedCase, RunPart


PART = "EVALSUITE_PART"
"""Environment variable with the folder of the run that a session continues; removed before other code inherits it."""
CONTINUED = pytest.StashKey[str | None]()


def find_continued_run(config: pytest.Config) -> str | None:
    """Return the folder of the run of which this session runs a later part; None if this session starts a run."""
    if CONTINUED not in config.stash:
        config.stash[CONTINUED] = os.environ.pop(PART, None)
    return config.stash[CONTINUED]


def can_run_in_parts(config: pytest.Config, settings: Settings) -> bool:
    """Tell whether a session can end after a part of the cases.

    This is impossible for a session that runs no case, needs the results of all cases, or selects single cases by id.
    """
    option = config.option
    needs_all = settings.can_end_early or any(
        getattr(option, name, False) for name in ("lf", "failedfirst", "stepwise", "stepwise_skip", "stepwise_reset")
    )
    needs_all = needs_all or (option.maxfail or 0) > 1  # Each session counts only its own failures.
    return not (needs_all or is_only_listing(config) or any("[" in arg.partition("::")[2] for arg in config.args))


@cache
def freeze_heap(*, in_worker: bool) -> None:
    """Exclude objects made before the first case (modules, pytest, items) from garbage collection, once per process.

    Traversing these objects again and again takes an eighth of the time of quick cases with eight workers.
    """
    gc.freeze()
    # A worker exits without garbage collection, to save time. All other processes unfreeze the objects, because
    # nanobind extensions (such as duckdb's) report objects that are never freed.
    atexit.register(gc.freeze if in_worker else gc.unfreeze)


@dataclass(eq=False, repr=False)
class CaseProcess:
    """A process that runs tests, with or without workers. The event loop and the models start with the first case."""

    settings: Settings
    model_name: str | None  # The model under test; without one, the installed default model, or None.
    quarantine: Quarantine | None  # Cases excluded from decisions until a date; None without a quarantine file.
    workers: int  # The number of processes that run cases.
    # Makes the event loop and the connection to the gateway.
    connect: Callable[[], tuple[BackgroundLoop, CaseCallProvider]]
    run_part: InitVar[RunPart | None]  # The part that this session runs; None if the session may not be divided.
    deselected: list[pytest.Item] = field(default_factory=list)  # Cases that the command line leaves out.
    # The number of cases of each benchmark before any selection, and how `--limit` chose the samples.
    collected: dict[str, dict[str, int | None]] = field(default_factory=dict)
    # The test function that first declares each benchmark, and whether its cases may be pooled.
    declaring_functions: dict[str, tuple[str, bool]] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)  # Node ids of the benchmarks' functions.
    stopping: str = ""  # Why this worker must end after the current case; empty if the worker continues.

    def __post_init__(self, run_part: RunPart | None) -> None:
        self.part = run_part.number if run_part else None
        # Whether the session also makes the cases that `-k` excludes, because their earlier records count.
        self.lists_all = run_part.lists_all if run_part else bool(self.settings.resume)
        self._assignment: ShardAssigner | None = None
        self._lock = threading.Lock()  # Use a lock, because test code may request a model in any thread.
        self._connection: tuple[BackgroundLoop, CaseCallProvider] | None = None
        # The queue of cases, made in the test thread when the first case begins.
        self._queue: UpcomingCases | WorkerQueue | None = None
        self._prefetcher: Prefetcher | None = None

    @property
    def shard_assigner(self) -> ShardAssigner:
        if self._assignment is None:
            from evalsuite.engine.cases import ShardAssigner

            self._assignment = ShardAssigner(self.settings.shard, self.part)
        return self._assignment

    def _get_connection(self) -> tuple[BackgroundLoop, CaseCallProvider]:
        """Return the event loop and the connection to the gateway; the thread that first needs them makes them."""
        with self._lock:
            if self._connection is None:
                self._connection = self.connect()
            return self._connection

    @property
    def background_loop(self) -> BackgroundLoop:
        return self._get_connection()[0]

    @property
    def models(self) -> RunModels:
        """The run's models, called through the gateway."""
        from evalsuite.engine.solving import RunModels

        _, asker = self._get_connection()
        return RunModels(asker, self.settings, require_model_name(self.model_name))

    def advance_to_item(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Advance the queue to the item; from the first case on, start solving as many cases as may be in flight."""
        if self._prefetcher is None and get_case(item) is not None:
            from evalsuite.engine.solving import Prefetcher, UpcomingCases, compute_window_size

            in_worker = is_worker(item.config)
            freeze_heap(in_worker=in_worker)
            # In a worker, xdist manages the queue.
            queue = (
                find_worker_queue(item.session)
                if in_worker
                else UpcomingCases({other: get_solvable_case(other) for other in item.session.items})
            )
            window = compute_window_size(self.settings, self.workers)
            self._queue, self._prefetcher = (queue, Prefetcher(self.background_loop, self.models, queue, window))
        if self._prefetcher is not None and self._queue is not None:
            self._queue.move_to(item, nextitem)
            self._prefetcher.begin_case(get_solvable_case(item))

    def wait_for_result(self, case: Case) -> SolvedCase:
        assert self._prefetcher is not None  # noqa: S101 - made when the first case began
        return self._prefetcher.wait_for_result(case)

    def make_planned_cases(self, items: Iterable[pytest.Item]) -> list[PlannedCase]:
        """Return the session's cases, including those that a resumed run leaves out."""
        every = [*((item, True) for item in items), *((item, False) for item in self.deselected)]
        return [
            case.make_plan_row(item.nodeid, self.settings, self.model_name or "", selected=selected)
            for item, selected in every
            if (case := get_case(item)) is not None
        ]

    def drop_cases(self) -> None:
        """Cancel the cases in flight, because their tests will not run."""
        if self._prefetcher is not None:
            self.background_loop.run(self._prefetcher.aclose())
            self._prefetcher = None

    def close(self) -> None:
        if self._connection is not None:
            self.background_loop.close()


PROCESS = pytest.StashKey[CaseProcess]()


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    """Record the cases that a resumed run leaves out, because their earlier records still count."""
    for item in items:
        process = item.config.stash.get(PROCESS, None)
        case = get_case(item)
        if process is not None and process.lists_all and case is not None and not case.placeholder:
            process.deselected.append(item)
