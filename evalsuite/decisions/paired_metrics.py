"""Compares one metric of a run with its baseline, paired by question, and corrects for the number of metrics.

The statistics, with their formulas and sources, are `stats.compare_paired`, `stats.compare_statistic` and
`stats.verdicts`; this module decides which margin applies to a metric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.decisions.compared_metrics import declared, is_derived, own_margin
from evalsuite.decisions.jackknifed import MOST_GROUPS
from evalsuite.results.runs import failure_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Metric
    from evalsuite.decisions.baseline_result import ComparedMetric, ComparisonRules
    from evalsuite.decisions.pairing import Common, Pair
    from evalsuite.results.runs import Run
    from evalsuite.stats import NonInferiority, NonInferiorityVerdict


@dataclass(frozen=True, slots=True)
class ComparedPairs:
    """A subject's comparison, with each cluster's part of the difference."""

    subject: ComparedMetric
    result: NonInferiority
    parts: Mapping[str, float]


def compare_metric(
    common: Common, subject: ComparedMetric, run: Run, rules: ComparisonRules
) -> ComparedPairs | str:
    """Compares one metric on the questions that both runs have; returns the reason as text if that is impossible."""
    if is_derived(run.benchmarks[subject.benchmark], subject.metric):
        return _compare_derived(common, subject, run, rules)
    return _compare_means(common.pairs(subject.metric), subject, run, common, rules)


def _compare_means(
    pairs: Sequence[Pair], subject: ComparedMetric, run: Run, common: Common, rules: ComparisonRules
) -> ComparedPairs | str:
    from evalsuite import stats

    every = common.every_score(subject.metric)
    metric = declared(run, subject.benchmark, subject.metric)
    sized = _scale(metric, own_margin(subject, rules), every, subject)
    if isinstance(sized, str):
        return sized
    width, own = sized
    clusters = [pair.row.cluster for pair in pairs]
    result = stats.compare_paired(
        [pair.before for pair in pairs],
        [pair.after for pair in pairs],
        margin=rules.margin * width if own is None else own,
        clusters=clusters if len(set(clusters)) < len(clusters) else None,
        scale=width,
        lower_is_better=subject.lower_is_better,
    )
    parts: dict[str, float] = {}
    for pair in pairs:
        parts[pair.row.cluster] = parts.get(pair.row.cluster, 0.0) + pair.after - pair.before
    return ComparedPairs(subject, result, _as_gains(parts, subject))


def _compare_derived(
    common: Common, subject: ComparedMetric, run: Run, rules: ComparisonRules
) -> ComparedPairs | str:
    """Compares a metric that is not a mean over cases by leaving out the same clusters from both runs."""
    from evalsuite import stats

    compute = run.benchmarks[subject.benchmark].derived[subject.metric]

    def values(without: frozenset[str] = frozenset()) -> tuple[float, float]:
        before, after = (compute(tally) for tally in common.tallies(without))
        return (before.value if before else math.nan), (after.value if after else math.nan)

    whole, names = values(), common.clusters()
    if failure := failure_of(compute):
        return failure
    if any(math.isnan(value) for value in whole) or len(names) < 2:
        return "it is undefined on the cases of both runs"
    metric = declared(run, subject.benchmark, subject.metric)
    sized = _scale(metric, own_margin(subject, rules), whole, subject)
    if isinstance(sized, str):
        return sized
    width, own = sized
    groups = [names[start :: min(MOST_GROUPS, len(names))] for start in range(min(MOST_GROUPS, len(names)))]
    without = [values(frozenset(group)) for group in groups]
    if any(math.isnan(value) for pair in without for value in pair):
        return "without some cases it is undefined, so that its error cannot be told"
    result = stats.compare_statistic(
        whole,
        without,
        n=len(common.shared),
        clusters=len(names),
        margin=rules.margin * width if own is None else own,
        scale=width,
        lower_is_better=subject.lower_is_better,
    )
    difference = whole[1] - whole[0]
    parts = {
        name: (difference - (after - before)) / len(group)
        for group, (before, after) in zip(groups, without, strict=True)
        for name in group
    }
    return ComparedPairs(subject, result, _as_gains(parts, subject))


def _scale(
    metric: Metric, own: float | None, values: Sequence[float], subject: ComparedMetric
) -> tuple[float, float | None] | str:
    """The width of a metric's range and its own margin (None: the usual share), or why there is no scale."""
    if metric.range is not None:
        low, high = metric.range
        outside = [value for value in values if not low <= value <= high]
        if outside:
            return f"{subject.metric} is declared to lie in [{low:g}, {high:g}], and {outside[0]:g} does not"
        width = high - low
    elif all(value in {0.0, 1.0} for value in values):
        width = 1.0
    elif own is None:
        return (
            f"{subject.metric} has no declared range, so nobody knows which loss matters: write --margin "
            f"{subject.benchmark}.{subject.metric}=0.05, or declare Metric(range=(0, 1))"
        )
    else:
        width = max(max(values) - min(values), 2 * own)
    if own is not None and own >= width:
        return f"--margin {subject.metric}={own:g} is no less than the metric's whole range of {width:g}"
    return width, own


def _as_gains(parts: dict[str, float], subject: ComparedMetric) -> dict[str, float]:
    return {name: -part for name, part in parts.items()} if subject.lower_is_better else parts


def with_verdicts(
    compared: Sequence[ComparedPairs], confidence: float
) -> list[tuple[ComparedMetric, NonInferiority, NonInferiorityVerdict]]:
    """Each comparison with its verdict, corrected for the number of metrics."""
    if not compared:
        return []
    import numpy as np

    from evalsuite import stats

    clusters = sorted({(metric.subject.benchmark, name) for metric in compared for name in metric.parts})
    parts = np.zeros((len(clusters), len(compared)))
    for column, metric in enumerate(compared):
        for place, (benchmark, name) in enumerate(clusters):
            if metric.subject.benchmark == benchmark:
                parts[place, column] = metric.parts.get(name, 0.0)
    verdicts = stats.verdicts([metric.result for metric in compared], parts, confidence=confidence)
    return [
        (metric.subject, metric.result, verdict) for metric, verdict in zip(compared, verdicts, strict=True)
    ]
