"""Measure the cases and metrics that a gate checks, on all cases of a benchmark or on the cases with a tag."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partialmethod
from itertools import chain
from typing import TYPE_CHECKING, Any

from evalsuite.core.types import ASSERTS, PASS_RATE, Metric, Outcome, are_outcomes
from evalsuite.results.built_in import AMOUNTS, estimate_mean_amount, is_resource_metric
from evalsuite.results.tally import Estimate, Row, Tally, estimate_clustered_mean

if TYPE_CHECKING:
    from evalsuite.results.runs import Run

MOST_GROUPS = 60
"""Maximum recomputations of a derived metric for the jackknife; more clusters are combined into this many groups."""


def add_jackknife_interval(
    compute: Callable[[Tally], Estimate | None],
    estimate: Estimate,
    cases: Tally,
    bounds: tuple[float, float] | None,
    confidence: float,
) -> Estimate:
    """Add an interval to a derived metric's estimate, by a jackknife that leaves out one group of clusters at a time.

    The estimate has no interval if leaving out some cluster makes the metric undefined. If all replicates are equal,
    `make_constant_statistic_interval` makes the interval, provided that the metric declares a range (`bounds`) and
    returns no interval itself.
    """
    from evalsuite.stats.clustering import compute_jackknife_interval, make_constant_statistic_interval

    value, bare = estimate.value, replace(estimate, low=None, high=None)
    names = list(dict.fromkeys(row.cluster for row in cases))
    count = min(MOST_GROUPS, len(names))
    groups = ({*names[start::count]} for start in range(count))
    rest = (compute(Tally.of(row for row in cases if row.cluster not in group)) for group in groups)
    without = [left.value if left else math.nan for left in rest]
    interval = compute_jackknife_interval(value, without, bounds=bounds or (-math.inf, math.inf), confidence=confidence)
    if not math.isnan(interval.low):
        return replace(bare, low=interval.low, high=interval.high)
    varies = len(without) < 2 or any(math.isnan(left) or not math.isclose(left, value) for left in without)
    if varies or bounds is None or estimate.low is not None:
        return bare
    interval = make_constant_statistic_interval(value, len(names), bounds, confidence)
    return replace(bare, low=interval.low, high=interval.high)


DERIVED_CONFIDENCE = 0.95  # Confidence of the intervals that derived metrics return themselves.


@dataclass(frozen=True, slots=True)
class MeasuredBenchmark:
    """One benchmark's cases in one run, with its derived metrics (metrics that are not means over cases)."""

    tally: Tally
    derived: Mapping[str, Callable[[Tally], Estimate | None]]
    declared: Mapping[str, Metric] = field(default_factory=dict)
    gone: str = ""  # Why the benchmark's code is missing, so that only stored metrics are known; else empty.
    # For each derived metric, the cases without a value, as the run stored them.
    stored_missing: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def from_run(cls, run: Run, benchmark: str) -> MeasuredBenchmark:
        """Collect one benchmark's cases with its derived metrics and declarations."""
        bench = run.benchmarks[benchmark]
        missing = bench.stored.missing if bench.stored else {}
        return cls(bench.tally, bench.derived, run.metrics(benchmark), bench.gone, missing)

    def list_metrics(self) -> tuple[str, ...]:
        asserts = not len(self.tally) or any(row.facts.get(ASSERTS, True) for row in self.tally)
        every = (*self.tally.metrics(), *self.derived, *([PASS_RATE] if asserts else []))
        return tuple(dict.fromkeys(every))

    def estimate_metric(self, metric: str, cases: Tally, confidence: float = 0.95) -> Estimate | None:
        """Estimate a metric over some of the cases."""
        if metric in self.derived:
            return self.derived[metric](cases)
        if metric == PASS_RATE:
            return estimate_pass_rate(cases, confidence)
        declared = self.declared.get(metric)
        return cases.estimate(metric, confidence, declared.range if declared else None)

    def estimate_with_interval(self, metric: str, cases: Tally, confidence: float = 0.95) -> Estimate | None:
        """Estimate a metric over some of the cases, with an interval if possible.

        A derived metric may return its own 95% interval. If a derived metric returns no interval, or another confidence
        is requested, compute the interval by a jackknife over clusters.
        """
        if metric in AMOUNTS and metric in self.derived:  # `tool_calls` has a score that is also named `calls`.
            return estimate_mean_amount(metric, cases, confidence)
        estimate = self.estimate_metric(metric, cases, confidence)
        if metric not in self.derived or estimate is None:
            return estimate
        if estimate.low is not None and confidence == DERIVED_CONFIDENCE:
            return estimate
        declared = self.declared.get(metric)
        bounds = declared.range if declared else None
        return add_jackknife_interval(self.derived[metric], estimate, cases, bounds, confidence)

    def find_range(self, metric: str, cases: Tally) -> tuple[float, float] | None:
        """Find a metric's range: the declared range, or 0 to 1 for a share of cases; None if it is unknown."""
        declared = self.declared.get(metric)
        if declared is not None and declared.range is not None:
            return declared.range
        is_score = metric not in self.derived
        is_share = metric == PASS_RATE or (is_score and are_outcomes(cases.values(metric), None))
        return (0.0, 1.0) if is_share else None

    def find_unscored_cases(self, metric: str, cases: Tally) -> tuple[Row, ...]:
        """Find the cases that a metric should count although they lack a score.

        A resource such as latency needs no scores, so no cases are returned. For a derived metric, return the cases
        with errors, and the cases that lack every score that the metric reads.
        """
        if metric not in self.derived:
            return tuple(row for row in cases if get_score(row, metric) is None)
        if is_resource_metric(metric) or metric.startswith(("judge_", "corrected_")):
            return ()
        if self.gone and metric in tuple(self.derived):
            return tuple(row for row in cases if row.case in self.stored_missing.get(metric, ()))
        read: dict[str, set[object]] = {row.case: set() for row in cases}
        self.derived[metric](Tally([row.with_scores(_RecordingScores(row.scores, read[row.case])) for row in cases]))
        names = set().union(*read.values())
        return tuple(
            row
            for row in cases
            if row.outcome == "error"
            or ((read[row.case] or row.outcome == "skipped") and not names & row.scores.keys())
        )

    def fill_missing_scores(self, metric: str, cases: Tally, value: float) -> Tally:
        """Give cases without the metric this value; for the pass rate, 1 means passed and 0 means failed."""
        outcome: Outcome = "passed" if value else "failed"

        def fill_row(row: Row) -> Row:
            is_missing = get_score(row, metric) is None
            return replace(row, outcome=outcome, scores={**row.scores, metric: value}) if is_missing else row

        return Tally(tuple(map(fill_row, cases)))

    def explain_failure(self, metric: str) -> str:
        """Explain why a derived metric could not be computed the last time; return "" if it was computed."""
        from evalsuite.results.runs import get_failure

        return get_failure(self.derived.get(metric))


ALL_SCORES = object()  # Marks, among the names of read scores, that a metric reads all scores.


class _RecordingScores(dict[str, float]):
    """A case's scores; they record which scores a metric reads."""

    def __init__(self, scores: Mapping[str, float], names: set[object]) -> None:
        super().__init__(scores)
        self._names = names

    def _record_access(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Record which scores a method of `dict` reads, and call the method."""
        self._names |= {arguments[0]} if arguments else {ALL_SCORES, *dict.keys(self)}
        return method(self, *arguments)

    __contains__ = partialmethod(_record_access, dict.__contains__)
    __getitem__ = partialmethod(_record_access, dict.__getitem__)
    get = partialmethod(_record_access, dict.get)
    # Record calls of these methods too, because they read all scores at once.
    __iter__ = partialmethod(_record_access, dict.__iter__)
    __len__ = partialmethod(_record_access, dict.__len__)
    copy = partialmethod(_record_access, dict.copy)
    items = partialmethod(_record_access, dict.items)
    keys = partialmethod(_record_access, dict.keys)
    values = partialmethod(_record_access, dict.values)

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()


def estimate_pass_rate(cases: Tally, confidence: float = 0.95) -> Estimate | None:
    """Compute the share of scored cases that passed, or the share of samples that passed in enough epochs."""
    repeated = group_repeated_samples(cases)
    alone = ((get_score(row, PASS_RATE), row.cluster) for row in cases if row.sample not in repeated)
    samples = ((has_sample_passed(rows), rows[0].cluster) for rows in repeated.values())
    passed = ((float(share), cluster) for share, cluster in chain(alone, samples) if share is not None)
    return estimate_clustered_mean(passed, confidence)


def group_repeated_samples(cases: Tally) -> dict[str, list[Row]]:
    """Group cases by sample, for samples that need a minimum number of passed epochs."""
    samples: dict[str, list[Row]] = {row.sample: [] for row in cases if "at_least" in row.facts}
    for row in cases if samples else ():
        if row.sample in samples:
            samples[row.sample].append(row)
    return samples


def has_sample_passed(rows: Sequence[Row]) -> bool | None:
    """Tell whether enough of a sample's epochs passed; None if this depends on skipped epochs or epochs with errors."""
    # Read `at_least` from any epoch, because the record of a case whose process died has no facts.
    least: int = next(row.facts["at_least"] for row in rows if "at_least" in row.facts)
    passed = sum(row.outcome == "passed" for row in rows)
    unknown = sum(row.outcome in {"error", "skipped"} for row in rows)
    return True if passed >= least else False if passed + unknown < least else None


def get_score(row: Row, metric: str) -> float | None:
    """Read a case's value of a metric (a score or the pass rate); None if the case had an error or lacks the score."""
    if row.outcome == "error":
        return None
    if metric == PASS_RATE:
        is_counted = row.outcome in {"passed", "failed"} and row.facts.get(ASSERTS, True)
        return float(row.outcome == "passed") if is_counted else None
    return row.scores.get(metric)


def select_cases(tally: Tally, tag: str | None, value: str | None) -> Tally:
    """Select the cases with a tag's value.

    If `tag` is None, any tag may have the value; if `value` is None, select all cases.
    """
    return tally if value is None else tally.where(lambda row: is_selected(row, tag, value))


def is_selected(row: Row, tag: str | None, value: str | None) -> bool:
    """Tell whether `select_cases` would select the case for this tag and value."""
    return value is None or (value in row.tags.values() if tag is None else row.tags.get(tag) == value)


def list_tags(tally: Tally) -> set[tuple[str, str]]:
    """List each tag together with each of its values."""
    return {pair for row in tally for pair in row.tags.items()}
