"""Finds the cases among pytest's items, and defines the keys under which pytest's objects store data of evalsuite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.declarations import FIXTURE
from evalsuite.plugin.pytest_internals import is_kept_from_running

if TYPE_CHECKING:
    from evalsuite.engine.case_record import CaseFindings
    from evalsuite.engine.cases import Case

MARK = "evalsuite"  # Mark of benchmarks' test functions; `-m evalsuite` selects all cases.
RECORD = "evalsuite_record"  # The attribute of a report that carries a case's record to the controlling process.
FINDINGS: pytest.StashKey[CaseFindings] = pytest.StashKey()
LEFT_OUT = "no_model"  # The id of the skipped item for a benchmark whose model cannot be called.
running_items: list[pytest.Item] = []
"""The running items, innermost last: a test may run another session of pytest within this process."""


def get_case(item: pytest.Item) -> Case | None:
    """Return an item's case; None if the item is not a case."""
    parameters = getattr(item, "callspec", None)
    return parameters.params.get(FIXTURE) if parameters else None


def is_skipped_benchmark(item: pytest.Item) -> bool:
    """Tell whether an item stands for all cases of a benchmark, which are skipped because no model can be called."""
    parameters = getattr(item, "callspec", None)
    return parameters is not None and FIXTURE in parameters.params and parameters.params[FIXTURE] is None


def list_cases(items: Iterable[pytest.Item]) -> list[Case]:
    """Return the cases of all items that are cases."""
    return [case for item in items if (case := get_case(item)) is not None]


def get_findings(item: pytest.Item) -> CaseFindings:
    """Return the data collected for an item's case; if the item runs again, return new data."""
    from evalsuite.engine.case_record import CaseFindings

    return item.stash.setdefault(FINDINGS, CaseFindings(getattr(item, "callspec").params[FIXTURE]))  # noqa: B009


def get_solvable_case(item: pytest.Item) -> Case | None:
    """Return an item's case; None if the item is not a case, has no solver, or has a mark that keeps it from running.

    Such marks are `skip`, `skipif` and `xfail(run=False)`: solving the case would pay for an answer that no test reads.
    """
    case = get_case(item)
    return case if case is not None and case.bound.solver is not None and not is_kept_from_running(item) else None
