"""Receives the workers' requests and all reports in the controlling process, and creates the run's folder."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.declarations import list_benchmark_names, list_decorator_words
from evalsuite.core.errors import EvalsuiteError, RunError, describe_exception, escape_for_terminal, write_count
from evalsuite.engine.checks import check_callability
from evalsuite.engine.signals import install_signal_handlers
from evalsuite.models.choice import import_client
from evalsuite.plugin.items import RECORD, list_cases
from evalsuite.plugin.options import is_only_listing, is_verdict_expected, read_command_line_gates
from evalsuite.plugin.outcomes import add_baseline_answer_to_report
from evalsuite.plugin.process import PROCESS, freeze_heap
from evalsuite.plugin.pytest_internals import get_terminal_file
from evalsuite.plugin.xdist import connect_worker, is_worker, stop_distributing, stop_replacing_workers

if TYPE_CHECKING:
    from evalsuite.core.protocols import Benchmark
    from evalsuite.engine.open_run import ActiveRun
    from evalsuite.engine.preparation import RunSpec
    from evalsuite.journal.planned import PlannedCase, RunPart

INCOMPLETE = 12  # Copy of `Status.INCOMPLETE`, because importing `Status` would slow down sessions without cases.
PLAN = "plan "  # Prefix of a worker's message with the plan; all other messages are JSON objects.
NOT_COLLECTED: dict[str, int | None] = {"cases": 1, "samples": 0, "of": 0, "selected": 0}
RESUME_HINT = "; go on with --resume last (nothing is asked twice)"
ENDED = "evalsuite ended the session, for the reason given above"
"""The message that pytest prints; evalsuite's own lines give the reason."""


class ReportListener:
    """The plugin that receives reports of tests and stores the records of cases.

    Every session has such a plugin, which opens the run when the first case begins.

    Attributes:
        planned: the number of cases known so far.
        broken: why a report cannot be written; empty if nothing went wrong.
        ending: why evalsuite ended the session before the last test; empty if all tests ran.
        status: the session's exit status when the report was written; None before the report was written.
        handlers: the earlier signal handlers, to be restored.
        items: the names of the session's items, in their order.
        live: the benchmarks that this process has collected, by the node id of the test function.
    """

    def __init__(self, config: pytest.Config, spec: RunSpec) -> None:
        self._config, self.spec, self.settings = config, spec, spec.settings
        self.planned = self._uncollected = self._died_early = 0
        self.status: int | None = None
        self.broken = self.ending = ""
        self.handlers: dict[int, Any] = {}
        self.live: dict[str, Benchmark] = {}
        self._worker_plan: list[PlannedCase] | None = None  # The cases that a worker has collected.
        self._session: pytest.Session | None = None
        self._channels: list[Any] = []
        self.items: list[str] = []
        self._finished_plain_items: set[str] = set()  # Node ids of finished items that are not cases.
        self._failed_subtests: Counter[str] = Counter()  # By node id, since the item's last record.
        # For each case: the number of failed reports, and how many of these do not fail the session.
        self._failures: dict[str, tuple[int, int]] = {}
        # Workers' requests arrive in one thread per worker, while reports arrive in the main thread.
        self._opening = threading.Lock()
        self._run: ActiveRun | None = None
        self._failure: RunError | None = None

    @property
    def run(self) -> ActiveRun:
        """The run with its folder, journal and gateway, made by the first thread that needs the run."""
        with self._opening:
            if self._failure is not None:
                raise self._failure
            if self._run is None:
                try:
                    self._run = self._open_new_run()
                except (EvalsuiteError, OSError) as error:
                    self.broken = f"the run cannot begin: {describe_exception(error)}"
                    self._failure = RunError(self.broken)
                    raise self._failure from error
            return self._run

    def open_run(self) -> ActiveRun:
        """Return the run, which the main thread makes before the first case; end the session if it cannot be made."""
        try:
            return self.run
        except RunError as error:
            pytest.exit(f"evalsuite: {error}", INCOMPLETE)

    def _open_new_run(self) -> ActiveRun:
        from evalsuite.engine.open_run import ActiveRun
        from evalsuite.plugin.hookspecs import HookCaller

        plan, part, reports = self._worker_plan, self.spec.part, self.spec.reports_folder
        if plan is None:
            items = self._session.items if self._session is not None else []
            plan = self._config.stash[PROCESS].make_planned_cases(items)
        absent = self._list_gated_benchmarks() - {planned.benchmark for planned in plan}
        selection = {
            # Whether the command line selects only some cases: by -k, -m, --lf, a file or an id.
            "narrowed": _is_selecting_cases(self._config) or any(arg.endswith(".py") for arg in self._config.args),
            # Benchmarks in the ini file's gates that only test files outside of this session declare.
            "elsewhere": sorted(find_benchmarks_declared_elsewhere(absent, self._config, reports)) if absent else [],
            "collected": self._count_selected_cases(plan),
        }
        if part is not None and part.cases not in {0, self.case_count}:
            raise RunError(
                f"the suite has {self.case_count:,} cases, but had {part.cases:,} in the run's earlier parts; the next "
                "--resume begins with the first part again"
            )
        order: list[str] = []
        if self.settings.can_end_early:
            from evalsuite.decisions.early_stops import interleave_parts

            # Fix the order in which results count before the first call.
            awaited = [item for item in self.items if item not in self._finished_plain_items]
            order = interleave_parts(awaited, len(self._channels) or 1)
        hooks = HookCaller(self._config)
        run = ActiveRun(
            self.spec, plan, order, selection=selection, live=self.live, stop=self._stop_session, hooks=hooks
        )
        if self._worker_plan is not None:
            run.places.update(self._config.stash[PROCESS].functions)
            # Free the memory of the cases, because the journal stores them.
            self._worker_plan = []
        freeze_heap(in_worker=False)
        return run

    @property
    def case_count(self) -> int:
        """The number of cases in all parts."""
        return self._config.stash[PROCESS].shard_assigner.counted

    @property
    def is_in_parts(self) -> bool:
        """Whether this session runs a part of the run's cases."""
        return bool(self.spec.earlier or self.find_following_part())

    def find_following_part(self) -> RunPart | None:
        """Return the part after this session's part; None if this session runs the last cases."""
        from evalsuite.engine.cases import MOST_CASES

        part, cases = self.spec.part, self.case_count
        if part is None or cases <= part.number * MOST_CASES:
            return None
        return replace(part, number=part.number + 1, of=-(-cases // MOST_CASES), cases=cases)

    def _list_gated_benchmarks(self) -> set[str]:
        from evalsuite.decisions.gates import JUDGE, parse_gates

        asked = read_command_line_gates(self._config)
        gates = parse_gates(text for text in self.settings.gate if text not in asked)
        return {gate.benchmark for gate in gates} - {"*", JUDGE}

    def is_missing_gated_cases(self) -> bool:
        """Tell whether this session lacks the cases that a gate needs; only valid if the session has run no case.

        A gate of the command line always needs cases; a gate of the ini file needs them only in a session with a model.
        """
        if read_command_line_gates(self._config):
            return True
        if self.has_opened_run or self.settings.partial or not self.settings.model:
            return False
        gated = self._list_gated_benchmarks()
        return (
            bool(self._list_benchmarks_of_wildcard_gate())
            or find_benchmarks_declared_elsewhere(gated, self._config, self.spec.reports_folder) != gated
        )

    def _count_selected_cases(self, plan: Sequence[PlannedCase]) -> dict[str, dict[str, int | None]]:
        """Return how many cases of each benchmark were collected and selected.

        Count the selected cases of earlier parts, too. A declared benchmark without collected cases gets the entry
        `NOT_COLLECTED` (one unselected case), so that the benchmark's gate lacks data.
        """
        collected = self._config.stash[PROCESS].collected
        selected = Counter(planned.benchmark for planned in plan if planned.selected)
        selected.update({name: entry["selected"] for name, entry in self.spec.earlier.get("collected", {}).items()})
        picks = _is_selecting_cases(self._config) or not self.settings.shard
        lacking = dict.fromkeys(self._list_benchmarks_of_wildcard_gate() - collected.keys(), NOT_COLLECTED)
        return lacking | {
            name: {**entry, "selected": selected[name] if picks else entry["cases"]}
            for name, entry in collected.items()
        }

    def _list_benchmarks_of_wildcard_gate(self) -> set[str]:
        """List the benchmarks that this session's test files declare, if a gate is for all benchmarks (`*`)."""
        from evalsuite.decisions.gates import parse_gates

        covers_all = any(gate.benchmark == "*" for gate in parse_gates(self.settings.gate))
        if not covers_all or any("::" in arg for arg in self._config.args):
            return set()
        return {
            name
            for path in _list_selected_paths(self._config)
            for file in ([path] if path.is_file() else _list_test_files(path, self._config, self.spec.reports_folder))
            for name in list_benchmark_names(file)
        }

    @property
    def has_opened_run(self) -> bool:
        return self._run is not None

    @property
    def has_cases(self) -> bool:
        return bool(self.planned or self._worker_plan is not None)

    def count_failures(self) -> tuple[int, int]:
        """Count the failed reports of all cases, and those among them that a gate or the quarantine excuses."""
        failures = self._failures.values()
        return sum(failed for failed, _ in failures), sum(excused for _, excused in failures)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker, before it starts, the settings and a connection to the gateway."""
        from evalsuite.gateway.concealment import make_public_settings

        quarantine = self.spec.quarantine
        data = {
            # Send the settings without API keys and logins, because a worker may be on another host.
            "settings": json.dumps(make_public_settings(self.settings).plain()),
            "model": self.spec.model,
            "selection": dict(self.spec.selection),
            "part": asdict(self.spec.part) if self.spec.part else None,
            "quarantine": quarantine.encode() if quarantine else None,
            "unaskable": self.explain_uncallable_model(),
            # Request the plan from one worker only; if this worker dies before sending the plan, its replacement sends
            # the plan. Without a plan, no run is opened.
            "plan": self._worker_plan is None
            and all(other.isclosed() for other in self._channels)
            and not is_only_listing(self._config),
        }
        self._channels.append(connect_worker(node, data, self._receive_worker_message))

    def explain_uncallable_model(self) -> str:
        """Explain to workers why the model cannot be called; empty if it can be called."""
        try:
            check_callability(self.settings, self.spec.model)
        except EvalsuiteError as error:
            return str(error)
        return ""

    def import_model_client(self) -> None:
        """Import a named model's client while the workers start, because some case will probably need it."""
        if self.settings.model and not self.settings.replay:
            threading.Thread(target=import_client, args=(self.settings.model,), daemon=True).start()

    def _stop_session(self, reason: str) -> None:
        self.ending = reason = escape_for_terminal(reason)
        stop_distributing(self._config, ENDED)
        if self._session is not None:
            self._session.shouldstop = ENDED
        for channel in self._channels:
            self.run.get_channel_server(channel).stop_worker(reason)

    def _receive_worker_message(self, channel: Any, text: str | None) -> None:
        if text is not None and text.startswith(PLAN):
            process = self._config.stash[PROCESS]
            rows, process.collected, process.shard_assigner.counted, functions = json.loads(text.removeprefix(PLAN))
            process.functions.update(functions)
            from evalsuite.journal.planned import PlannedCase

            self._worker_plan = [PlannedCase(*row) for row in rows]
            self.planned = sum(planned.selected for planned in self._worker_plan)
            return
        if text is None and not self.has_opened_run:
            return
        try:
            self.run.get_channel_server(channel).receive_request(text)
        except RunError as error:
            # Opening the run can fail here only if no case was planned; otherwise, the main thread has opened it
            # before.
            from evalsuite.gateway.channel import refuse_request

            refuse_request(channel, text, error)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the record in a report; if the case's worker died, store an error record."""
        # Only pytest's reports of subtests have a context.
        self._failed_subtests[report.nodeid] += report.failed and hasattr(report, "context")
        if hasattr(report, RECORD) or str(report.when) == "???":
            try:
                self._store_reported_record(self.open_run(), report)
            except (EvalsuiteError, OSError) as error:
                # End the session, because further cases would be paid for without a record.
                self.broken = f"the records cannot be kept: {describe_exception(error)}"
                pytest.exit(f"evalsuite: {self.broken}", INCOMPLETE)
        elif report.when == "teardown" and self.settings.can_end_early:
            self._finished_plain_items.add(report.nodeid)
            if self.has_opened_run:
                self.run.early.add_result(report.nodeid, None)
        elif self.settings.baseline and self.has_opened_run and (report.failed or hasattr(report, "wasxfail")):
            add_baseline_answer_to_report(report, self.run.baseline)

    def _store_reported_record(self, run: ActiveRun, report: pytest.TestReport) -> None:
        case = report.nodeid
        sent, subtests = report.__dict__.pop(RECORD, None), self._failed_subtests.pop(case, 0)
        if sent is not None:
            from evalsuite.engine.case_record import StorableRecord

            *parts, failures = sent
            kept = StorableRecord(*parts)
            run.store_record(case, kept)
            benchmark: str | None = kept.benchmark
            # After failed subtests, pytest fails the test's own report, too, which a worker does not know yet. Other
            # failures that another plugin reports are not counted, because no gate excuses them.
            failures = subtests + max(failures, 1) if subtests else failures
        else:
            benchmark, failures = run.store_crash_record(case, str(report.longrepr)), 1
        # If a case ran several times, the last result counts.
        self._failures.pop(case, None)
        if failures and benchmark is not None:
            self._failures[case] = failures, failures if run.is_failure_excused(case, benchmark) else 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object) -> None:
        """Stop replacing workers that die while collecting.

        By default, xdist starts four replacements per worker before it ends the session. This method stops replacing
        them once as many replacements have died as there were workers at the start.
        """
        if error and not self.items:
            self._died_early += 1
            # The number of channels is the number of workers so far: the first workers and their replacements.
            if len(self._channels) < 2 * self._died_early:
                stop_replacing_workers(self._config)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Open the run after a worker has collected; from then on, a signal ends the run with a report."""
        self.items = ids
        if self._worker_plan is not None and self._uncollected:
            # After collection errors, stop before any case is paid for, as pytest does without workers; xdist would
            # continue.
            raise pytest.Session.Interrupted(f"{write_count(self._uncollected, 'error')} during collection")
        if self._worker_plan is not None and not self.has_opened_run:
            self._install_signal_handlers()
            self.open_run()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count the workers' collection errors, each of which xdist reports only once."""
        if report.failed and not self._config.option.continue_on_collection_errors:
            self._uncollected += 1

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._session = session
        self.planned = len(list_cases(session.items))
        self.items = [item.nodeid for item in session.items]
        if self.planned:
            self._install_signal_handlers()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Handle SIGINT from the start of a session with evalsuite's options, because the signal may arrive twice."""
        if self.settings.given:
            self._install_signal_handlers("SIGINT", hint="")

    def _install_signal_handlers(self, *names: str, hint: str = RESUME_HINT) -> None:
        try:
            # Use a copy of the file descriptor, because pytest redirects the original descriptor while a test runs.
            terminal = os.dup(get_terminal_file(self._config.pluginmanager.getplugin("terminalreporter")).fileno())
        except (AttributeError, OSError, ValueError):
            terminal = os.dup(2)  # Use standard error if pytest's output has no file descriptor.
        names = names or ("SIGINT", "SIGTERM", "SIGHUP")
        self.handlers |= install_signal_handlers(*names, end=pytest.exit, terminal=terminal, hint=hint)


def find_lowest_exit_status(config: pytest.Config) -> int:
    """Return the lowest exit status with which this session may end, even if a hook or a library ends the process."""
    listener = config.stash.get(LISTENER, None)
    if listener is not None and listener.status is not None:
        return listener.status
    return INCOMPLETE if is_verdict_expected(config) and not is_worker(config) else 0


def find_benchmarks_declared_elsewhere(names: set[str], config: pytest.Config, reports_folder: Path) -> set[str]:
    """Find the named benchmarks that are declared in test files outside of this session's paths."""
    collected = _list_selected_paths(config)
    found: set[str] = set()
    for file in _list_test_files(config.rootpath, config, reports_folder):
        if found == names:  # Parse no file of a session without gates.
            break
        if not any(file.is_relative_to(path) for path in collected):
            found |= names & list_decorator_words(file)
    return found


def _list_selected_paths(config: pytest.Config) -> list[Path]:
    return [Path(arg.partition("::")[0]).resolve() for arg in config.args]


def _list_test_files(root: Path, config: pytest.Config, reports_folder: Path) -> Iterator[Path]:
    """Yield a folder's test files as pytest finds them, except those in `reports_folder`."""
    pruned, patterns = config.getini("norecursedirs"), config.getini("python_files")
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = [
            name
            for name in folders
            if not any(fnmatch(name, pattern) for pattern in pruned)
            and not (here / name / "pyvenv.cfg").exists()
            and (here / name).resolve() != reports_folder.resolve()
        ]
        yield from ((here / name).resolve() for name in files if any(fnmatch(name, pattern) for pattern in patterns))


def _is_selecting_cases(config: pytest.Config) -> bool:
    option = config.option
    picked = option.keyword or option.markexpr or option.deselect or getattr(option, "lf", False)
    return bool(picked) or any("::" in arg for arg in config.args)


LISTENER: pytest.StashKey[ReportListener] = pytest.StashKey()
