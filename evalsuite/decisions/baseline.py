"""A run against a baseline: paired by case, no worse within a margin, Holm's correction over all metrics.

The statistics, with their formulas and sources, are `stats.compare_paired` and `stats.verdicts`; what is
decided here is which metrics are compared, on which cases, and what is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.decisions.gates import PASS_RATE, Gate, select

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Tally
    from evalsuite.stats import NonInferiority, NonInferiorityVerdict


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
        """How much worse it is; negative where it is better."""
        return self.after - self.before if self.subject.lower_is_better else self.before - self.after


@dataclass(frozen=True, slots=True)
class Against:
    """What became of a run against its baseline.

    Attributes:
        name: the baseline's name.
        margin: the loss that would matter.
        found: each subject with its comparison and verdict.
        flips: cases that changed, the greatest losses first.
        left_out: cases that exist on one side only, by side.
        not_compared: subjects that no pair of cases could be had for.
    """

    name: str
    margin: float
    found: Sequence[tuple[ComparedMetric, NonInferiority, NonInferiorityVerdict]]
    flips: Sequence[Flip]
    left_out: Mapping[str, Sequence[str]]
    not_compared: Sequence[str]

    def regressions(self) -> list[str]:
        """A line for each metric that is worse."""
        return [
            f"{subject} is worse than in {self.name}: {one.candidate:.4g} after {one.baseline:.4g} "
            f"(p = {one.pvalue:.2g})"
            for subject, one, verdict in self.found
            if verdict == "worse"
        ]

    def undecided(self) -> list[str]:
        """A line for each metric that is neither worse nor certainly no worse."""
        return [
            *(
                f"{subject} is not compared with {self.name}: too few cases have it on both sides"
                for subject in self.not_compared
            ),
            *self._undecided(),
        ]

    def _undecided(self) -> list[str]:
        return [
            f"{subject} is undecided against {self.name}: {one.candidate:.4g} after {one.baseline:.4g}; "
            f"{one.n} cases could have shown {_shown(one)}"
            for subject, one, verdict in self.found
            if verdict == "undecided"
        ]


def _shown(one: NonInferiority) -> str:
    loss = f"a loss of {one.detectable:.3f} or more" if math.isfinite(one.detectable) else "no loss at all"
    return f"{loss} (power 80%)"


def compare_to_baseline(baseline: Run, run: Run, gates: Iterable[Gate], margin: float) -> Against:
    """Compares a run with its baseline, on the gated metrics, or, without gates, on the primary ones."""
    from evalsuite import stats

    compared, flips, not_compared = [], [], []
    for subject in subjects(run, gates):
        pairs = list(_pairs(baseline, run, subject))
        flips += [Flip(subject, case, before, after) for case, _, before, after in pairs if before != after]
        if len(pairs) < 2:
            not_compared.append(str(subject))
            continue
        before, after = [pair[2] for pair in pairs], [pair[3] for pair in pairs]
        clusters = [pair[1] for pair in pairs]
        # Scores outside of [0, 1] (marks, counts) set their own scale, and the margin is a share of it.
        scale = max(1.0, *before, *after) - min(0.0, *before, *after)
        comparison = stats.compare_paired(
            before,
            after,
            margin=margin * scale,
            clusters=clusters if len(set(clusters)) < len(clusters) else None,
            scale=scale,
            lower_is_better=subject.lower_is_better,
        )
        compared.append((subject, comparison))
    found = stats.verdicts([comparison for _, comparison in compared]) if compared else []
    return Against(
        name=baseline.folder.name,
        margin=margin,
        found=[(subject, one, verdict) for (subject, one), verdict in zip(compared, found, strict=True)],
        flips=sorted(flips, key=lambda flip: (-flip.loss, str(flip.subject), flip.case)),
        left_out=_one_sided(baseline, run),
        not_compared=not_compared,
    )


def subjects(run: Run, gates: Iterable[Gate]) -> Iterator[ComparedMetric]:
    """What is compared: each gated metric once, in the gates' order."""
    seen = set()
    for subject in _gated(run, list(gates)):
        if str(subject) not in seen:
            seen.add(str(subject))
            yield subject


def _gated(run: Run, gates: Sequence[Gate]) -> Iterator[ComparedMetric]:
    for name, bench in run.benchmarks.items():
        own = [gate for gate in gates if gate.covers(name)]
        if not gates and bench.primary is not None:
            yield ComparedMetric(name, None, None, bench.primary, lower_is_better=False)
        for gate in own:
            for metric in bench.tally.metrics() if gate.metric == "*" else (gate.metric,):
                yield ComparedMetric(name, gate.tag, gate.value, metric, lower_is_better=not gate.wants_more)


def _pairs(baseline: Run, run: Run, subject: ComparedMetric) -> Iterator[tuple[str, str, float, float]]:
    """Case, cluster and both scores of every case that both runs scored."""
    before = baseline.benchmarks.get(subject.benchmark)
    if before is None:
        return
    old = dict(_scores(before.tally, subject))
    now = select(run.benchmarks[subject.benchmark].tally, subject.tag, subject.value)
    clusters = {row.case: row.cluster for row in now}
    for case, score in _scores(now, subject):
        if case in old:
            yield case, clusters[case], old[case], score


def _scores(cases: Tally, subject: ComparedMetric) -> Iterator[tuple[str, float]]:
    if subject.metric == PASS_RATE:
        passed = {"passed": 1.0, "failed": 0.0}
        yield from ((row.case, passed[row.outcome]) for row in cases if row.outcome in passed)
    else:
        yield from ((row.case, row.scores[subject.metric]) for row in cases.scored(subject.metric))


def _one_sided(baseline: Run, run: Run) -> dict[str, list[str]]:
    # A benchmark that this run did not touch is no loss of cases; it was not asked for.
    old = {
        row.case
        for name in run.benchmarks
        if name in baseline.benchmarks
        for row in baseline.benchmarks[name].tally
    }
    now = {row.case for row in run.all_rows()}
    return {"only in the baseline": sorted(old - now), "only in this run": sorted(now - old)}
