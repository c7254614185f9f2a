"""A benchmark's derived metric, which is anybody's code: what it raises is a message, not the end of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.results.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.results.tally import Tally


class GuardedMetric:
    """Computes a derived metric, and keeps the reason where that fails.

    Args:
        compute: the benchmark's function.

    Attributes:
        failure: why the last computation gave nothing; empty where it succeeded or where the metric is
            undefined by its own account.
    """

    def __init__(self, compute: Callable[[Tally], Estimate | None]) -> None:
        self._compute = compute
        self.failure = ""

    def __call__(self, cases: Tally) -> Estimate | None:
        """The metric over some cases; None where it is undefined or could not be computed."""
        self.failure = ""
        try:
            # Whatever the annotation promises, a bare number is an easy slip.
            result: object = self._compute(cases)
        except Exception as error:  # noqa: BLE001 - anybody's code; other metrics do not depend on it
            message = " ".join(str(error).split())
            self.failure = f"its function raised {type(error).__name__}" + (f": {message}" if message else "")
            return None
        if result is None or isinstance(result, Estimate):
            return result
        self.failure = f"its function returned {type(result).__name__}; it must return an Estimate or None"
        return None


def failure_of(metric: object) -> str:
    """Why the last computation of a derived metric failed; empty where it did not."""
    return metric.failure if isinstance(metric, GuardedMetric) else ""
