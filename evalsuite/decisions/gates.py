"""Gates: conditions on a run's tallies that decide the exit status. Parses and decides them, without I/O.

head_to_tail.accuracy >= 0.30             a mean over the benchmark's cases
head_to_tail[tail].hallucination <= 0.2   over the cases with a tag of this value
treb[skill=TU].rouge_l >= 0.2             the same, naming the tag as well
struc_bench.h_content >= 0.85 @95%        the interval's bound must hold, not the point
treb.* >= 0.5                             every metric of the benchmark
judge.kappa >= 0.6 @95%                   the agreement of the run's judges with people's labels
qa.corrected_faithful >= 0.8 @95%         a judged mean, corrected by people's labels
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from evalsuite.errors import SettingsError
from evalsuite.results.built_in import built_in
from evalsuite.results.guarded_metric import failure_of
from evalsuite.results.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalsuite.results.estimate import Estimate
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Row
    from evalsuite.types import Metric

GateOutcome = Literal["met", "missed", "no data", "too many errors"]

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
CONDITION = re.compile(
    r"""\s*(?P<benchmark>[a-z][a-z0-9_]*|\*)
        (?:\[(?:(?P<tag>[^\]=]+)=)?(?P<value>[^\]]+)\])?
        \.(?P<metric>[\w@^-]+|\*)
        \s*(?P<comparison>>=|<=|>|<)
        \s*(?P<threshold>-?\d+(?:\.\d+)?|-?\.\d+)
        \s*(?:@\s*(?P<confidence>\d+(?:\.\d+)?)\s*%)?\s*""",
    re.VERBOSE,
)
FORM = "benchmark.metric >= 0.5, benchmark[tag].metric <= 0.2, or with the interval's bound: ... >= 0.5 @95%"

ROUNDING = 1e-12
"""Relative width below which an interval is a point but for floating-point noise."""

DERIVED_CONFIDENCE = 0.95
"""Of the intervals that benchmarks give with their derived metrics."""

PASS_RATE = "pass_rate"  # noqa: S105 - a metric, no password
"""A metric that every benchmark has: the share of its scored cases whose test passed."""


JUDGE = "judge"
"""In the place of a benchmark: all cases of the run that people have labelled."""

NO_LABELS = (
    "no case has both a judge's score and people's label; a sample's metadata brings labels under 'human', and "
    "there are judge.accuracy, judge.kappa and judge.rho"
)


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition.

    Attributes:
        text: as the user wrote it.
        benchmark: name, or `*` for all.
        tag: name of the tag, if the gate names one.
        value: of the tag; None for all cases.
        metric: name, or `*` for all.
        comparison: one of `COMPARISONS`.
        threshold: on the metric's own scale.
        confidence: in (0, 1); None where the point estimate decides.
    """

    text: str
    benchmark: str
    tag: str | None
    value: str | None
    metric: str
    comparison: str
    threshold: float
    confidence: float | None

    @property
    def wants_more(self) -> bool:
        """Whether more is better."""
        return self.comparison.startswith(">")

    def covers(self, benchmark: str) -> bool:
        """Whether the benchmark's cases are decided by this gate."""
        return self.benchmark in {"*", benchmark}

    def holds(self, estimate: Estimate) -> bool:
        """Whether the condition holds for the point estimate or, at a confidence, for the relevant bound."""
        value: float | None = estimate.value
        if self.confidence is not None:
            value = estimate.low if self.wants_more else estimate.high
        return value is not None and COMPARISONS[self.comparison](value, self.threshold)


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The decision on a gate for one metric of one benchmark.

    Attributes:
        gate: the condition.
        subject: benchmark, tag and metric that were looked at.
        verdict: anything but `met` is red.
        estimate: the estimate; None without data.
        reason: an explanation, if the numbers alone do not explain the verdict.
    """

    gate: Gate
    subject: str
    verdict: GateOutcome
    estimate: Estimate | None = None
    reason: str = ""


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

    def failure(self, metric: str) -> str:
        """Why the last computation of a derived metric failed; empty if it did not."""
        return failure_of(self.derived.get(metric))


def pass_rate(cases: Tally, confidence: float = 0.95) -> Estimate | None:
    """The share of scored cases whose test passed, or of samples if a sample needs k of its n epochs."""
    return Tally(tuple(_passes(cases))).estimate(PASS_RATE, confidence)


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
        return {"passed": 1.0, "failed": 0.0}.get(row.outcome)
    return row.scores.get(metric)


def parse_gates(texts: Iterable[str] | None) -> tuple[Gate, ...]:
    """The gates in a run's settings, in order.

    Raises:
        SettingsError: one is malformed.
    """
    return tuple(map(parse_gate, texts or ()))


def gates_of(run: Run) -> tuple[Gate, ...]:
    """The gates that a run was started with."""
    return parse_gates(run.info.get("settings", {}).get("gate"))


@cache
def parse_gate(text: str) -> Gate:
    """Parses a condition; results are cached.

    Raises:
        SettingsError: it is malformed.
    """
    match = CONDITION.fullmatch(text)
    tag, value = (match[part] and match[part].strip() for part in ("tag", "value")) if match else ("", "")
    if not match or "" in {tag, value}:
        raise SettingsError(f"gate {text!r} cannot be read; write {FORM}")
    confidence = float(match["confidence"]) / 100 if match["confidence"] else None
    if confidence is not None and not 0.5 <= confidence < 1:
        raise SettingsError(f"gate {text!r}: a confidence is at least 50% and below 100%")
    return Gate(
        text=text.strip(),
        benchmark=match["benchmark"],
        tag=tag,
        value=value,
        metric=match["metric"],
        comparison=match["comparison"],
        threshold=float(match["threshold"]),
        confidence=confidence,
    )


def decide(
    gates: Iterable[Gate], measured: Mapping[str, Measured], error_share: float = 0.01
) -> list[GateDecision]:
    """Decides gates on a run.

    Args:
        gates: the conditions.
        measured: by benchmark.
        error_share: errors among a benchmark's cases that a gate puts up with, in [0, 1].
    """
    return [decision for gate in gates for decision in _decide(gate, measured, error_share)]


def _decide(gate: Gate, measured: Mapping[str, Measured], error_share: float) -> list[GateDecision]:
    names = sorted(measured) if gate.benchmark == "*" else [gate.benchmark]
    if not names or names[0] not in measured:
        reason = f"no case of {gate.benchmark} ran{near(gate.benchmark, measured)}"
        reason = NO_LABELS if gate.benchmark == JUDGE else reason
        return [GateDecision(gate, gate.benchmark, "no data", reason=reason)]
    return [
        decision for name in names for decision in _decide_benchmark(gate, name, measured[name], error_share)
    ]


def _decide_benchmark(gate: Gate, name: str, measured: Measured, error_share: float) -> list[GateDecision]:
    cases = select(measured.tally, gate.tag, gate.value)
    place = f"{name}[{gate.value}]" if gate.value else name
    if gate.value and not len(cases):
        values = {f"{tag}={value}" if gate.tag else value for tag, value in all_tags(measured.tally)}
        asked = f"{gate.tag}={gate.value}" if gate.tag else gate.value
        return [
            GateDecision(gate, place, "no data", reason=f"no case has the tag {asked}{near(asked, values)}")
        ]
    errors = sum(row.outcome == "error" for row in cases)
    if errors > error_share * len(cases):
        reason = f"{errors} of {len(cases)} cases are errors, more than {error_share:.1%}"
        return [GateDecision(gate, f"{place}.{gate.metric}", "too many errors", reason=reason)]
    metrics = measured.metrics() if gate.metric == "*" else (gate.metric,)
    return [_decide_metric(gate, place, metric, measured, cases) for metric in metrics]


def _decide_metric(gate: Gate, place: str, metric: str, measured: Measured, cases: Tally) -> GateDecision:
    subject = f"{place}.{metric}"
    estimate = measured.estimate(metric, cases, gate.confidence or 0.95)
    if estimate is None:
        names = measured.metrics()
        reason = measured.failure(metric) or (
            "not measured" if metric in names else f"no such metric{near(metric, names)}"
        )
        return GateDecision(gate, subject, "no data", reason=reason)
    if math.isnan(estimate.value):
        return GateDecision(gate, subject, "no data", reason="undefined on these cases")
    if gate.confidence not in {None, DERIVED_CONFIDENCE} and metric in measured.derived:
        reason = f"its interval is known at {DERIVED_CONFIDENCE:.0%} alone; write @{DERIVED_CONFIDENCE:.0%}"
        return GateDecision(gate, subject, "no data", estimate, reason)
    if gate.confidence is not None and not _has_width(estimate):
        reason = "no interval can be given for it from so few cases, or from cases that are all the same"
        return GateDecision(gate, subject, "no data", estimate, reason)
    return GateDecision(gate, subject, "met" if gate.holds(estimate) else "missed", estimate)


def _has_width(estimate: Estimate) -> bool:
    """Whether there is an interval with a width; without one, all cases happen to be equal, which bounds nothing."""
    if estimate.low is None or estimate.high is None:
        return False
    return estimate.high - estimate.low > ROUNDING * max(1.0, abs(estimate.value))


def select(tally: Tally, tag: str | None, value: str | None) -> Tally:
    """The cases with this tag value: of the named tag, else of any tag; all cases if there is no value."""
    return tally if value is None else tally.where(lambda row: is_selected(row, tag, value))


def is_selected(row: Row, tag: str | None, value: str | None) -> bool:
    """Whether `select` would keep a case."""
    if value is None:
        return True
    return row.tags.get(tag) == value if tag is not None else value in row.tags.values()


def all_tags(tally: Tally) -> set[tuple[str, str]]:
    """Every tag with every value."""
    return {pair for row in tally for pair in row.tags.items()}


def misspelt(gate: Gate, benchmark: str, metrics: Iterable[str]) -> str:
    """What is wrong with a gate's metric, given the scores of a first case; empty if nothing is.

    Other cases may have further scores, so only a name that closely resembles an existing one counts as misspelt.

    Args:
        gate: any.
        benchmark: of the case.
        metrics: names of its scores, and all that are declared.
    """
    names = {*metrics, PASS_RATE}
    if gate.benchmark != benchmark or gate.metric in {*names, "*"} or built_in(gate.metric) is not None:
        return ""
    if not difflib.get_close_matches(gate.metric, names, n=1, cutoff=0.8):
        return ""
    return f"gate '{gate.text}': no such metric{near(gate.metric, names)}"


def near(name: str, candidates: Iterable[str]) -> str:
    """The end of a message: the names that may have been meant, or the first dozen of all names."""
    names: Sequence[str] = sorted(candidates)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; there are {shown}" if names else ""
