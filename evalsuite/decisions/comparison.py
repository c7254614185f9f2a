"""Data of a comparison with a baseline: the questions that two runs share, the compared metrics and the results.

Questions are paired by benchmark, sample and mode, regardless of file names, folders and test functions. A question's
score is the mean over its epochs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from evalsuite import stats
from evalsuite.core.types import ASSERTS, PASS_RATE, SHARE, Metric, are_outcomes
from evalsuite.decisions.gates import Gate, GateDecision, GateOutcome
from evalsuite.decisions.measured import MOST_GROUPS, get_score, has_sample_passed
from evalsuite.results.built_in import is_resource_metric
from evalsuite.results.judge_labels import is_canary
from evalsuite.results.tally import Estimate, Question, Row, Tally

if TYPE_CHECKING:
    from evalsuite.results.runs import BenchmarkResults, Run

Compute: TypeAlias = "Callable[[Tally], Estimate | None]"
SAME_QUESTION = ("input", "target")  # Fingerprints in which two cases must agree to be the same question.
REPORTED_FINGERPRINTS = ("prompt", "params", "scorers", "faults", "judge", "user", "programs")
"""Fingerprints whose changes are reported as further differences between the runs besides the model."""


@dataclass(frozen=True, slots=True)
class ScorePair:
    """A question that was scored in both runs."""

    row: Row  # The question's first case in this run.
    before: float  # The baseline's score, the mean over its epochs.
    after: float  # This run's score, the mean over its epochs.


def split_score_pairs(pairs: Sequence[ScorePair]) -> tuple[list[float], list[float], list[str] | None]:
    """Return the baseline's scores, this run's scores, and the clusters; None if each question has its own cluster."""
    clusters = [pair.row.cluster for pair in pairs]
    before, after = [pair.before for pair in pairs], [pair.after for pair in pairs]
    return before, after, clusters if len(set(clusters)) < len(clusters) else None


def group_by_question(cases: Tally) -> dict[Question, list[Row]]:
    """Group a benchmark's cases by question, in order of each question's first case."""
    questions: dict[Question, list[Row]] = {}
    for row in cases:
        questions.setdefault(row.question, []).append(row)
    return questions


@dataclass(frozen=True, slots=True)
class SharedQuestions:
    """The questions of one benchmark in two runs."""

    before: Mapping[Question, list[Row]]  # The baseline's cases by question.
    after: Mapping[Question, list[Row]]  # This run's cases by question.
    shared: tuple[Question, ...] = ()  # Questions that are the same in both runs, in this run's order.
    replaced: tuple[Question, ...] = ()  # Questions with the same name but different content in the runs.
    # For each fingerprint in `REPORTED_FINGERPRINTS`: the number of questions in which it differs between the runs.
    changed: Mapping[str, int] = field(default_factory=dict)

    def list_pairs(self, metric: str) -> list[ScorePair]:
        """Pair the two runs' scores for a metric, for each shared question that was scored in both runs."""
        found = []
        for question in self.shared:
            before, after = (compute_mean_score(run[question], metric) for run in (self.before, self.after))
            if before is not None and after is not None:
                found.append(ScorePair(self.after[question][0], before, after))
        return found

    def list_scores_of_both_runs(self, metric: str) -> list[tuple[list[float], list[float]]]:
        """List each shared question's scores in the baseline and in this run, each one per epoch."""
        rows = [(self.before[question], self.after[question]) for question in self.shared]
        return [(list_scores_of_question(old, metric), list_scores_of_question(new, metric)) for old, new in rows]

    def compute_replicates(self, compute: Compute) -> list[tuple[float, float]]:
        """Compute a metric's jackknife replicates in both runs; each leaves out one of up to `MOST_GROUPS` groups."""
        names = self.list_clusters()
        count = min(MOST_GROUPS, len(names))
        return [self.compute_metric_in_both_runs(compute, frozenset(names[start::count])) for start in range(count)]

    def compute_metric_in_both_runs(
        self, compute: Compute, left_out_clusters: frozenset[str] = frozenset()
    ) -> tuple[float, float]:
        """Compute a metric in both runs on the shared questions, leaving out the given clusters."""
        kept = [question for question in self.shared if self.after[question][0].cluster not in left_out_clusters]
        runs = (self.before, self.after)
        before, after = (compute(Tally.of(row for question in kept for row in run[question])) for run in runs)
        return (before.value if before else math.nan), (after.value if after else math.nan)

    def list_clusters(self) -> list[str]:
        """List the distinct clusters of the shared questions, in order of first appearance."""
        return list(dict.fromkeys(self.after[question][0].cluster for question in self.shared))


def pair_questions(before: Tally, after: Tally) -> SharedQuestions:
    """Pair the questions of one benchmark in two runs, given the cases of each run."""
    old, new = group_by_question(before), group_by_question(after)
    shared, replaced = [], []
    changed = Counter[str]()
    for question in (question for question in new if question in old):
        first, other = new[question][0].fingerprints, old[question][0].fingerprints
        if is_same_question(first, other):
            shared.append(question)
            changed.update(_list_changed_fingerprints(first, other, REPORTED_FINGERPRINTS))
        else:
            replaced.append(question)
    return SharedQuestions(old, new, tuple(shared), tuple(replaced), changed)


def is_same_question(first: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Tell whether two cases with the same name ask the same question, by comparing their fingerprints."""
    return not _list_changed_fingerprints(first, other, SAME_QUESTION)


def _list_changed_fingerprints(first: Mapping[str, str], other: Mapping[str, str], names: tuple[str, ...]) -> list[str]:
    """List the names of fingerprints that differ between two cases.

    Ignore a fingerprint that only one of the cases has, because older runs lack some fingerprints. The fingerprints
    `judge` and `faults` always count, because a case without them had no judge or no injected faults.
    """
    both = bool(first) and bool(other)
    return [
        name
        for name in names
        if first.get(name) != other.get(name)
        and ((name in first and name in other) or (name in {"judge", "faults"} and both))
    ]


def list_scores_of_question(rows: Sequence[Row], metric: str) -> list[float]:
    """List a question's scores, one per epoch; if several epochs must pass, its pass rate is one score, as in gates."""
    if metric == PASS_RATE and any("at_least" in row.facts for row in rows):
        has_passed = has_sample_passed(rows)
        return [] if has_passed is None else [float(has_passed)]
    return [score for row in rows if (score := get_score(row, metric)) is not None]


def compute_mean_score(rows: Sequence[Row], metric: str) -> float | None:
    """Compute the mean of a question's scores over its epochs; None without a score."""
    scores = list_scores_of_question(rows, metric)
    return math.fsum(scores) / len(scores) if scores else None


LOSS = 0.02  # The default margin (the smallest loss that matters), as a share of the metric's range.


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """The settings of a comparison with a baseline."""

    margin: float = LOSS  # The smallest loss that matters, as a share of a metric's range.
    # Margins that gates state, on the metric's own scale, keyed by `metric` or `benchmark.metric`.
    margins: Mapping[str, float] = field(default_factory=dict)
    min_paired: float = 0.9  # The minimum share of questions that must be in both runs.
    confidence: float = 0.95  # The confidence that holds for all verdicts together.
    accepted: frozenset[str] = frozenset()  # Names from `INCOMPARABLE`: differences between runs that the user allows.

    def get_margin(self, benchmark: str) -> float:
        """Return the smallest loss that matters for a benchmark's metrics, as a share of their ranges."""
        return self.margins.get(f"{benchmark}.*", self.margin)


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """One metric, on all cases of a benchmark or on the cases with a tag."""

    benchmark: str
    tag: str | None  # The tag's name, if the gate has one.
    value: str | None  # The tag's value; None means all cases.
    metric: str  # The metric's name; `*` for all metrics of a benchmark that only the baseline has.
    lower_is_better: bool  # Whether a higher value is a loss.

    def __str__(self) -> str:
        cases = f"{self.tag}={self.value}" if self.tag else self.value
        return f"{self.benchmark}[{cases}].{self.metric}" if cases else f"{self.benchmark}.{self.metric}"


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """A metric's value in two runs."""

    subject: ComparedMetric
    before: float  # The baseline's score or mean score.
    after: float

    @property
    def loss(self) -> float:
        """The loss of this run against the baseline; negative for a gain."""
        return self.after - self.before if self.subject.lower_is_better else self.before - self.after


@dataclass(frozen=True, slots=True)
class ScoreFlip(ScoreChange):
    """A case whose score changed."""

    case: str


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """The result of comparing a run with its baseline."""

    name: str  # The baseline's name.
    rules: ComparisonRules
    # Each metric with its comparison and verdict.
    found: Sequence[tuple[ComparedMetric, stats.NonInferiority, stats.NonInferiorityVerdict]]
    flips: Sequence[ScoreFlip]  # Cases whose score changed, the greatest losses first.
    left_out: Mapping[str, Sequence[str]]  # Cases that only one of the two runs has, keyed by run.
    # Metrics that could not be compared, each with the reason.
    not_compared: Mapping[ComparedMetric, str] = field(default_factory=dict)
    remarks: Sequence[str] = ()  # How the runs differ apart from the model, and which questions lack a score.
    expired: str = ""  # The reason why the baseline is invalid; empty if it is valid.
    # Comparisons of slices (questions with one value of a tag), greatest losses first.
    slices: Sequence[ComparedSlice] = ()

    def list_regressions(self) -> list[str]:
        """Report each metric whose verdict is `worse`."""
        return [
            f"{subject} is worse than in {self.name}: {one.candidate:.4g} after {one.baseline:.4g} "
            f"(p = {one.pvalue:.2g})"
            for subject, one, verdict in self.found
            if verdict == "worse"
        ]

    def list_incomparable_metrics(self) -> list[str]:
        """Report each metric that could not be compared, and whether the baseline has expired."""
        lines = [f"{subject} is not compared with {self.name}: {why}" for subject, why in self.not_compared.items()]
        return [self.expired, *lines] if self.expired else lines

    def list_undecided_metrics(self, *, enough: bool = False, decisions: Iterable[GateDecision] = ()) -> list[str]:
        """Report undecided metrics; with `enough`, only metrics that are undecided although there are enough cases.

        Leave out metrics whose shortage of cases the gates' decisions already state.
        """
        stated = [(decision.subject, decision.reason) for decision in decisions if decision.reason]
        return [
            f"{subject} is undecided against {self.name}: {one.candidate:.4g} after {one.baseline:.4g}; "
            f"{one.n} cases could have shown {loss} (power 80%)"
            for subject, one, verdict in self.found
            if verdict == "undecided"
            for shortage in [self._describe_shortage(one)]
            for loss in [f"a loss of {one.detectable:.3f} or more" if one.detectable < math.inf else "no loss at all"]
            if not shortage or not (enough or any(name == str(subject) and shortage in text for name, text in stated))
        ]

    def describe_case_shortage(self) -> str:
        """State how many cases would decide every undecided metric; return "" if there are enough cases."""
        undecided = [one for _, one, verdict in self.found if verdict == "undecided"]
        most = max(undecided, key=lambda one: one.count_needed(self.strictest_confidence), default=None)
        return self._describe_shortage(most) if most else ""

    def _describe_shortage(self, compared: stats.NonInferiority) -> str:
        """State how many cases would decide an undecided metric; return "" if there are enough cases."""
        needed = compared.count_needed(self.strictest_confidence)
        if compared.n >= needed:
            return ""
        seen = f"{compared.detectable:.2g}" if math.isfinite(compared.detectable) else "none"
        return f"too few cases to see a loss of {compared.margin:g} (they see {seen}): {needed:,} needed"

    @property
    def strictest_confidence(self) -> float:
        """The confidence that Holm's procedure requires in its first and strictest test."""
        return 1 - (1 - self.rules.confidence) / len(self.found)

    def decide_gate(self, gate: Gate) -> list[GateDecision]:
        """Decide a gate against this baseline, once for each compared metric to which the gate applies."""
        decisions = [
            GateDecision(gate, str(subject), "no data", reason=reason)
            for subject, reason in self.not_compared.items()
            if _is_gate_about(gate, subject)
        ]
        for subject, one, verdict in self.found:
            if not _is_gate_about(gate, subject):
                continue
            estimate = Estimate(one.difference, one.low, one.high, one.n)
            outcome: GateOutcome = "met" if verdict == "no worse" else "missed"
            reason = f"after {one.baseline:.4g}; a loss of {one.margin:g} matters"
            if verdict == "undecided" and (shortage := self._describe_shortage(one)):
                outcome, reason = "no data", shortage
            decisions.append(GateDecision(gate, str(subject), outcome, estimate, reason))
        return decisions


def _is_gate_about(gate: Gate, subject: ComparedMetric) -> bool:
    """Tell whether a gate applies to a compared metric; a gate on all metrics applies to all cases and tags."""
    is_same = (gate.tag, gate.value, gate.metric) == (subject.tag, subject.value, subject.metric)
    return gate.covers_benchmark(subject.benchmark) and (is_same or gate.metric == "*")


def list_compared_metrics(
    run: Run, gates: Iterable[Gate], rules: ComparisonRules | None = None, baseline: Run | None = None
) -> Iterator[ComparedMetric]:
    """Yield each metric that gates name, in the gates' order; if they name none, each benchmark's primary metric.

    A margin is usually a share of a metric's range. A resource such as cost has no range, so it is compared only if a
    gate states its margin (the smallest loss that matters). A score with a resource's name counts as a score.

    Args:
        baseline: the run whose primary metric is used if no case of this run has this metric.
    """
    seen = set()
    for subject in _list_gated_or_primary_metrics(run, list(gates), baseline):
        named = rules is not None and find_gate_margin(subject, rules) is not None
        is_score = subject.metric in run.benchmarks[subject.benchmark].tally.metrics()
        if str(subject) not in seen and (is_score or named or not is_resource_metric(subject.metric)):
            seen.add(str(subject))
            yield subject


def _list_gated_or_primary_metrics(run: Run, gates: Sequence[Gate], baseline: Run | None) -> Iterator[ComparedMetric]:
    for name, bench in run.benchmarks.items():
        if is_canary(bench.tally):  # Only a changed judge can change the scores of canaries, whose answers are fixed.
            continue
        # Leave out gates of the form `* no worse than RUN`: they name no metric of their own.
        own = [gate for gate in gates if gate.covers_benchmark(name) and not (gate.than and gate.metric == "*")]
        if not own and (not gates or any(gate.than and gate.metric == "*" for gate in gates)):
            before = baseline.benchmarks.get(name) if baseline else None
            if primary := _choose_primary_metric(bench, before):
                yield ComparedMetric(name, None, None, primary, lower_is_better=run.lower_is_better(name, primary))
        for gate in own:
            for metric in bench.tally.metrics() if gate.metric == "*" else (gate.metric,):
                lower = not gate.is_higher_better or (bool(gate.than) and run.lower_is_better(name, metric))
                yield ComparedMetric(name, gate.tag, gate.value, metric, lower_is_better=lower)


def _choose_primary_metric(bench: BenchmarkResults, before: BenchmarkResults | None) -> str | None:
    """Choose the metric to compare if no gate names one; None if there is neither a score nor a test that can fail.

    If this run lacks the baseline's primary metric, choose that metric nevertheless, so that the loss is noticed.
    """
    earlier = before.primary if before else None
    if earlier and earlier not in bench.tally.metrics() and earlier not in bench.derived:
        return earlier
    asserts = any(row.facts.get(ASSERTS, True) for row in bench.tally)
    return bench.primary or (PASS_RATE if asserts else None)


def find_declaration(run: Run, benchmark: str, metric: str) -> Metric:
    """Find a metric's declaration; for an undeclared metric, return a default declaration without a range."""
    if metric == PASS_RATE:
        return SHARE
    return run.metrics(benchmark).get(metric, Metric())


def find_range(run: Run, subject: ComparedMetric, scores: Iterable[float]) -> tuple[float, float] | None:
    """Find a metric's range: the declared range, or 0 to 1 if all scores are 0 or 1; None if it is unknown."""
    declared = find_declaration(run, subject.benchmark, subject.metric).range
    return declared or (SHARE.range if are_outcomes(scores, None) else None)


def find_gate_margin(subject: ComparedMetric, rules: ComparisonRules) -> float | None:
    """Find the margin that a gate names for a metric, on the metric's own scale; None if no gate names a margin."""
    return rules.margins.get(f"{subject.benchmark}.{subject.metric}", rules.margins.get(subject.metric))


FEWEST = 5  # The minimum number of questions in a slice; with fewer questions, McNemar's test is never significant.
GROUPING = "cluster"  # Tag that groups related cases into clusters; its values do not define slices.


@dataclass(frozen=True, slots=True)
class ComparedSlice(ScoreChange):
    """A comparison of two runs on a slice: the questions with one value of a tag."""

    tag: str  # The name of a tag, or of an entry in the samples' metadata.
    value: str
    n: int
    pvalue: float  # The two-sided p-value for no difference, Holm-corrected over all slices.


def list_slices(compared: Iterable[tuple[ComparedMetric, SharedQuestions]]) -> list[ComparedSlice]:
    """List all slices of all metrics, largest loss first."""
    from evalsuite.stats.paired import compute_paired_pvalue

    looked_at = [
        (subject, tag, value, split_score_pairs(pairs))
        for subject, questions in compared
        for (tag, value), pairs in _group_pairs_by_tag(questions, subject.metric).items()
    ]
    if not looked_at:
        return []
    adjusted = stats.holm([compute_paired_pvalue(*scores) for *_, scores in looked_at])
    parts = [
        ComparedSlice(subject, math.fsum(old) / len(old), math.fsum(new) / len(new), tag, value, len(old), pvalue)
        for (subject, tag, value, (old, new, _)), pvalue in zip(looked_at, adjusted, strict=True)
    ]
    return sorted(parts, key=lambda part: (-part.loss, str(part.subject), part.tag, part.value))


def _group_pairs_by_tag(questions: SharedQuestions, metric: str) -> dict[tuple[str, str], list[ScorePair]]:
    """Group score pairs by tag and value; leave out values that all questions, or fewer than `FEWEST`, have."""
    pairs = questions.list_pairs(metric)
    parts: dict[tuple[str, str], list[ScorePair]] = {}
    for pair in pairs:
        for tag, value in {**pair.row.facts.get("metadata", {}), **pair.row.tags}.items():
            if tag != GROUPING:
                parts.setdefault((tag, value), []).append(pair)
    return {key: part for key, part in sorted(parts.items()) if FEWEST <= len(part) < len(pairs)}
