"""The end of a session: report, exit status, the verdict on the terminal, and everything closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.core.counted_nouns import number_of
from evalsuite.core.errors import EvalsuiteError, in_words
from evalsuite.plugin.marks import LEFT_OUT
from evalsuite.plugin.session.listener import INCOMPLETE, LISTENER
from evalsuite.plugin.session.process_state import PROCESS
from evalsuite.plugin.session.signals import ended_by, restore

if TYPE_CHECKING:
    from evalsuite.plugin.session.controller import Controller


def conclude(session: pytest.Session) -> None:
    """Writes the report and sets the exit status."""
    config = session.config
    config.stash[PROCESS].give_up()
    listener = config.stash.get(LISTENER, None)
    # A gate on this command line waits for cases even if none ran, unless none was to run.
    waited_for = config.getoption("evalsuite_gate") and session.exitstatus != pytest.ExitCode.USAGE_ERROR
    if listener is None or not (listener.begun or listener.broken or waited_for):
        return
    if listener.broken:
        session.exitstatus = INCOMPLETE
        return
    controller = listener.open()
    stopped = False if controller.early.ended else session.shouldfail or session.shouldstop
    stopped = stopped or ended_by()
    if not (stopped or controller.early.ended) and session.exitstatus == pytest.ExitCode.INTERRUPTED:
        stopped = _not_collected(config) or "interrupted from the keyboard"
    try:
        controller.conclude(str(stopped) if stopped else None, listener.planned, session.testsfailed)
    except (EvalsuiteError, OSError) as error:
        listener.broken = f"the report cannot be written: {in_words(error)}"
        session.exitstatus = INCOMPLETE
        return
    session.exitstatus = listener.status = exit_status(session, controller, stopped=bool(stopped))
    # A detached session decides nothing yet, so nothing of it is reported as missed.
    if controller.report is not None and not controller.detached:
        from evalsuite.plugin.session.decision_reports import (
            remember_cases,
            report_decisions,
            spare_the_summary,
        )

        report_decisions(config, controller.report)
        remember_cases(config, controller.report.verdict, controller.below)
        spare_the_summary(config)
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if ended_by() and terminal is not None:
        # pytest leaves out its own summary if a signal ended the session.
        show_summary(terminal)


def _not_collected(config: pytest.Config) -> str:
    """What could not be collected, which ends a session like an interruption; empty if all could be."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    errors = terminal.stats.get("error", ()) if terminal is not None else ()
    failed = [report for report in errors if isinstance(report, pytest.CollectReport)]
    if not failed:
        return ""
    count = f"{len(failed)} errors" if len(failed) > 1 else "an error"
    reason = str(failed[0].longrepr).strip().splitlines() or [""]
    return f"{count} while collecting: {failed[0].nodeid}: {reason[-1].removeprefix('E ').strip()}"


def exit_status(session: pytest.Session, controller: Controller, *, stopped: bool) -> int:
    """Pytest's own status, unless the verdict says otherwise."""
    from evalsuite.decisions.verdict import Status

    verdict, own = controller.verdict, int(session.exitstatus)
    if controller.detached and own in {0, 1, pytest.ExitCode.INTERRUPTED}:
        return int(Status.DETACHED)
    if controller.early.ended and own == pytest.ExitCode.INTERRUPTED:
        # Stopping was the point.
        own = 1 if session.testsfailed else 0
    # The session may have ended itself: no call could succeed, as with a wrong key, or a gate's metric does not exist.
    given_up = controller.hopeless is not None and not ended_by()
    if given_up or (verdict is not None and verdict.faults):
        return INCOMPLETE
    if verdict is None or stopped or own not in {0, 1, 5}:
        return own
    if verdict.status >= 10:
        return int(verdict.status)
    if verdict.status is Status.FAILED:
        return int(Status.FAILED)
    # Errors within what a gate allows do not fail the session.
    only_covered = own == 1 and session.testsfailed <= controller.covered
    return 0 if only_covered else own


def show_summary(terminal: pytest.TerminalReporter) -> None:
    """Shows the verdict, or why there is none."""
    listener = terminal.config.stash.get(LISTENER, None)
    if listener is None:
        return
    _show_left_out(terminal)
    if listener.broken:
        from evalsuite.plugin.terminal.closing_lines import show_failure

        show_failure(terminal, listener.broken)
    elif listener.begun and listener.controller.verdict is not None:
        from evalsuite.plugin.terminal.closing_lines import summarise

        summarise(terminal, listener.controller.folder, listener.controller.verdict, listener.status)
        if listener.controller.aside:
            terminal.write_line(listener.controller.aside)


def _show_left_out(terminal: pytest.TerminalReporter) -> None:
    """Says in one line why benchmarks were skipped, and how to run them."""
    skipped = [
        report for report in terminal.stats.get("skipped", ()) if report.nodeid.endswith(f"[{LEFT_OUT}]")
    ]
    if skipped:
        *_, reason = skipped[0].longrepr
        count = number_of(len(skipped), "benchmark")
        terminal.write_line(f"evalsuite: {count} skipped: {str(reason).removeprefix('Skipped: ')}")


def stop(config: pytest.Config) -> None:
    """Closes what is open."""
    process = config.stash.get(PROCESS, None)
    if process is not None:
        process.give_up()
    listener = config.stash.get(LISTENER, None)
    if listener is None:
        if process is not None:
            process.close()
        return
    if listener.begun:
        listener.controller.close()
    restore(listener.handlers)
