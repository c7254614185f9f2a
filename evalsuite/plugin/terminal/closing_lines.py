"""What the terminal shows at the end: verdict, gates, and where the report is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from evalsuite.decisions.verdict import Status
from evalsuite.errors import for_terminal
from evalsuite.plugin.session.resume import flags_to_repeat
from evalsuite.reporting.markdown import decision_line
from evalsuite.results.runs import REPORT, interruption

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from evalsuite.decisions.verdict import Verdict
    from evalsuite.results.runs import RunFolder


MOST_ANNOTATIONS = 10
"""GitHub shows no more of one step."""


def lament(terminal: pytest.TerminalReporter, reason: str) -> None:
    """Says why there is no report."""
    terminal.section("evalsuite", sep="=", red=True)
    terminal.write_line(for_terminal(reason), red=True)
    terminal.write_line("what was kept until then stays: mend it, and go on with --resume last")
    terminal.write_line(f"{Status.INCOMPLETE.name.lower()}: no decision (exit status {Status.INCOMPLETE:d})")


def summarise(terminal: pytest.TerminalReporter, folder: RunFolder, verdict: Verdict, status: int) -> None:
    """Writes the section, with the status that the session ends with, which may be pytest's own."""
    good = verdict.status is Status.GOOD
    terminal.section("evalsuite", sep="=", **{"green" if good else "red": True})
    for decision in verdict.decisions:
        terminal.write_line(
            decision_line(decision), **{"green" if decision.verdict == "met" else "red": True}
        )
    for line in (*verdict.reasons, *verdict.remarks):
        terminal.write_line(for_terminal(line))
    aside = ", but other tests failed" if good and status == 1 else ""
    colour = {} if status == 0 else {"red": True}
    terminal.write_line(f"{verdict.headline}{aside} (exit status {status})", bold=True, **colour)
    terminal.write_line(f"report: {_from_here(folder.path / REPORT, terminal.config)}")
    info = folder.info()
    if interruption(info):
        again = f"--resume {folder.name}{flags_to_repeat(info.get('settings', {}))}"
        terminal.write_line(f"go on with it: {again}   (what was answered is not asked again)")
    annotate(terminal, verdict)


def annotate(terminal: pytest.TerminalReporter, verdict: Verdict) -> None:
    """On GitHub's CI, a line for each reason, which it shows beside the change.

    The form is that of GitHub's workflow commands, in which %, line ends and, in titles, colons are escaped.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for reason in verdict.reasons[:MOST_ANNOTATIONS]:
        text = reason.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        terminal.write_line(f"::error title=evalsuite - {verdict.headline.replace(':', '%3A')}::{text}")


def _from_here(path: Path, config: pytest.Config) -> Path:
    """The path as one would type it where pytest was started, if it is below."""
    here = config.invocation_params.dir
    return path.relative_to(here) if path.is_relative_to(here) else path
