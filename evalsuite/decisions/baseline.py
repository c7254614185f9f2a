"""A run against a baseline: paired by question, no worse within a margin, corrected over all metrics.

The statistics, with their formulas and sources, are `stats.compare_paired`, `stats.compare_statistic` and
`stats.verdicts`; what is decided here is which metrics are compared, on which cases, by which margin, and what
is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalsuite.decisions.gates import PASS_RATE, Gate, score_of, select
from evalsuite.decisions.pairing import Common, Pair, common_questions
from evalsuite.decisions.slices import slices
from evalsuite.results.built_in import RESOURCES
from evalsuite.results.guarded_metric import failure_of
from evalsuite.results.tally import Tally
from evalsuite.types import SHARE, Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalsuite.decisions.slices import Slice
    from evalsuite.results.runs import Bench, Run
    from evalsuite.stats import NonInferiority, NonInferiorityVerdict

MOST_GROUPS = 60
"""Times that a derived metric is computed again; with more clusters, some are left out together."""


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """By what a run is compared with its baseline.

    Attributes:
        margin: the loss that would matter, as a share of a metric's range.
        margins: the loss that would matter on a metric's own scale, by `metric` or `benchmark.metric`.
        min_paired: the share of questions that must be in both runs.
    """

    margin: float = 0.02
    margins: Mapping[str, float] = field(default_factory=dict)
    min_paired: float = 0.9


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
        """The loss that would matter, as a share of a metric's range."""
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
        """A line for each metric that cannot be compared, so that nothing is known of it."""
        return [
            f"{subject} is not compared with {self.name}: {reason}"
            for subject, reason in self.not_compared.items()
        ]

    def undecided(self) -> list[str]:
        """A line for each metric that is neither worse nor certainly no worse."""
        return [
            f"{subject} is undecided against {self.name}: {one.candidate:.4g} after {one.baseline:.4g}; "
            f"{one.n} cases could have shown {_shown(one)}"
            for subject, one, verdict in self.found
            if verdict == "undecided"
        ]

    def remarks(self) -> list[str]:
        """What whoever reads the comparison must know besides."""
        return [*self.changed, *self.unscored]


def _shown(one: NonInferiority) -> str:
    loss = f"a loss of {one.detectable:.3f} or more" if math.isfinite(one.detectable) else "no loss at all"
    return f"{loss} (power 80%)"


@dataclass(frozen=True, slots=True)
class _Compared:
    """A subject's comparison, with each cluster's part of the difference."""

    subject: ComparedMetric
    result: NonInferiority
    parts: Mapping[str, float]


def compare_to_baseline(
    baseline: Run, run: Run, gates: Iterable[Gate], rules: ComparisonRules | None = None
) -> Against:
    """Compares a run with its baseline, on the gated metrics, or, without gates, on the primary ones."""
    rules = rules or ComparisonRules()
    matches = {
        name: common_questions(baseline.benchmarks[name].tally, bench.tally)
        for name, bench in run.benchmarks.items()
        if name in baseline.benchmarks
    }
    compared: list[_Compared] = []
    flips: list[Flip] = []
    not_compared: dict[str, str] = {}
    unscored: list[str] = []
    parted: list[tuple[ComparedMetric, Common]] = []
    for subject in subjects(run, gates, rules):
        common = _selected(baseline, run, subject)
        reason = _obstacle(common, subject, baseline, run, rules)
        outcome = reason or _compare(common, subject, run, rules)
        if isinstance(outcome, str):
            not_compared[str(subject)] = outcome
        else:
            compared.append(outcome)
            parted.append((subject, common))
        pairs = common.pairs(subject.metric)
        flips += [Flip(subject, one.case, one.before, one.after) for one in pairs if one.before != one.after]
        unscored += _unscored(common, subject, baseline.folder.name)
    return Against(
        name=baseline.folder.name,
        rules=rules,
        found=_with_verdicts(compared),
        flips=sorted(flips, key=lambda flip: (-flip.loss, str(flip.subject), flip.case)),
        left_out=_one_sided(matches.values(), baseline, run),
        not_compared=not_compared,
        changed=_changes(matches, baseline.folder.name),
        unscored=unscored,
        slices=slices(parted),
    )


def subjects(
    run: Run, gates: Iterable[Gate], rules: ComparisonRules | None = None
) -> Iterator[ComparedMetric]:
    """What is compared: each gated metric once, in the gates' order.

    What a run took (`RESOURCES`) has no range that a margin could be a share of, and is compared only where
    `--margin` names it.
    """
    seen = set()
    for subject in _gated(run, list(gates)):
        named = rules is not None and own_margin(subject, rules) is not None
        if str(subject) not in seen and (subject.metric not in RESOURCES or named):
            seen.add(str(subject))
            yield subject


def _gated(run: Run, gates: Sequence[Gate]) -> Iterator[ComparedMetric]:
    for name, bench in run.benchmarks.items():
        own = [gate for gate in gates if gate.covers(name)]
        if not gates and bench.primary is not None:
            lower = declared(run, name, bench.primary).better == "lower" or bench.lower_is_better(
                bench.primary
            )
            yield ComparedMetric(name, None, None, bench.primary, lower_is_better=lower)
        for gate in own:
            for metric in bench.tally.metrics() if gate.metric == "*" else (gate.metric,):
                yield ComparedMetric(name, gate.tag, gate.value, metric, lower_is_better=not gate.wants_more)


def declared(run: Run, benchmark: str, metric: str) -> Metric:
    """What is known of a metric; one without a range where nothing is."""
    if metric == PASS_RATE:
        return SHARE
    return run.metrics(benchmark).get(metric, Metric())


def _selected(baseline: Run, run: Run, subject: ComparedMetric) -> Common:
    """The questions that a subject is about; tags are those of this run."""
    now = select(run.benchmarks[subject.benchmark].tally, subject.tag, subject.value)
    before = baseline.benchmarks.get(subject.benchmark)
    asked = {row.question for row in now}
    old = (
        before.tally.where(lambda row: subject.value is None or row.question in asked) if before else Tally()
    )
    return common_questions(old, now)


def _obstacle(
    common: Common, subject: ComparedMetric, baseline: Run, run: Run, rules: ComparisonRules
) -> str:
    """Why a subject cannot be compared; empty where it can."""
    name = baseline.folder.name
    if not common.before:
        there = ", ".join(baseline.benchmarks) or "nothing"
        return f"{name} holds no such case (it holds {there}); make a baseline of this suite"
    share, of = _paired_share(common, run)
    if share < rules.min_paired:
        replaced = len(common.replaced)
        changed = f"; {replaced} have another input or target than in {name}" if replaced else ""
        return (
            f"{len(common.shared)} of {of} questions are the same in both runs, fewer than --min-paired "
            f"{rules.min_paired:g}{changed}"
        )
    if _is_derived(run.benchmarks[subject.benchmark], subject.metric):
        return ""
    pairs = common.pairs(subject.metric)
    if len(pairs) < 2:
        return f"{len(pairs)} cases have it on both sides, and two are the least"
    return ""


def _paired_share(common: Common, run: Run) -> tuple[float, int]:
    """The share of questions that are in both runs, and of how many.

    A run of some cases is held against these; one of all cases must not have lost any either.
    """
    settings = run.info.get("settings", {})
    partly = settings.get("limit") or run.info.get("narrowed") or run.info.get("early")
    of = len(common.after) if partly else max(len(common.after), len(common.before))
    return (len(common.shared) / of if of else 0.0), of


def _is_derived(bench: Bench, metric: str) -> bool:
    return metric in bench.derived


def own_margin(subject: ComparedMetric, rules: ComparisonRules) -> float | None:
    """The loss that `--margin` says matters for a subject, on the metric's own scale."""
    return rules.margins.get(f"{subject.benchmark}.{subject.metric}", rules.margins.get(subject.metric))


def _scale(
    metric: Metric, own: float | None, values: Sequence[float], subject: ComparedMetric
) -> tuple[float, float | None] | str:
    """The width of a metric's range and the loss that matters, None being the usual share; or why there is none."""
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


def _compare(common: Common, subject: ComparedMetric, run: Run, rules: ComparisonRules) -> _Compared | str:
    if _is_derived(run.benchmarks[subject.benchmark], subject.metric):
        return _compare_derived(common, subject, run, rules)
    return _compare_means(common.pairs(subject.metric), subject, run, common, rules)


def _compare_means(
    pairs: Sequence[Pair], subject: ComparedMetric, run: Run, common: Common, rules: ComparisonRules
) -> _Compared | str:
    from evalsuite import stats

    every = [
        score
        for question in common.shared
        for row in (*common.before[question], *common.after[question])
        if (score := score_of(row, subject.metric)) is not None
    ]
    metric = declared(run, subject.benchmark, subject.metric)
    sized = _scale(metric, own_margin(subject, rules), every, subject)
    if isinstance(sized, str):
        return sized
    width, own = sized
    clusters = [one.cluster for one in pairs]
    result = stats.compare_paired(
        [one.before for one in pairs],
        [one.after for one in pairs],
        margin=rules.margin * width if own is None else own,
        clusters=clusters if len(set(clusters)) < len(clusters) else None,
        scale=width,
        lower_is_better=subject.lower_is_better,
    )
    parts: dict[str, float] = {}
    for one in pairs:
        parts[one.cluster] = parts.get(one.cluster, 0.0) + one.after - one.before
    return _Compared(subject, result, _as_gains(parts, subject))


def _as_gains(parts: dict[str, float], subject: ComparedMetric) -> dict[str, float]:
    return {name: -part for name, part in parts.items()} if subject.lower_is_better else parts


def _compare_derived(
    common: Common, subject: ComparedMetric, run: Run, rules: ComparisonRules
) -> _Compared | str:
    """Compares what is no mean over cases by leaving out clusters: both runs lose the same ones."""
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
    return _Compared(subject, result, _as_gains(parts, subject))


def _with_verdicts(
    compared: Sequence[_Compared],
) -> list[tuple[ComparedMetric, NonInferiority, NonInferiorityVerdict]]:
    if not compared:
        return []
    import numpy as np

    from evalsuite import stats

    clusters = sorted({(one.subject.benchmark, name) for one in compared for name in one.parts})
    parts = np.array(
        [
            [one.parts.get(name, 0.0) if one.subject.benchmark == benchmark else 0.0 for one in compared]
            for benchmark, name in clusters
        ]
    )
    found = stats.verdicts([one.result for one in compared], parts)
    return [(one.subject, one.result, verdict) for one, verdict in zip(compared, found, strict=True)]


def _one_sided(matches: Iterable[Common], baseline: Run, run: Run) -> dict[str, list[str]]:
    # A benchmark that this run did not touch is no loss of cases; it was not asked for.
    sides = [one.one_sided() for one in matches]
    new = [
        row.case
        for name, bench in run.benchmarks.items()
        if name not in baseline.benchmarks
        for row in bench.tally
    ]
    return {
        "only in the baseline": sorted(case for before, _ in sides for case in before),
        "only in this run": sorted([*(case for _, after in sides for case in after), *new]),
    }


def _changes(matches: Mapping[str, Common], name: str) -> list[str]:
    lines = []
    for benchmark, common in matches.items():
        parts = [f"{what} of {count}" for what, count in common.changed.items()]
        if common.replaced:
            parts.insert(0, f"input or target of {len(common.replaced)} (left out)")
        if parts:
            of = len(common.shared) + len(common.replaced)
            lines.append(f"{benchmark}: since {name}, of {of} questions have changed: {', '.join(parts)}")
    return lines


def _unscored(common: Common, subject: ComparedMetric, name: str) -> list[str]:
    before, after = common.unscored(subject.metric)
    where = [f"{count} in {place}" for count, place in ((before, name), (after, "this run")) if count]
    return [f"{subject}: questions left out because of errors: {', '.join(where)}"] if where else []
