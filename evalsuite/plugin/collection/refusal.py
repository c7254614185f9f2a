"""Stops a run after collection, before its first case, with one message about what the user has to change."""

from __future__ import annotations

import pytest


def refuse(session: pytest.Session, items: list[pytest.Item], problem: str) -> None:
    """Ends the run; nothing is asked.

    Raises:
        pytest.UsageError: with the problem. A worker, whose usage errors xdist does not pass on, reports an error
            of collection instead, and xdist shows the same text of several workers once.
    """
    if not hasattr(session.config, "workerinput"):
        raise pytest.UsageError(problem)
    items.clear()
    session.ihook.pytest_collectreport(report=pytest.CollectReport("", "failed", problem, []))
