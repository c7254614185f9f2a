"""The plugin's state in one process: settings and, once a case needs them, loop, models and prefetch."""

from __future__ import annotations

import atexit
import gc
import threading
from functools import cache
from typing import TYPE_CHECKING

import pytest

from evalsuite.engine.deal import Deal
from evalsuite.plugin.marks import case_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.core.settings import Settings
    from evalsuite.decisions.quarantine import Quarantine
    from evalsuite.engine.prefetch import Models, Prefetcher, Solved
    from evalsuite.gateway.asker import CaseAsker
    from evalsuite.gateway.loop import BackgroundLoop
    from evalsuite.plugin.collection.cases import Case
    from evalsuite.plugin.run.upcoming import Upcoming


IN_ONE_BATCH = 50_000
"""Cases in flight at most where requests are sent together; as many as the largest batch holds."""


@cache
def _set_aside() -> None:
    """Exclude what exists before the first case (modules, pytest, items) from garbage collection; once per process.

    The collector would traverse it again and again: with eight workers, an eighth of a run of quick cases.
    """
    gc.freeze()
    # Extension modules made with nanobind, such as duckdb's, report objects that were never freed as leaks.
    atexit.register(gc.unfreeze)


class Process:
    """A process that runs tests: the only one, or a worker.

    Nothing is started before a case needs it.

    Args:
        settings: of the run.
        model: the model's name, with the default filled in; None where there is none.
        workers: how many processes run tests.
        background: makes or returns the event loop.
        connect: makes the connection to the gateway.
    """

    def __init__(
        self,
        settings: Settings,
        model: str | None,
        workers: int,
        background: Callable[[], BackgroundLoop],
        connect: Callable[[BackgroundLoop], CaseAsker],
    ) -> None:
        self.settings, self.model_name, self._workers = settings, model, workers
        self._background, self._connect = background, connect
        # Cases that decide nothing until a date; None if the run names no such file.
        self.quarantine: Quarantine | None = None
        self.session: pytest.Session | None = None
        self.deal = Deal(settings.shard)
        # Cases that the command line leaves out of a resumed run.
        self.deselected: list[pytest.Item] = []
        # Why this worker is to end after the current case.
        self.stopping = ""
        # Test code may ask for a model in any thread.
        self._lock = threading.Lock()
        self._loop: BackgroundLoop | None = None
        self._models: Models | None = None
        # The cases to come and those in flight, from the first case on; made in the thread that runs the tests.
        self._queue: Upcoming | None = None
        self._prefetcher: Prefetcher | None = None

    @property
    def background(self) -> BackgroundLoop:
        """This process's event loop; made once, whichever thread asks first."""
        with self._lock:
            if self._loop is None:
                self._loop = self._background()
            return self._loop

    @property
    def models(self) -> Models:
        """The models, reached through the gateway; made once, whichever thread asks first.

        Raises:
            SettingsError: no model was named and none is embedded.
        """
        from evalsuite.engine.model_check import demand_model
        from evalsuite.engine.prefetch import Models

        background, name = self.background, demand_model(self.model_name)
        with self._lock:
            if self._models is None:
                self._models = Models(self._connect(background), self.settings, name)
            return self._models

    def _make_prefetcher(self, queue: Upcoming) -> Prefetcher:
        from evalsuite.engine.prefetch import Prefetcher

        _set_aside()
        # Twice a process's share, so that connections do not stay idle when another process falls behind.
        share = -(-self.settings.max_connections // self._workers)
        window = min(self.settings.max_connections, 2 * share) if self._workers > 1 else share
        if self.settings.batch:
            window = IN_ONE_BATCH
        return Prefetcher(self.background, self.models, queue, window)

    def item_begins(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Moves the queue on and, from the first case on, fills the window."""
        self.session = item.session
        case = case_of(item)
        if case is not None and self._prefetcher is None:
            from evalsuite.plugin.run.upcoming import find_queue

            self._queue = find_queue(item.session)
            self._prefetcher = self._make_prefetcher(self._queue)
        if self._prefetcher is not None and self._queue is not None:
            self._queue.at(item, nextitem)
            self._prefetcher.begin(case if case is not None and case.bound.solver is not None else None)

    def result(self, case: Case) -> Solved:
        """Waits for the result of a case whose item has begun."""
        assert self._prefetcher is not None  # noqa: S101 - made when the first case began
        return self._prefetcher.result(case)

    def excuse(self, case: Case) -> str | None:
        """Why this case's missed threshold does not fail by itself, as a key of `outcomes.EXCUSES`."""
        from evalsuite.decisions.conditions import parse_gates

        name = case.bound.name
        if self.quarantine is not None and self.quarantine.entry_of(name, case.source.id):
            return "quarantine"
        if any(gate.covers(name) for gate in parse_gates(self.settings.gate)):
            return "gate"
        return "epochs" if case.bound.declaration.at_least else None

    def give_up(self) -> None:
        """Drops the cases in flight; their tests will not run."""
        if self._prefetcher is not None:
            self.background.run(self._prefetcher.aclose())
            self._prefetcher = None

    def close(self) -> None:
        """Ends the loop, if there is one."""
        if self._loop is not None:
            self._loop.close()


PROCESS = pytest.StashKey[Process]()
