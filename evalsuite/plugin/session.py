"""Runs this process's part of a session, from reading the options to setting the exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Sequence
from contextlib import nullcontext
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.declarations import is_run_folder, started_sessions
from evalsuite.core.errors import EvalsuiteError, describe_exception, write_count
from evalsuite.core.json_codec import dumps
from evalsuite.core.settings import restore_settings
from evalsuite.engine import signals
from evalsuite.engine.preparation import MODELS, format_command, prepare_run
from evalsuite.journal.planned import RunPart
from evalsuite.plugin import options
from evalsuite.plugin.collection import apply_selection, read_selection
from evalsuite.plugin.items import LEFT_OUT, MARK
from evalsuite.plugin.listener import INCOMPLETE, LISTENER, PLAN, ReportListener, find_lowest_exit_status
from evalsuite.plugin.outcomes import ReportTrimmer
from evalsuite.plugin.process import PROCESS, CaseProcess, can_run_in_parts, find_continued_run
from evalsuite.plugin.pytest_internals import guard_conftests, replace_text_in_failure, skip_conftests_of_data
from evalsuite.plugin.xdist import get_worker_data, has_workers, is_worker

if TYPE_CHECKING:
    from evalsuite.engine.open_run import ActiveRun
    from evalsuite.engine.preparation import RunSpec
    from evalsuite.gateway.handle import CaseCallProvider
    from evalsuite.gateway.loop import BackgroundLoop
    from evalsuite.results.run_folders import RunFolder


REPEATED = (
    "evalsuite: the code of solvers runs again; what it does outside, such as sending a mail, happens again, "
    "unless evalsuite.applications.effect marks it"
)


def guard_imports(manager: pytest.PytestPluginManager) -> None:
    """Keep pytest from importing a run's conftest.py, and imported code from ending the session with status 0."""
    config: Any = manager.get_plugin("pytestconfig")
    guard_conftests(manager, lambda: find_lowest_exit_status(config))
    skip_conftests_of_data(manager, lambda folder: any(map(is_run_folder, (folder, *folder.parents))))
    capture = manager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        config.add_cleanup(signals.intercept_exit(lambda: find_lowest_exit_status(config)))


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings, and set this process up as the controlling process or as a worker."""
    config.addinivalue_line("markers", f"{MARK}(declaration): a benchmark's test function, set by @benchmark")
    started_sessions.append(str(config.rootpath))
    config.pluginmanager.register(ReportTrimmer(config), "evalsuite-trimmer")
    if is_worker(config):
        _set_up_worker(config)
        return
    try:
        _set_up_controller(config)
    except EvalsuiteError as error:
        raise pytest.UsageError(str(error)) from error


def _set_up_controller(config: pytest.Config) -> None:
    options.refuse_unread_settings(config)
    runs = not options.is_only_listing(config)
    selection, settings = read_selection(config), options.read_config_settings(config)
    if continued := find_continued_run(config):
        settings = replace(settings, resume=continued)
    spec = prepare_run(
        settings,
        config.rootpath,
        format_command(config.invocation_params.args),
        selection,
        given_models={name for name in MODELS if config.getoption(f"evalsuite_{name}") is not None},
        runs_cases=runs,
    )
    options.refuse_run_folders(config, spec.selection["args"] if spec.selection != selection else ())
    apply_selection(config, spec.selection)
    spec = _add_run_part(config, spec)
    listener = ReportListener(config, spec)
    config.stash[LISTENER] = listener
    config.pluginmanager.register(listener, "evalsuite-listener")
    if has_workers(config) and runs:
        listener.import_model_client()

    def open_gateway() -> tuple[BackgroundLoop, CaseCallProvider]:
        run = listener.open_run()
        return run.background, run.gateway

    config.stash[PROCESS] = CaseProcess(spec.settings, spec.model, spec.quarantine, 1, open_gateway, spec.part)


def _add_run_part(config: pytest.Config, spec: RunSpec) -> RunSpec:
    """Add to a run's specification the part that this session runs.

    A resumed run begins with its first part again, because the suite's code may have changed.
    """
    if not can_run_in_parts(config, spec.settings):
        return spec
    if not (continued := find_continued_run(config)):
        return replace(spec, part=RunPart(lists_all=bool(spec.settings.resume)))
    from evalsuite.results.run_folders import RunFolder

    earlier = RunFolder(Path(continued)).info()
    return replace(spec, part=RunPart(**earlier["next_part"]), earlier=earlier)


def _set_up_worker(config: pytest.Config) -> None:
    data, channel, workers = get_worker_data(config)
    quarantine = None
    if data["quarantine"]:
        from evalsuite.decisions.quarantine import decode_quarantine

        quarantine = decode_quarantine(data["quarantine"])

    def stop_worker(reason: str) -> None:
        config.stash[PROCESS].stopping = reason

    def connect_to_gateway() -> tuple[BackgroundLoop, CaseCallProvider]:
        from evalsuite.gateway.channel import GatewayProxy
        from evalsuite.gateway.loop import BackgroundLoop

        background = BackgroundLoop()
        return background, GatewayProxy(channel, background, stop_worker)

    settings = restore_settings(json.loads(data["settings"]))
    part = RunPart(**data["part"]) if data["part"] else None
    config.stash[PROCESS] = CaseProcess(settings, data["model"], quarantine, workers, connect_to_gateway, part)
    apply_selection(config, data["selection"])
    # Handle SIGINT, to distinguish the user's Ctrl-C from a KeyboardInterrupt that a scorer raises.
    signals.install_signal_handlers("SIGINT", end=pytest.exit, terminal=None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Send a worker's plan to the controlling process, if that process requested the plan from this worker."""
    if not is_worker(session.config):
        return
    data, channel, _ = get_worker_data(session.config)
    if data["plan"]:
        process = session.config.stash[PROCESS]
        plan, counted = process.make_planned_cases(session.items), process.shard_assigner.counted
        if plan or counted:
            rows = [astuple(planned) for planned in plan]
            channel.send(PLAN + dumps([rows, process.collected, counted, sorted(process.functions)]))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return lines for pytest's header: the models and, if a run is resumed or replayed, a warning about solvers' code.

    The list is empty if no setting of evalsuite was given.
    """
    process = config.stash[PROCESS]
    if not process.settings.given:
        return []
    asked = {"model": process.model_name, "judge": process.settings.judge_model, "user": process.settings.user_model}
    models = f"evalsuite: {', '.join(f'{role} {name}' for role, name in asked.items() if name) or 'no model'}"
    again = (process.settings.replay or process.settings.resume) and not find_continued_run(config)
    return [models, REPEATED] if again else [models]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the report and set the exit status."""
    config = session.config
    config.stash[PROCESS].drop_cases()
    listener = config.stash.get(LISTENER, None)
    if listener is None:
        return
    is_part = listener.is_in_parts and int(session.exitstatus) in {0, 1, 5}
    runs_tests = not options.is_only_listing(config) and session.exitstatus != pytest.ExitCode.USAGE_ERROR
    needs_report = listener.has_opened_run or listener.broken or is_part
    if not (needs_report or (runs_tests and listener.is_missing_gated_cases())):
        listener.status = 0  # Hooks may change the exit status of a session without cases.
        return
    listener.status = INCOMPLETE
    if listener.broken:
        session.exitstatus = INCOMPLETE
        return
    run = listener.open_run()
    stopped = _describe_interruption(session, run, listener.ending)
    try:
        other_failures = max(0, session.testsfailed - listener.count_failures()[0])
        following = listener.find_following_part()
        if following and int(session.exitstatus) not in {0, 1, 5}:
            stopped = stopped or f"a part of the run ended with status {int(session.exitstatus)}"
        if following and not (stopped or run.hopeless or run.detached):
            run.finish_part(following, other_failures)
            # Leave the listener's status INCOMPLETE: if other code ends this process now, the run has no verdict.
            session.exitstatus = 0
            return
        run.finish_run(stopped, listener.planned, other_failures)
    except (EvalsuiteError, OSError) as error:
        listener.broken = f"the report cannot be written: {describe_exception(error)}"
        session.exitstatus = INCOMPLETE
        return
    session.exitstatus = listener.status = _choose_exit_status(session, listener, run, is_stopped=bool(stopped))
    # While batches are unanswered, do not report gates as missed, because no gate is decided yet.
    if not run.detached:
        from evalsuite.plugin.terminal import report_decisions

        report_decisions(config, run)
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if run.hopeless is not None and terminal is not None:
        _shorten_repeated_reason(terminal, listener.ending)
    if signals.describe_ending_signal() and terminal is not None:
        # Show the summary now, because pytest omits its summary hook if a signal ended the session.
        pytest_terminal_summary(terminal)


def _describe_interruption(session: pytest.Session, run: ActiveRun, ending: str) -> str | None:
    """Explain why the session was interrupted; None if all tests ran, or if all gates were decided early."""
    stopped = False if run.early.has_ended else ending or session.shouldfail or session.shouldstop
    stopped = stopped or signals.describe_ending_signal()
    if not (stopped or run.early.has_ended) and session.exitstatus == pytest.ExitCode.INTERRUPTED:
        stopped = _describe_collection_errors(session.config) or "interrupted from the keyboard"
    return str(stopped) if stopped else None


def _shorten_repeated_reason(terminal: pytest.TerminalReporter, reason: str) -> None:
    """Shorten the reason for the session's end in each case's failure, because the summary states the whole reason."""
    for outcome in ("error", "failed"):
        for report in terminal.stats.get(outcome, ()):
            replace_text_in_failure(report.longrepr, reason, "stopped the run")


def _describe_collection_errors(config: pytest.Config) -> str:
    """Describe collection errors, which end a session as an interruption does; empty if there were none."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    errors: Sequence[object] = terminal.stats.get("error", ()) if terminal is not None else ()
    failed = [report for report in errors if isinstance(report, pytest.CollectReport)]
    if not failed:
        return ""
    count = f"{len(failed)} errors" if len(failed) > 1 else "an error"
    reason = str(failed[0].longrepr).strip().splitlines() or [""]
    return f"{count} while collecting: {failed[0].nodeid}: {reason[-1].removeprefix('E ').strip()}"


def _choose_exit_status(session: pytest.Session, listener: ReportListener, run: ActiveRun, *, is_stopped: bool) -> int:
    from evalsuite.decisions.verdict import Status

    status, own = run.status, int(session.exitstatus)
    if own == pytest.ExitCode.NO_TESTS_COLLECTED and run.report is not None and run.report.run.benchmarks:
        own = 0 if listener.is_in_parts else own
    if run.detached and own in {0, 1, pytest.ExitCode.INTERRUPTED}:
        return int(Status.DETACHED)
    if run.early.has_ended and own == pytest.ExitCode.INTERRUPTED:
        # Report no interruption if the session ended early because all gates were decided.
        own = 1 if session.testsfailed else 0
    # evalsuite ends the session if no call can succeed (as with a wrong key) or if a gate's metric does not exist.
    is_given_up = run.hopeless is not None and not signals.describe_ending_signal()
    if is_given_up or (run.report is not None and run.report.verdict.faults):
        return INCOMPLETE
    if status is None or is_stopped or own not in {0, 1, 5}:
        return own
    if status >= Status.GATE_MISSED or status is Status.FAILED:
        return int(status)
    # If all failed reports are excused by a gate or the quarantine, the session passes.
    only_covered = own == 1 and session.testsfailed <= listener.count_failures()[1]
    return 0 if only_covered else own


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the verdict, or the reason why the verdict is missing; with --plan, show the plan."""
    terminal = terminalreporter
    listener = terminal.config.stash.get(LISTENER, None)
    if listener is not None:
        skipped = [report for report in terminal.stats.get("skipped", ()) if report.nodeid.endswith(f"[{LEFT_OUT}]")]
        if skipped:
            *_, reason = skipped[0].longrepr
            count = write_count(len(skipped), "benchmark")
            terminal.write_line(f"evalsuite: {count} skipped: {str(reason).removeprefix('Skipped: ')}")
    if listener is not None and (listener.has_opened_run or listener.broken):
        from evalsuite.plugin.terminal import show_verdict, show_why_report_is_missing

        if listener.broken:
            show_why_report_is_missing(terminal, listener.broken)
        elif listener.run.report is not None:
            show_verdict(terminal, listener.run, listener.run.report.verdict, listener.status or 0)
        elif listener.run.continuation:
            for line in (listener.run.continuation, *listener.run.aside.splitlines()):
                terminal.write_line(f"evalsuite: {line}")
    process = terminal.config.stash.get(PROCESS, None)
    if process is not None and process.settings.plan:
        from evalsuite.plugin.terminal import show_plan

        show_plan(terminal, process)


def find_run_to_continue(config: pytest.Config) -> RunFolder | None:
    """Return the run to continue in this process; None if no part follows, or if a parent process continues the run."""
    return config.stash[LISTENER].run.folder if _has_ended_part(config) and not find_continued_run(config) else None


def _has_ended_part(config: pytest.Config) -> bool:
    listener = config.stash.get(LISTENER, None)
    return listener is not None and listener.has_opened_run and bool(listener.run.continuation)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> Generator[None, object, object]:
    """Restore a failing exit status that a hook of a conftest or plugin has changed, and release all resources.

    A hook may set `session.exitstatus`, or end the session before the report by `pytest.exit` or `sys.exit`.
    """
    try:
        return (yield)
    finally:
        session, ending = config.pluginmanager.get_plugin("session"), sys.exception()
        if session is not None and (least := find_lowest_exit_status(config)):
            if session.exitstatus == 0 and not _has_ended_part(config):
                session.exitstatus = least
            if isinstance(ending, SystemExit):
                ending.code = ending.code or least
        _release_resources(config)


def _release_resources(config: pytest.Config) -> None:
    """Cancel the cases in flight, close open resources, and restore the signal handlers."""
    process = config.stash.get(PROCESS, None)
    if process is not None:
        process.drop_cases()
    listener = config.stash.get(LISTENER, None)
    if listener is None:
        if process is not None:
            process.close()
        return
    if listener.has_opened_run:
        listener.run.close()
    signals.restore_signal_handlers(listener.handlers)
