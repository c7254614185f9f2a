"""Decide gates from a run's measurements, without I/O.

Cases without this score (skipped, errors) count at the bad end of the metric's range. A gate is met only if it is still
met then; otherwise it has no data.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from evalsuite.core.errors import SpendLimitReached
from evalsuite.core.phrases import number_of
from evalsuite.decisions.conditions import JUDGE, near
from evalsuite.decisions.measured import DERIVED_CONFIDENCE, all_tags, score_of, select
from evalsuite.results.built_in import AMOUNTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.decisions.conditions import Gate
    from evalsuite.decisions.measured import Measured
    from evalsuite.results.tally import Estimate, Row, Tally

GateOutcome = Literal["met", "missed", "no data", "too many errors"]

UNAFFORDABLE = ("skipped", SpendLimitReached.__name__)
"""Outcome and cause of a case that --until-decided could not pay for; the cases after it did not start."""

ROUNDING = 1e-12  # relative width of an interval below which it counts as a point with floating-point noise

NO_LABELS = (
    "no case has both a judge's score and people's label; a sample's metadata brings labels under 'human', and "
    "there are judge.accuracy, sensitivity, specificity, kappa and ac1 of verdicts, and judge.weighted_kappa, alpha "
    "and rho of scores"
)
NO_VERDICTS = (
    "the judge's scores are points on a scale, not verdicts; name the least score that passes with passes=, or gate "
    "judge.weighted_kappa, judge.alpha or judge.rho"
)


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The decision on a gate for one metric of one benchmark."""

    gate: Gate
    subject: str  # The benchmark, tag and metric that were checked.
    verdict: GateOutcome  # `met`, or the reason for failing.
    estimate: Estimate | None = None  # The metric's estimate; None without data.
    reason: str = ""  # An explanation, if the numbers alone do not explain the verdict.


def decide(gates: Iterable[Gate], measured: Mapping[str, Measured], error_share: float = 0.01) -> list[GateDecision]:
    """Decide gates on a run.

    Args:
        error_share: the tolerated share of errors among a benchmark's cases, in [0, 1].
    """
    return [decision for gate in gates for decision in _decide(gate, measured, error_share)]


def _decide(gate: Gate, measured: Mapping[str, Measured], error_share: float) -> list[GateDecision]:
    names = sorted(measured) if gate.benchmark == "*" else [gate.benchmark]
    if not names or names[0] not in measured:
        reason = f"no case of {gate.benchmark} ran{near(gate.benchmark, measured)}"
        reason = NO_LABELS if gate.benchmark == JUDGE else reason
        return [GateDecision(gate, gate.benchmark, "no data", reason=reason)]
    return [decision for name in names for decision in _decide_benchmark(gate, name, measured[name], error_share)]


def _decide_benchmark(gate: Gate, name: str, measured: Measured, error_share: float) -> list[GateDecision]:
    cases = select(measured.tally, gate.tag, gate.value)
    place = f"{name}[{gate.value}]" if gate.value else name
    if gate.value and not len(cases):
        values = {f"{tag}={value}" if gate.tag else value for tag, value in all_tags(measured.tally)}
        asked = f"{gate.tag}={gate.value}" if gate.tag else gate.value
        return [GateDecision(gate, place, "no data", reason=f"no case has the tag {asked}{near(asked, values)}")]
    errors = cases.count("error")
    if errors > error_share * len(cases):
        reason = f"errors in {errors} of {number_of(len(cases), 'case')}, more than {error_share:.1%}"
        return [GateDecision(gate, f"{place}.{gate.metric}", "too many errors", reason=reason)]
    metrics = measured.metrics() if gate.metric == "*" else (gate.metric,)
    return [_decide_metric(gate, place, metric, measured, cases) for metric in metrics]


def _decide_metric(gate: Gate, place: str, metric: str, measured: Measured, cases: Tally) -> GateDecision:
    subject = f"{place}.{metric}"
    look = measured.estimate if gate.confidence is None else measured.with_interval
    estimate = look(metric, cases, gate.confidence or DERIVED_CONFIDENCE)
    if estimate is None:
        names = measured.metrics()
        no_verdicts = NO_VERDICTS if gate.benchmark == JUDGE and metric in {"accuracy", "kappa"} else ""
        reason = (
            measured.failure(metric)
            or no_verdicts
            or ("not measured" if metric in names else f"no such metric{near(metric, names)}")
        )
        return GateDecision(gate, subject, "no data", reason=reason)
    if math.isnan(estimate.value):
        return GateDecision(gate, subject, "no data", reason="undefined on these cases")
    if gate.confidence is not None and not _has_width(estimate):
        reason = "no interval can be given for it from so few cases, or from cases that are all the same"
        if metric in AMOUNTS:
            reason = "an amount has no interval below 30 independent cases, or if all are equal; leave out the @"
        elif metric in measured.derived:
            reason += "; a derived metric needs a declared range for one, Metric(range=(0, 1))"
        elif metric not in measured.declared:
            reason += "; a declared range, Metric(range=(0, 1)), bounds what varies"
        return GateDecision(gate, subject, "no data", estimate, reason)
    if not gate.holds(estimate):
        return GateDecision(gate, subject, "missed", estimate)
    missing = (
        ()
        if metric in measured.derived
        else tuple(row for row in cases if (row.outcome, row.cause) != UNAFFORDABLE and score_of(row, metric) is None)
    )
    if not missing:
        return GateDecision(gate, subject, "met", estimate)
    return _decide_with_missing(gate, GateDecision(gate, subject, "met", estimate), metric, measured, cases, missing)


def _decide_with_missing(
    gate: Gate, met: GateDecision, metric: str, measured: Measured, cases: Tally, missing: Sequence[Row]
) -> GateDecision:
    """Confirm a met gate only if it holds with the missing scores at the bad end of the metric's range."""
    ledger = _write_ledger(cases, missing)
    bounds = measured.bounds(metric, cases)
    if bounds is None:
        reason = f"{ledger}; {metric} has no declared range, Metric(range=(0, 1)), so what they hide is not bounded"
        return replace(met, verdict="no data", reason=reason)
    end = bounds[0] if gate.wants_more else bounds[1]
    worst = measured.estimate(metric, measured.fill(metric, cases, end), gate.confidence or DERIVED_CONFIDENCE)
    if worst is not None and gate.holds(worst):
        return replace(met, reason=f"{ledger}; it holds with these at {end:g}, too ({worst.value:.4f})")
    reason = f"{ledger}; with these at {end:g}, the bad end of its range, the gate would be missed"
    if all(row.outcome not in {"error", "skipped"} for row in missing):
        reason += "; where only some kinds of cases have this score, gate these by a tag: benchmark[tag].metric"
    return replace(met, verdict="no data", reason=reason)


def _write_ledger(cases: Tally, missing: Sequence[Row]) -> str:
    """Write how many cases were scored, what happened to the others, and the name of the first of them."""
    causes = Counter(row.outcome if row.outcome in {"error", "skipped"} else "unscored" for row in missing)
    parts = [
        number_of(causes["error"], "error") if causes["error"] else "",
        f"{causes['skipped']} skipped" if causes["skipped"] else "",
        f"{causes['unscored']} without this score" if causes["unscored"] else "",
    ]
    names = ", ".join(row.case for row in missing[:3]) + (", ..." if len(missing) > 3 else "")
    scored = len(cases) - len(missing)
    return f"{scored} of {number_of(len(cases), 'case')} scored, {', '.join(filter(None, parts))} ({names})"


def _has_width(estimate: Estimate) -> bool:
    """Tell whether the interval has a width; zero width means equal scores in all cases, which bounds nothing."""
    if estimate.low is None or estimate.high is None:
        return False
    return estimate.high - estimate.low > ROUNDING * max(1.0, abs(estimate.value))
