"""Sets up, before a run begins, the comparisons with its baseline that may be decided while it goes on."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from evalsuite.decisions.compared_metrics import declared, own_margin, subjects
from evalsuite.decisions.measured import score_of
from evalsuite.decisions.pairing import by_question
from evalsuite.decisions.sequential_gates import EarlyComparison

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalsuite.decisions.baseline_result import ComparedMetric, ComparisonRules
    from evalsuite.decisions.conditions import Gate
    from evalsuite.results.runs import Run


def early_comparisons(
    baselines: Sequence[Run], gates: Sequence[Gate], rules: ComparisonRules
) -> Callable[[float], Sequence[EarlyComparison]]:
    """Makes the comparisons of all gated metrics with all baselines, given the share of the error that each may use."""
    compared = [(baseline, subject) for baseline in baselines for subject in subjects(baseline, gates, rules)]
    return partial(_make, compared, rules)


def _make(
    compared: Sequence[tuple[Run, ComparedMetric]], rules: ComparisonRules, share: float
) -> list[EarlyComparison]:
    return [_comparison(baseline, subject, rules, share) for baseline, subject in compared]


def _comparison(
    baseline: Run, subject: ComparedMetric, rules: ComparisonRules, share: float
) -> EarlyComparison:
    """One comparison; it has nothing to compare with if the metric's range is not declared."""
    metric = declared(baseline, subject.benchmark, subject.metric)
    before = {}
    for question, rows in by_question(baseline.benchmarks[subject.benchmark].tally).items():
        scores = [score for row in rows if (score := score_of(row, subject.metric)) is not None]
        if scores:
            before[question] = math.fsum(scores) / len(scores), rows[0].fingerprints
    low, high = metric.range or (0.0, 1.0)
    if metric.range is None and any(score not in {0.0, 1.0} for score, _ in before.values()):
        before = {}
    margin = own_margin(subject, rules) or rules.margin * (high - low)
    return EarlyComparison(baseline.folder.name, subject, before, high - low, margin, share)
