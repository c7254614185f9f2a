"""The hooks that a conftest.py, or any pytest plugin, may implement to watch a run and to add to its report.

All of them are called in the controlling process, so the conftest.py of the root directory is their place: with
-n, that process does not see those of other folders. An exception in an implementation is reported at the end
of the session; the run, its report and its exit status do not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from evalsuite.core.types import Record
    from evalsuite.decisions.verdict import Verdict
    from evalsuite.output.reports.section import Section
    from evalsuite.results.runs import Run


def pytest_evalsuite_record(record: Record, config: pytest.Config) -> None:
    """Called when a case has ended and its record is on disk.

    Args:
        record: all of it, the transcript included.
        config: of the session.
    """


def pytest_evalsuite_report(run: Run, verdict: Verdict, config: pytest.Config) -> Sequence[Section] | None:
    """Called while the run's report is being written.

    Args:
        run: its records, as tallies by benchmark; `run.read(case)` reads one whole record.
        verdict: of the gates and the baseline.
        config: of the session.

    Returns:
        Sections to add to report.md and to the tables of summary.json, or None.
    """


def pytest_evalsuite_verdict(verdict: Verdict, folder: Path, config: pytest.Config) -> None:
    """Called when the run is decided and everything is written.

    Args:
        verdict: with the exit status, the reasons and each gate's decision.
        folder: of the run, with report.md, summary.json and records.jsonl.
        config: of the session.
    """
