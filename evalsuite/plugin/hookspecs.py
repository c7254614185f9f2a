"""The hooks that a conftest.py, or any pytest plugin, may implement to watch a run and to add to its report.

The controlling process calls all hooks of this module. Implement the hooks in the root directory's conftest.py, because
with -n the controlling process loads no other conftest.py. An exception in an implementation is reported at the end of
the session; the run, its report and its exit status do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from evalsuite.core.types import Record
    from evalsuite.decisions.verdict import Verdict
    from evalsuite.output.reports.section import Section
    from evalsuite.results.runs import Run


def pytest_evalsuite_record(record: Record, config: pytest.Config) -> None:
    """Called after a case has ended and its record was stored.

    Args:
        record: the whole record, including the transcript.
        config: the session's configuration.
    """


def pytest_evalsuite_report(run: Run, verdict: Verdict, config: pytest.Config) -> Sequence[Section] | None:
    """Called while the run's report is being written.

    Args:
        run: the run, with the counts and scores of each benchmark; `run.read(case)` reads one whole record.
        verdict: the decision of the gates and of the comparison with the baseline.
        config: the session's configuration.

    Returns:
        Sections to add to report.md and to the tables of summary.json, or None.
    """


def pytest_evalsuite_verdict(verdict: Verdict, folder: Path, config: pytest.Config) -> None:
    """Called at the end of a run, after the gates are decided and all files of the run are written.

    Args:
        verdict: the exit status, the reasons and each gate's decision.
        folder: the run's folder, with report.md, summary.json and records.jsonl.
        config: the session's configuration.
    """
