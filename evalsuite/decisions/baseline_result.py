"""The rules of a comparison with a baseline, and its result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.decisions.slices import Slice
    from evalsuite.stats import NonInferiority, NonInferiorityVerdict


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """How a run is compared with its baseline.

    Attributes:
        margin: the loss that would matter, as a share of a metric's range.
        margins: the loss that would matter on a metric's own scale, by `metric` or `benchmark.metric`.
        min_paired: the share of questions that must be in both runs.
        confidence: of the verdicts together.
    """

    margin: float = 0.02
    margins: Mapping[str, float] = field(default_factory=dict)
    min_paired: float = 0.9
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """One metric on some of a benchmark's cases.

    Attributes:
        benchmark: its name.
        tag: name of a tag, if the gate names one.
        value: of the tag; None for all cases.
        metric: its name.
        lower_is_better: whether a rise is a loss.
    """

    benchmark: str
    tag: str | None
    value: str | None
    metric: str
    lower_is_better: bool

    def __str__(self) -> str:
        cases = f"{self.tag}={self.value}" if self.tag else self.value
        return f"{self.benchmark}[{cases}].{self.metric}" if cases else f"{self.benchmark}.{self.metric}"


@dataclass(frozen=True, slots=True)
class Flip:
    """A case whose score changed.

    Attributes:
        subject: metric and cases.
        case: its id.
        before: the baseline's score.
        after: this run's.
    """

    subject: ComparedMetric
    case: str
    before: float
    after: float

    @property
    def loss(self) -> float:
        """How much worse this run is; negative if it is better."""
        return self.after - self.before if self.subject.lower_is_better else self.before - self.after


@dataclass(frozen=True, slots=True)
class Against:
    """The result of comparing a run with its baseline.

    Attributes:
        name: the baseline's name.
        rules: what it was compared by.
        found: each subject with its comparison and verdict.
        flips: cases that changed, the greatest losses first.
        left_out: cases that exist on one side only, by side.
        not_compared: subjects that could not be compared, with the reason.
        changed: what differs between the runs besides the model, by benchmark, in words.
        unscored: a line for each subject whose pairs lack cases because of errors.
        slices: the questions of each tag's values, the greatest losses first.
    """

    name: str
    rules: ComparisonRules
    found: Sequence[tuple[ComparedMetric, NonInferiority, NonInferiorityVerdict]]
    flips: Sequence[Flip]
    left_out: Mapping[str, Sequence[str]]
    not_compared: Mapping[str, str] = field(default_factory=dict)
    changed: Sequence[str] = ()
    unscored: Sequence[str] = ()
    slices: Sequence[Slice] = ()

    @property
    def margin(self) -> float:
        """The loss that matters, as a share of a metric's range."""
        return self.rules.margin

    def regressions(self) -> list[str]:
        """A line for each metric that is worse."""
        return [
            f"{subject} is worse than in {self.name}: {one.candidate:.4g} after {one.baseline:.4g} "
            f"(p = {one.pvalue:.2g})"
            for subject, one, verdict in self.found
            if verdict == "worse"
        ]

    def lacking(self) -> list[str]:
        """A line for each metric that could not be compared."""
        return [
            f"{subject} is not compared with {self.name}: {reason}"
            for subject, reason in self.not_compared.items()
        ]

    def undecided(self) -> list[str]:
        """A line for each metric that is neither shown to be worse nor shown to be no worse."""
        return [
            f"{subject} is undecided against {self.name}: {one.candidate:.4g} after {one.baseline:.4g}; "
            f"{one.n} cases could have shown {_shown(one)}"
            for subject, one, verdict in self.found
            if verdict == "undecided"
        ]

    def remarks(self) -> list[str]:
        """Further remarks for readers of the comparison."""
        return [*self.changed, *self.unscored]


def _shown(one: NonInferiority) -> str:
    loss = f"a loss of {one.detectable:.3f} or more" if math.isfinite(one.detectable) else "no loss at all"
    return f"{loss} (power 80%)"
