"""Flaky cases: the same question, put to the same model in the same way, sometimes passes and sometimes fails."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalsuite.results.runs import Run

SAME_ASK = ("input", "target", "prompt", "params", "scorers", "judge", "user")
"""Fingerprints that must be equal for two outcomes to be those of one question, asked in one way."""


@dataclass(frozen=True, slots=True)
class FlakyCase:
    """A question that has both passed and failed.

    Attributes:
        model: that was asked.
        benchmark: its name.
        sample: its id.
        passed: epochs, of all runs, in which its test passed.
        failed: those in which it failed; errors count as neither.
    """

    model: str
    benchmark: str
    sample: str
    passed: int
    failed: int

    @property
    def flips(self) -> int:
        """How often the rarer of the two outcomes occurred."""
        return min(self.passed, self.failed)


def flaky_cases(runs: Iterable[Run]) -> list[FlakyCase]:
    """Questions that both passed and failed in epochs or runs of one model, sorted by number of flips."""
    outcomes: dict[tuple[str, ...], Counter[str]] = {}
    for run in runs:
        for benchmark, bench in run.benchmarks.items():
            for row in bench.tally:
                ask = (row.fingerprints.get(name, "") for name in SAME_ASK)
                key = (str(run.info.get("model")), benchmark, row.sample, *ask)
                outcomes.setdefault(key, Counter())[row.outcome] += 1
    flaky = [
        FlakyCase(key[0], key[1], key[2], counts["passed"], counts["failed"])
        for key, counts in outcomes.items()
        if counts["passed"] and counts["failed"]
    ]
    return sorted(flaky, key=lambda one: (-one.flips, one.model, one.benchmark, one.sample))
