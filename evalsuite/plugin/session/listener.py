"""The controlling process's ear for workers and reports."""

from __future__ import annotations

import functools
import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.counted_nouns import number_of
from evalsuite.core.errors import EvalsuiteError, RunError, for_terminal, in_words
from evalsuite.plugin.collection.selection import count_cases, is_asked_for, is_narrowed
from evalsuite.plugin.marks import RECORD
from evalsuite.plugin.session.plan import PLAN, plan_of
from evalsuite.plugin.session.process_state import PROCESS
from evalsuite.plugin.session.signals import HANDLERS, listen

if TYPE_CHECKING:
    from evalsuite.core.protocols import Benchmark
    from evalsuite.core.settings import Settings
    from evalsuite.decisions.quarantine import Quarantine
    from evalsuite.journal.lease import Lease
    from evalsuite.journal.planned import PlannedCase
    from evalsuite.plugin.session.controller import Controller

INCOMPLETE = 12
"""As `Status.INCOMPLETE`, whose module is too heavy for a session without cases."""


class Listener:
    """Hears workers and reports. Light, since every session has one; makes a `Controller` when it is needed.

    Args:
        config: of the session.
        settings: of the run.
        selection: which tests the command line asks for.
    """

    def __init__(self, config: pytest.Config, settings: Settings, selection: dict[str, Any]) -> None:
        self._config, self.settings, self.selection = config, settings, selection
        self.model = settings.model
        if self.model is None:
            from evalsuite.engine.model_check import default_model

            self.model = default_model()
        self.planned = 0
        self._uncollected = 0
        # Why there is no report, if something went wrong.
        self.broken = ""
        self.status = 0
        self.handlers: dict[int, Any] = {}
        # On the run that is resumed.
        self.lease: Lease | None = None
        # Cases that decide nothing until a date.
        self.quarantine: Quarantine | None = None
        self._told: str | None = None
        self._session: pytest.Session | None = None
        self._channels: list[Any] = []
        self._items: list[str] = []
        # Items that are not cases and have finished.
        self._passed_over: set[str] = set()
        # The benchmarks that this process has collected, by the node id of the test function.
        self.live: dict[str, Benchmark] = {}
        # Workers' requests arrive in one thread per worker, while reports arrive in the main thread.
        self._opening = threading.Lock()
        self._controller: Controller | None = None
        self._failure: RunError | None = None

    @property
    def controller(self) -> Controller:
        """The controlling process with the run's folder, journal and gateway; made once, whichever thread asks first.

        Raises:
            RunError: it cannot be made; every later call raises the same.
        """
        with self._opening:
            if self._failure is not None:
                raise self._failure
            if self._controller is None:
                try:
                    self._controller = self._make_controller()
                except (EvalsuiteError, OSError) as error:
                    self.broken = f"the run cannot begin: {in_words(error)}"
                    self._failure = RunError(self.broken)
                    raise self._failure from error
            return self._controller

    def open(self) -> Controller:
        """Gives the controlling process to the main thread, before the first case runs, or ends the session.

        Raises:
            pytest.exit.Exception: the run cannot begin, so that its cases would be paid for in vain.
        """
        try:
            return self.controller
        except RunError as error:
            pytest.exit(f"evalsuite: {error}", INCOMPLETE)

    def _make_controller(self) -> Controller:
        from evalsuite.plugin.session.controller import Controller
        from evalsuite.plugin.session.provenance import command_line
        from evalsuite.plugin.session.watchers import Watchers

        controller = Controller(
            self.settings,
            self.model,
            self._config.rootpath,
            command_line(self._config.invocation_params.args),
            self.selection,
            narrowed=is_narrowed(self._config),
            stop=self._stop,
            live=self.live,
            watchers=Watchers(self._config),
            cases=self._plan(),
            lease=self.lease,
            quarantine=self.quarantine,
        )
        controller.early.plan(self._order(), controller.planned)
        return controller

    def _order(self) -> list[str]:
        """The order in which results are heard if the run may stop early; fixed before anything is asked."""
        if not self.settings.may_end_early:
            return []
        from evalsuite.decisions.planned_order import dealt

        waited_for = [item for item in self._items if item not in self._passed_over]
        return dealt(waited_for, len(self._channels) or 1)

    def _plan(self) -> list[PlannedCase]:
        """This session's cases, as sent by a worker or as collected by this process."""
        if self._told is not None:
            from evalsuite.journal.planned import decode_plan

            return decode_plan(json.loads(self._told))
        return plan_of(self._session) if self._session is not None else []

    @property
    def begun(self) -> bool:
        """Whether any case asked a model or left a record."""
        return self._controller is not None

    @property
    def has_cases(self) -> bool:
        """Whether this session has any case, as far as is known yet."""
        return bool(self.planned or self._told is not None)

    def attach(self, node: Any) -> None:
        """Gives a worker, before it starts, the settings and a connection to the gateway."""
        from evalsuite.gateway.concealment import public_settings

        channel = node.gateway.newchannel()
        node.workerinput["evalsuite"] = {
            # A worker may be on another host: keys and logins stay here.
            "settings": json.dumps(public_settings(self.settings).plain()),
            "model": self.model,
            "selection": self.selection,
            "quarantine": self.quarantine.plain() if self.quarantine else None,
            "unaskable": self._why_unaskable(),
            # One worker is enough; if it dies first, its replacement is asked.
            "plan": self._told is None and all(other.isclosed() for other in self._channels),
        }
        node.workerinput["evalsuite_channel"] = channel
        self._channels.append(channel)
        channel.setcallback(functools.partial(self._hear_worker, channel), endmarker=None)

    def _why_unaskable(self) -> str:
        """Why workers skip all cases; empty if the model can be asked, or if the command line asks for cases."""
        from evalsuite.engine.model_check import why_unaskable
        from evalsuite.models.choice import runs_other_code

        elsewhere = self.settings.gateway or self.settings.replay or runs_other_code(self.model or "")
        if elsewhere or is_asked_for(self._config):
            return ""
        return why_unaskable(replace(self.settings, model=self.model), with_key=True)

    def import_client(self) -> None:
        """Imports the client while the workers start, if a model is named and so some case will probably ask."""
        if self.settings.model and not self.settings.replay:
            from evalsuite.models.choice import import_client

            threading.Thread(target=import_client, args=(self.settings.model,), daemon=True).start()

    def _stop(self, reason: str) -> None:
        reason = for_terminal(reason)
        _stop_session(self._config, reason)
        for channel in self._channels:
            self.controller.asked.stop_worker(channel, reason)

    def _hear_worker(self, channel: Any, text: str | None) -> None:
        if text is not None and text.startswith(PLAN):
            self._told = text.removeprefix(PLAN)
            return
        if text is None and not self.begun:
            return
        try:
            self.controller.asked.hear_worker(channel, text)
        except RunError as error:
            # Only where no case was planned: otherwise the main thread has opened the run before.
            from evalsuite.gateway.channel import refuse

            refuse(channel, text, error)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the record attached to the report, or makes the one that a dead worker cannot send."""
        if hasattr(report, RECORD) or str(report.when) == "???":
            try:
                self.open().hear(report)
            except (EvalsuiteError, OSError) as error:
                # Cases whose records cannot be kept would be paid for in vain.
                self.broken = f"the records cannot be kept: {in_words(error)}"
                pytest.exit(f"evalsuite: {self.broken}", INCOMPLETE)
        elif report.when == "teardown" and self.settings.may_end_early:
            self._passed_over.add(report.nodeid)
            if self.begun:
                self.controller.early.hear(report.nodeid, None)
        elif self.settings.baseline and self.begun and (report.failed or hasattr(report, "wasxfail")):
            self.controller.recall(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Takes over from a worker how many cases there were."""
        output = getattr(node, "workeroutput", {})
        self.planned = max(self.planned, output.get("evalsuite_planned", 0))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """From here on, a signal must not cost the report, since the workers know their cases.

        Raises:
            pytest.Session.Interrupted: there are cases, and a file of the suite could not be collected.
        """
        self._items = ids
        if self._told is not None and self._uncollected:
            # As pytest does without workers, before any case is paid for; xdist by itself would go on.
            raise pytest.Session.Interrupted(f"{number_of(self._uncollected, 'error')} during collection")
        if self._told is not None and not self.handlers:
            self.handlers = listen(*HANDLERS)
            self.open()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Counts what workers could not collect; xdist shows each failure once."""
        if report.failed and not self._config.option.continue_on_collection_errors:
            self._uncollected += 1

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Counts the cases of a session without workers."""
        self._session = session
        self.planned = count_cases(session.items)
        self._items = [item.nodeid for item in session.items]
        if self.planned:
            self.handlers = listen(*HANDLERS)


def _stop_session(config: pytest.Config, reason: str) -> None:
    """Ends the session after the current test; xdist has its own flag for that."""
    distributing = config.pluginmanager.get_plugin("dsession")
    if distributing is not None:
        distributing.shouldstop = reason
    session = config.stash[PROCESS].session
    if session is not None:
        session.shouldstop = reason


LISTENER: pytest.StashKey[Listener] = pytest.StashKey()
