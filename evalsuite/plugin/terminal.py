"""The last lines of a session on the terminal: gates, verdict, the report's place, and annotations for GitHub."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from evalsuite.core.errors import for_terminal
from evalsuite.decisions.verdict import Status
from evalsuite.engine.preparation import options_to_repeat
from evalsuite.output.page.write import PAGE
from evalsuite.output.reports.markdown import decision_line
from evalsuite.plugin.outcomes import block_of
from evalsuite.results.run_folders import REPORT, interruption

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from evalsuite.decisions.verdict import Verdict
    from evalsuite.engine.open_run import OpenRun
    from evalsuite.results.run_folders import RunFolder


MOST_ANNOTATIONS = 10
"""GitHub shows no more of one step."""

OUTCOMES = (("failed", "below threshold"), ("error", "error"), ("xfailed", "below threshold"))
"""pytest's names of outcomes and their descriptions; cases that a gate excuses come last."""

MOST_REASONS = 5
"""Annotations of reasons that come before those of cases."""


def show_broken(terminal: pytest.TerminalReporter, reason: str) -> None:
    """Show why a report is missing."""
    terminal.section("evalsuite", sep="=", red=True)
    terminal.write_line(for_terminal(reason), red=True)
    terminal.write_line("nothing kept so far is lost: fix this, then continue with --resume last")
    terminal.write_line(f"{Status.INCOMPLETE.name.lower()}: no decision (exit status {Status.INCOMPLETE:d})")


def show_verdict(terminal: pytest.TerminalReporter, run: OpenRun, verdict: Verdict, status: int) -> None:
    """Show the verdict and the status with which the session ends, which may be pytest's own."""
    folder = run.folder
    if status == Status.DETACHED:
        _show_detached(terminal, folder)
        return
    good = verdict.status is Status.GOOD
    terminal.section("evalsuite", sep="=", **{"green" if good else "red": True})
    for line in verdict.faults:
        terminal.write_line(for_terminal(line), red=True)
    for decision in verdict.decisions:
        terminal.write_line(
            decision_line(decision), **{"green" if decision.verdict == "met" else "red": True}
        )
    for line in (*verdict.reasons[len(verdict.faults) :], *verdict.remarks):
        terminal.write_line(for_terminal(line))
    colour = {} if status == 0 else {"red": True}
    terminal.write_line(f"{verdict.headline} (exit status {status})", bold=True, **colour)
    _name_reports(terminal, folder.path)
    _show_resumption(terminal, folder)
    _annotate(terminal, verdict)
    if run.aside:
        terminal.write_line(run.aside)


def _show_detached(terminal: pytest.TerminalReporter, folder: RunFolder) -> None:
    # Nothing is decided yet, so nothing is red.
    terminal.section("evalsuite", sep="=", yellow=True)
    terminal.write_line(for_terminal(interruption(folder.info()) or "not finished yet"))
    terminal.write_line(f"nothing is decided yet (exit status {Status.DETACHED:d})", bold=True)
    _show_resumption(terminal, folder)


def _show_resumption(terminal: pytest.TerminalReporter, folder: RunFolder) -> None:
    """Show how to continue a run that did not come to its end."""
    info = folder.info()
    if interruption(info):
        again = f"--resume {folder.name}{options_to_repeat(info.get('settings', {}))}"
        terminal.write_line(f"go on with it: {again}   (what was answered is not asked again)")


def _annotate(terminal: pytest.TerminalReporter, verdict: Verdict) -> None:
    """Write a line per reason and failed case, which GitHub's CI shows beside the change."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    reasons = [_annotation(f"evalsuite - {verdict.headline}", reason) for reason in verdict.reasons]
    cases = () if verdict.status is Status.GOOD else _case_annotations(terminal)
    for line in (*reasons[:MOST_REASONS], *cases, *reasons[MOST_REASONS:])[:MOST_ANNOTATIONS]:
        terminal.write_line(line)


def _case_annotations(terminal: pytest.TerminalReporter) -> Iterator[str]:
    # The blocks of cases that failed, at the lines of their tests.
    for outcome, words in OUTCOMES:
        for report in terminal.stats.get(outcome, ()):
            block = block_of(report)
            if block:
                file, line, name = report.location
                yield _annotation(f"{name} - {words}", block, file=file, line=(line or 0) + 1)


def _annotation(title: str, text: str, **place: object) -> str:
    # A workflow command, in which %, line ends and, among its properties, colons and commas are escaped.
    properties = {**place, "title": title}
    shown = ",".join(f"{name}={_escape(str(value), ':,')}" for name, value in properties.items())
    return f"::error {shown}::{_escape(text)}"


def _escape(text: str, further: str = "") -> str:
    codes = {sign: f"%{ord(sign):02X}" for sign in f"%\r\n{further}"}
    return "".join(codes.get(sign, sign) for sign in text)


def _name_reports(terminal: pytest.TerminalReporter, folder: Path) -> None:
    """Name the report and its page, which a terminal with colours shows as a link (OSC 8)."""
    terminal.write_line(f"report: {_from_here(folder / REPORT, terminal.config)}")
    page = folder / PAGE
    if page.is_file():
        shown = str(_from_here(page, terminal.config))
        link = f"\x1b]8;;{page.resolve().as_uri()}\x1b\\{shown}\x1b]8;;\x1b\\"
        terminal.write_line(f"page: {link if terminal.hasmarkup else shown}")


def _from_here(path: Path, config: pytest.Config) -> Path:
    """Shorten a path below the folder in which pytest was started to what one would type there."""
    start = config.invocation_params.dir
    return path.relative_to(start) if path.is_relative_to(start) else path
