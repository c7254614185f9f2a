"""A number with its confidence interval: what a tally says of a metric."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval.

    Attributes:
        value: the point estimate, on the metric's own scale (a share is 0.25, not 25).
        low: lower bound; None where no interval can be given.
        high: upper bound, likewise.
        n: number of cases behind it.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0

    def within(self, low: float, high: float) -> Estimate:
        """The same with its interval cut at the range of the metric, which a t interval knows nothing of."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=max(self.low, low), high=min(self.high, high))
