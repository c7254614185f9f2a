"""What the terminal shows at the end: verdict, gates, and where the report is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.reporting.markdown import decision_line
from evalsuite.reporting.runs import REPORT
from evalsuite.reporting.verdict import Status

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from evalsuite.reporting.runs import RunFolder
    from evalsuite.reporting.verdict import Verdict


def summarise(terminal: pytest.TerminalReporter, folder: RunFolder, verdict: Verdict) -> None:
    """Writes the section."""
    good = verdict.status is Status.GOOD
    terminal.section("evalsuite", sep="=", **{"green" if good else "red": True})
    for decision in verdict.decisions:
        terminal.write_line(
            decision_line(decision), **{"green" if decision.verdict == "met" else "red": True}
        )
    for line in (*verdict.reasons, *verdict.remarks):
        terminal.write_line(line)
    terminal.write_line(f"{verdict.headline} (exit status {int(verdict.status)})", bold=True)
    terminal.write_line(f"report: {_from_here(folder.path / REPORT, terminal.config)}")


def _from_here(path: Path, config: pytest.Config) -> Path:
    """The path as one would type it where pytest was started, if it is below."""
    here = config.invocation_params.dir
    return path.relative_to(here) if path.is_relative_to(here) else path
