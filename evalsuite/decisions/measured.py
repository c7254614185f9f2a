"""What a gate looks at: a benchmark's cases, some of them by tag, and every metric that they have."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from evalsuite.decisions.jackknifed import jackknifed
from evalsuite.results.runs import failure_of
from evalsuite.results.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalsuite.core.types import Metric
    from evalsuite.results.tally import Estimate, Row

PASS_RATE = "pass_rate"  # noqa: S105 - a metric, no password
"""A metric that every benchmark has: the share of its scored cases whose test passed."""

PASSED: Mapping[str, float] = MappingProxyType({"passed": 1.0, "failed": 0.0})
"""What a case's outcome counts as in the pass rate; others are no measurement."""

DERIVED_CONFIDENCE = 0.95
"""Of the intervals that benchmarks give with their derived metrics."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A benchmark's cases in one run, and its metrics that are not means over cases."""

    tally: Tally
    derived: Mapping[str, Callable[[Tally], Estimate | None]]
    declared: Mapping[str, Metric] = field(default_factory=dict)

    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics."""
        return tuple(dict.fromkeys((*self.tally.metrics(), *self.derived, PASS_RATE)))

    def estimate(self, metric: str, cases: Tally, confidence: float = 0.95) -> Estimate | None:
        """A metric over some of the cases."""
        if metric in self.derived:
            return self.derived[metric](cases)
        if metric == PASS_RATE:
            return pass_rate(cases, confidence)
        declared = self.declared.get(metric)
        return cases.estimate(metric, confidence, declared.range if declared else None)

    def with_interval(self, metric: str, cases: Tally, confidence: float = 0.95) -> Estimate | None:
        """A metric over some of the cases, with an interval wherever one can be given.

        A derived metric brings its own interval, which is of 95%. One that brings none, or is wanted at another
        confidence, has the jackknife's by cluster.
        """
        estimate = self.estimate(metric, cases, confidence)
        if metric not in self.derived or estimate is None:
            return estimate
        if estimate.low is not None and confidence == DERIVED_CONFIDENCE:
            return estimate
        declared = self.declared.get(metric)
        return jackknifed(
            self.derived[metric], estimate, cases, declared.range if declared else None, confidence
        )

    def failure(self, metric: str) -> str:
        """Why the last computation of a derived metric failed; empty if it did not."""
        return failure_of(self.derived.get(metric))


def pass_rate(cases: Tally, confidence: float = 0.95) -> Estimate | None:
    """The share of scored cases whose test passed, or of samples if a sample needs k of its n epochs."""
    if any("at_least" in row.facts for row in cases):
        return Tally(tuple(_passes(cases))).estimate(PASS_RATE, confidence)
    ran = cases.ran()
    return ran.estimate_of([float(row.outcome == "passed") for row in ran], confidence)


def _passes(cases: Tally) -> Iterator[Row]:
    repeated: dict[str, list[Row]] = {}
    for row in cases:
        if "at_least" in row.facts:
            repeated.setdefault(row.sample, []).append(row)
        elif (score := score_of(row, PASS_RATE)) is not None:
            yield row.with_scores({PASS_RATE: score})
    for rows in repeated.values():
        held = sample_holds(rows)
        if held is not None:
            yield replace(rows[0], outcome="passed", scores={PASS_RATE: float(held)})


def sample_holds(rows: Sequence[Row]) -> bool | None:
    """Whether a sample passed in enough of its epochs; None if errors leave that open."""
    passed = sum(row.outcome == "passed" for row in rows)
    unknown = sum(row.outcome == "error" for row in rows)
    least: int = rows[0].facts["at_least"]
    return True if passed >= least else False if passed + unknown < least else None


def score_of(row: Row, metric: str) -> float | None:
    """A case's score, or whether its test passed; None if it has no score, as for errors."""
    if row.outcome == "error":
        return None
    if metric == PASS_RATE:
        return PASSED.get(row.outcome)
    return row.scores.get(metric)


def select(tally: Tally, tag: str | None, value: str | None) -> Tally:
    """The cases with this tag value: of the named tag, else of any tag; all cases if there is no value."""
    if value is None:
        return tally
    return tally.where(lambda row: _matches(row.tags, tag, value))


def is_selected(row: Row, tag: str | None, value: str | None) -> bool:
    """Whether `select` would keep a case."""
    return value is None or _matches(row.tags, tag, value)


def _matches(tags: Mapping[str, str], tag: str | None, value: str) -> bool:
    return tags.get(tag) == value if tag is not None else value in tags.values()


def all_tags(tally: Tally) -> set[tuple[str, str]]:
    """Every tag with every value."""
    return {pair for row in tally for pair in row.tags.items()}
