"""Data of a comparison with a baseline: its rules, the compared metrics and the results."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalsuite.core.types import SHARE, Metric
from evalsuite.decisions.measured import PASS_RATE
from evalsuite.results.built_in import RESOURCES
from evalsuite.results.judge_labels import is_canary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalsuite.decisions.conditions import Gate
    from evalsuite.decisions.pairing import Common, Pair
    from evalsuite.results.runs import Bench, Run
    from evalsuite.stats import NonInferiority, NonInferiorityVerdict


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """How a run is compared with its baseline."""

    margin: float = 0.02  # the smallest loss that matters, as a share of a metric's range
    # the smallest loss that matters on a metric's own scale, by `metric` or `benchmark.metric`
    margins: Mapping[str, float] = field(default_factory=dict)
    min_paired: float = 0.9  # the share of questions that both runs must have
    confidence: float = 0.95  # the joint confidence of all verdicts


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """One metric, on all or some of a benchmark's cases."""

    benchmark: str
    tag: str | None  # the tag's name, if the gate has one
    value: str | None  # the tag's value; None for all cases
    metric: str
    lower_is_better: bool  # whether a rise is a loss

    def __str__(self) -> str:
        cases = f"{self.tag}={self.value}" if self.tag else self.value
        return f"{self.benchmark}[{cases}].{self.metric}" if cases else f"{self.benchmark}.{self.metric}"


@dataclass(frozen=True, slots=True)
class Flip:
    """A case whose score changed."""

    subject: ComparedMetric
    case: str
    before: float  # the baseline's score
    after: float

    @property
    def loss(self) -> float:
        """How much worse this run is; negative if it is better."""
        return self.after - self.before if self.subject.lower_is_better else self.before - self.after


@dataclass(frozen=True, slots=True)
class Against:
    """The result of comparing a run with its baseline."""

    name: str
    rules: ComparisonRules
    # each subject with its comparison and verdict
    found: Sequence[tuple[ComparedMetric, NonInferiority, NonInferiorityVerdict]]
    flips: Sequence[Flip]  # cases whose score changed, the greatest losses first
    left_out: Mapping[str, Sequence[str]]  # cases that only one of the runs has, by run
    # subjects that could not be compared, each with the reason
    not_compared: Mapping[str, str] = field(default_factory=dict)
    # descriptions of further differences between the runs, by benchmark; the model is not listed
    changed: Sequence[str] = ()
    unscored: Sequence[str] = ()  # one line for each subject whose pairs lack cases because of errors
    slices: Sequence[Slice] = ()  # the questions grouped by the values of each tag, the greatest losses first

    @property
    def margin(self) -> float:
        """The smallest loss that matters, as a share of a metric's range."""
        return self.rules.margin

    def regressions(self) -> list[str]:
        """Report each metric that is worse."""
        return [
            f"{subject} is worse than in {self.name}: {one.candidate:.4g} after {one.baseline:.4g} "
            f"(p = {one.pvalue:.2g})"
            for subject, one, verdict in self.found
            if verdict == "worse"
        ]

    def lacking(self) -> list[str]:
        """Report each metric that could not be compared."""
        return [
            f"{subject} is not compared with {self.name}: {reason}" for subject, reason in self.not_compared.items()
        ]

    def find_undecided(self) -> list[str]:
        """Report each metric that is neither shown to be worse nor shown to be at least as good."""
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


def subjects(run: Run, gates: Iterable[Gate], rules: ComparisonRules | None = None) -> Iterator[ComparedMetric]:
    """Yield the metrics to compare: each gated metric once, in the order of the gates.

    Resources such as cost (`RESOURCES`) have no range of which a margin could be a share, so they are compared only if
    `evalsuite_margins` names them.
    """
    seen = set()
    for subject in _find_subjects(run, list(gates)):
        named = rules is not None and own_margin(subject, rules) is not None
        if str(subject) not in seen and (subject.metric not in RESOURCES or named):
            seen.add(str(subject))
            yield subject


def _find_subjects(run: Run, gates: Sequence[Gate]) -> Iterator[ComparedMetric]:
    for name, bench in run.benchmarks.items():
        if is_canary(bench.tally):
            # A canary's answers are fixed, so only the judge can change its scores; see `judge_drift`.
            continue
        own = [gate for gate in gates if gate.covers(name)]
        if not gates and bench.primary is not None:
            lower = run.lower_is_better(name, bench.primary)
            yield ComparedMetric(name, None, None, bench.primary, lower_is_better=lower)
        for gate in own:
            for metric in bench.tally.metrics() if gate.metric == "*" else (gate.metric,):
                yield ComparedMetric(name, gate.tag, gate.value, metric, lower_is_better=not gate.wants_more)


def find_declaration(run: Run, benchmark: str, metric: str) -> Metric:
    """Find a metric's declaration; an undeclared metric gets one without a range."""
    if metric == PASS_RATE:
        return SHARE
    return run.metrics(benchmark).get(metric, Metric())


def is_derived(bench: Bench, metric: str) -> bool:
    """Tell whether a metric is something other than a mean over cases."""
    return metric in bench.derived


def own_margin(subject: ComparedMetric, rules: ComparisonRules) -> float | None:
    """Find the loss that `evalsuite_margin` sets for a subject, on the metric's own scale."""
    return rules.margins.get(f"{subject.benchmark}.{subject.metric}", rules.margins.get(subject.metric))


FEWEST = 5  # minimum questions in a slice: McNemar's test cannot show anything with fewer

GROUPING = "cluster"  # a tag that groups related cases; its values do not define slices


@dataclass(frozen=True, slots=True)
class Slice:
    """The questions with one value of a tag, in two runs."""

    subject: ComparedMetric
    tag: str  # the name of a tag, or of an entry in the samples' metadata
    value: str
    n: int
    before: float  # the baseline's mean
    after: float
    pvalue: float  # two-sided p-value of no difference, corrected by Holm's method for all slices that were tested

    @property
    def loss(self) -> float:
        """How much worse this run is; negative if it is better."""
        return self.after - self.before if self.subject.lower_is_better else self.before - self.after


def slices(compared: Iterable[tuple[ComparedMetric, Common]]) -> list[Slice]:
    """List all slices of all metrics, largest loss first."""
    from evalsuite.stats import holm

    looked_at = [
        (subject, tag, value, pairs)
        for subject, common in compared
        for (tag, value), pairs in _by_tag(common, subject.metric).items()
    ]
    if not looked_at:
        return []
    adjusted = holm([_pvalue(pairs) for *_, pairs in looked_at])
    parts = [
        Slice(
            subject,
            tag,
            value,
            len(pairs),
            math.fsum(pair.before for pair in pairs) / len(pairs),
            math.fsum(pair.after for pair in pairs) / len(pairs),
            pvalue,
        )
        for (subject, tag, value, pairs), pvalue in zip(looked_at, adjusted, strict=True)
    ]
    return sorted(parts, key=lambda part: (-part.loss, str(part.subject), part.tag, part.value))


def _by_tag(common: Common, metric: str) -> dict[tuple[str, str], list[Pair]]:
    """Group the pairs by the values of each tag or metadata entry that has several values."""
    pairs = common.pairs(metric)
    parts: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        for tag, value in {**pair.row.facts.get("metadata", {}), **pair.row.tags}.items():
            if tag != GROUPING:
                parts.setdefault((tag, value), []).append(pair)
    return {key: part for key, part in sorted(parts.items()) if FEWEST <= len(part) < len(pairs)}


def _pvalue(pairs: Sequence[Pair]) -> float:
    from evalsuite.stats import mcnemar, paired_difference

    before, after = [pair.before for pair in pairs], [pair.after for pair in pairs]
    clusters = [pair.row.cluster for pair in pairs]
    apart = len(set(clusters)) == len(clusters)
    if apart and {*before, *after} <= {0.0, 1.0}:
        return mcnemar(before, after)
    return paired_difference(before, after, clusters=None if apart else clusters).pvalue
