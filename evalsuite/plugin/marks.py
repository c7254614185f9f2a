"""The names under which pytest's objects carry evalsuite's. Light to import, since every session loads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.core.declarations import MARK

if TYPE_CHECKING:
    from evalsuite.plugin.collection.cases import Case
    from evalsuite.plugin.run.outcomes import Findings

__all__ = [
    "FINDINGS",
    "FIXTURE",
    "LEFT_OUT",
    "MARK",
    "RECORD",
    "case_of",
    "is_left_out",
    "running_items",
    "started_sessions",
]

FIXTURE = "evalsuite_case"
"""The parametrised fixture that is a case."""

RECORD = "evalsuite_record"
"""The attribute of a report that carries a case's record to the controlling process."""

FINDINGS: pytest.StashKey[Findings] = pytest.StashKey()

LEFT_OUT = "no_model"
"""The id of the one skipped item that stands for a benchmark whose model cannot be asked."""

running_items: list[pytest.Item] = []
"""The item that runs just now is the last; a test may run a session of its own within this process."""

started_sessions: list[str] = []
"""Root directories of the sessions of this process that have loaded the plugin."""


def case_of(item: pytest.Item) -> Case | None:
    """The case that an item is, if it is one."""
    parameters = getattr(item, "callspec", None)
    return parameters.params.get(FIXTURE) if parameters else None


def is_left_out(item: pytest.Item) -> bool:
    """Whether an item stands for a benchmark's cases, which are skipped because no model can be asked."""
    parameters = getattr(item, "callspec", None)
    return parameters is not None and FIXTURE in parameters.params and parameters.params[FIXTURE] is None
