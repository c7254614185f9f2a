"""A wrong declaration becomes one message with its place, not a traceback through evalsuite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.errors import EvalsuiteError

if TYPE_CHECKING:
    import pytest

HOUSE = Path(__file__).parents[2]


def tell_plainly(report: pytest.CollectReport) -> None:
    """Replaces the traceback of a test file whose import failed with one of evalsuite's own errors."""
    # pytest leaves the call on the report for its own hooks, such as `pytest_exception_interact`.
    call: pytest.CallInfo[None] | None = getattr(report, "call", None)
    if call is None or call.excinfo is None or not isinstance(call.excinfo.value, EvalsuiteError):
        return
    places = [entry for entry in call.excinfo.traceback if not Path(entry.path).is_relative_to(HOUSE)]
    place = f"{Path(places[-1].path).name}:{places[-1].lineno + 1}: " if places else ""
    report.longrepr = f"{place}{call.excinfo.value}"
