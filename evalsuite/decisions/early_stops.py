"""Decide gates during a run by confidence sequences: intervals that stay valid however often they are checked.

If all scores are 0 or 1, the sequence is Robbins' beta-binomial mixture (`stats.BinarySequence`). If some scores lie
between 0 and 1, and their range is declared, the sequence is the hedged capital of Waudby-Smith and Ramdas, arXiv
2010.09686 (`stats.BoundedSequence`). The cases run in random order, so the finished cases represent all cases.

The confidence sequences assume an unlimited number of cases, although the run plans a fixed number. Sequences for a
fixed number of scores would be narrower, but wrong if some cases turned out to have no score. The number of scores is
known only at the end, because skipped cases and cases with errors have no score.

A gate without a confidence concerns only the planned cases, so cases that share a source need not be independent. A
gate with a confidence (`@95%`) is a statement about further cases of the same kind. A gate with a confidence uses only
each sample's first epoch. If samples share a source, a gate with a confidence is decided only after the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from evalsuite import stats
from evalsuite.core.types import PASS_RATE, SHARE, are_outcomes
from evalsuite.decisions import comparison
from evalsuite.decisions.comparison import BaselineComparison, ComparedMetric, ComparisonRules
from evalsuite.decisions.measured import get_score, is_selected

if TYPE_CHECKING:
    from evalsuite.decisions.gates import Gate, GateDecision
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Question, Row

T = TypeVar("T")
FindRange: TypeAlias = "Callable[[str, str], tuple[float, float] | None]"  # From a benchmark and one of its scores.
NOTHING: Any = object()  # Placeholder that `interleave_parts` puts at the end of shorter parts.


class ResultSequencer(Generic[T]):
    """Passes on results in the planned order: a result waits until all results planned before it have arrived.

    The confidence sequences assume a random sample. The first results to arrive are not a random sample, because
    correct answers may be faster than wrong answers. The order of all planned items (`ids`) must be chosen before the
    first request.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = list(dict.fromkeys(ids))
        self._waiting: dict[str, T | None] = {}
        self._next = 0

    @property
    def waiting_count(self) -> int:
        """The number of results that have arrived but wait for results planned before them."""
        return sum(result is not None for result in self._waiting.values())

    @property
    def next_item(self) -> str | None:
        """The next item whose result will be used; None if all results have been used."""
        return self._ids[self._next] if self._next < len(self._ids) else None

    def add_result(self, item: str, result: T | None) -> Iterator[T]:
        """Store a finished item's result (None if it has none), and yield all results that no longer have to wait."""
        if item not in self._waiting:
            self._waiting[item] = result
        while self._next < len(self._ids) and self._ids[self._next] in self._waiting:
            ready = self._waiting[self._ids[self._next]]
            self._next += 1
            if ready is not None:
                yield ready


def reorder_for_workers(wanted: Sequence[T], worker_count: int) -> list[T]:
    """Reorder items for workers that each run a contiguous part, so that items finish roughly in the given order."""
    places = interleave_parts(range(len(wanted)), worker_count)
    return [item for _, item in sorted(zip(places, wanted, strict=True), key=lambda pair: pair[0])]


def interleave_parts(ids: Sequence[T], worker_count: int) -> list[T]:
    """List the first item of each worker's part, then the second item of each part, and so on."""
    parts, start = [], 0
    for left in range(max(1, worker_count), 0, -1):
        size = (len(ids) - start) // left
        parts.append(ids[start : start + size])
        start += size
    return [item for item in chain.from_iterable(zip_longest(*parts, fillvalue=NOTHING)) if item is not NOTHING]


CONFIDENCE = 0.95  # The confidence of an early decision if the gate does not state a confidence.
EARLY_SHARE = 0.5  # Half of a decision's error probability is for early checks, the other half for the final check.
LEFT_OUT = "a gate is decided where its benchmark is collected, which leaves undecided"
"""The beginning of the remark on gates of an ini file whose cases this session did not collect."""


def compute_final_confidence(confidence: float) -> float:
    """Compute the confidence of a gate's final check; early checks have used up a part of the error probability."""
    return 1 - (1 - confidence) * (1 - EARLY_SHARE)


class EarlyGate:
    """A gate that is checked after each finished case, so that it may be decided early.

    Args:
        share: the part of the run's total error probability that this gate may use.
        find_range: function that finds a score's declared range; None if no range is declared. Without a declared
            range, only scores of 0 and 1 are decided early.
    """

    def __init__(self, gate: Gate, share: float = 1.0, find_range: FindRange = lambda *_: None) -> None:
        self.gate, self._find_range = gate, find_range
        # The final check of a gate without a confidence cannot err, so early checks get the whole error probability.
        early = share if gate.confidence is None else share * EARLY_SHARE
        self._confidence = 1 - (1 - (gate.confidence or CONFIDENCE)) * early
        self._scores: list[float] = []
        self._sequence: stats.ConfidenceSequence | None = None
        self._impossible = "*" in {gate.metric, gate.benchmark}
        self._sample_of: dict[str, str] = {}

    def add_case(self, benchmark: str, row: Row) -> None:
        if self.gate.metric == PASS_RATE and "at_least" in row.facts:
            # Decide after the run, because a sample has passed or failed only after all of its epochs.
            self._impossible = True
        is_covered = self.gate.covers_benchmark(benchmark) and is_selected(row, self.gate.tag, self.gate.value)
        if self._impossible or not is_covered:
            return
        score = get_score(row, self.gate.metric)
        if score is None or not self._is_independent(row):
            return
        declared = SHARE.range if self.gate.metric == PASS_RATE else self._find_range(benchmark, self.gate.metric)
        if not (are_outcomes([score], None) if declared is None else 0 <= declared[0] <= score <= declared[1] <= 1):
            # Decide after the run, because the confidence sequences assume that all scores lie in [0, 1].
            self._impossible = True
            return
        self._scores.append(score)
        is_binary = score in {0.0, 1.0}
        if self._sequence is None or (isinstance(self._sequence, stats.BinarySequence) and not is_binary):
            # At the first score that is neither 0 nor 1, start again with the confidence sequence for bounded scores.
            kind = stats.BinarySequence if is_binary else stats.BoundedSequence
            self._sequence = kind(confidence=self._confidence)
            for earlier in self._scores[:-1]:
                self._sequence.add(earlier)
        self._sequence.add(score)

    def _is_independent(self, row: Row) -> bool:
        """Tell whether a case is independent of earlier cases; if samples share a source, decide the gate later."""
        if self.gate.confidence is None:
            return True
        if row.cluster not in self._sample_of:
            self._sample_of[row.cluster] = row.sample
            return True
        # Do not use one sample per source instead: sources with few samples would get too much weight.
        self._impossible = self._sample_of[row.cluster] != row.sample
        return False

    @property
    def can_use_more_samples(self) -> bool:
        """Whether the gate is undecided and more samples could decide it."""
        return self.verdict == "open" and not self._impossible

    @property
    def can_use_more_epochs(self) -> bool:
        """Whether the gate is undecided and more epochs of the same samples could decide it."""
        return self.can_use_more_samples and self.gate.confidence is None

    @property
    def verdict(self) -> Literal["met", "missed", "open"]:
        """The current decision: `met`, `missed` or `open`."""
        if self._impossible or self._sequence is None:
            return "open"
        low, high, threshold = self._sequence.low, self._sequence.high, self.gate.threshold
        if not self.gate.is_higher_better:
            low, high, threshold = -high, -low, -threshold
        return "met" if low >= threshold else "missed" if high < threshold else "open"


@dataclass(eq=False, slots=True)
class EarlyComparison:
    """Checks after each finished case whether the run is worse than its baseline in one metric.

    Each question adds one value to the confidence sequence: this run's score in the first epoch minus the baseline's
    mean over epochs. If questions share a source, they are not independent, so the comparison is made only after the
    run.
    """

    baseline: str  # The baseline's name.
    subject: ComparedMetric
    before: Mapping[Question, tuple[float, Mapping[str, str]]]  # The baseline's score and fingerprints, by question.
    width: float  # The highest minus the lowest possible value of the metric.
    margin: float  # The smallest loss that matters, on the metric's own scale.
    share: InitVar[float]  # The part of the run's total error probability that this comparison may use.
    _sequence: stats.BoundedSequence = field(init=False)
    _question_of: dict[str, Question] = field(init=False, default_factory=dict)
    _impossible: bool = field(init=False, default=False)

    def __post_init__(self, share: float) -> None:
        self._sequence = stats.BoundedSequence(-1.0, 1.0, 1 - (1 - CONFIDENCE) * share * EARLY_SHARE)

    def add_case(self, benchmark: str, row: Row) -> None:
        subject, score = self.subject, get_score(row, self.subject.metric)
        before = self.before.get(row.question)
        if benchmark != subject.benchmark or score is None or before is None or self._impossible:
            return
        is_same = comparison.is_same_question(row.fingerprints, before[1])
        if not is_selected(row, subject.tag, subject.value) or not is_same:
            return
        if subject.metric == PASS_RATE and "at_least" in row.facts:
            self._impossible = True  # As for `EarlyGate`.
            return
        if row.cluster in self._question_of:
            self._impossible = self._question_of[row.cluster] != row.question
            return
        self._question_of[row.cluster] = row.question
        gain = (before[0] - score if subject.lower_is_better else score - before[0]) / self.width
        if abs(gain) > 1:
            self._impossible = True
        else:
            self._sequence.add(gain)

    @property
    def can_use_more_samples(self) -> bool:
        """Whether the comparison is undecided and the baseline has questions that this run has not yet answered."""
        return self.verdict == "open" and not self._impossible and len(self._question_of) < len(self.before)

    @property
    def verdict(self) -> Literal["no worse", "worse", "open"]:
        """The current decision: `no worse` if the loss is below the margin, `worse` if a loss is significant."""
        if self._impossible or not self._sequence.n:
            return "open"
        if self._sequence.low > -self.margin / self.width:
            return "no worse"
        return "worse" if self._sequence.high < 0 else "open"


class EarlyDecider:
    """Decides gates and comparisons with baselines during a run.

    All decisions share one error probability (Bonferroni), so the probability of any wrong decision is at most 1 -
    confidence. Cases must be added in an order that was fixed beforehand: see `ResultSequencer`. The metrics of this
    run are compared with those of the `baselines`.

    Attributes:
        decided: whether all gates and comparisons are decided. Cases that are added after that change nothing.
    """

    def __init__(
        self,
        gates: Sequence[Gate],
        baselines: Sequence[Run] = (),
        rules: ComparisonRules | None = None,
        find_range: FindRange = lambda *_: None,
    ) -> None:
        rules = rules or ComparisonRules()
        metrics = ((run, comparison.list_compared_metrics(run, gates, rules)) for run in baselines)
        compared = [(run, subject) for run, subjects in metrics for subject in subjects]
        # Leave out gates against a baseline, because the early comparison with this baseline decides them.
        listed = [gate for gate in gates if not gate.than]
        number = len(listed) + len(compared)
        self.gates = [EarlyGate(gate, 1 / number, find_range) for gate in listed]
        self.comparisons = [_make_early_comparison(*each, rules, 1 / number) for each in compared]
        self._decisions: list[EarlyGate | EarlyComparison] = [*self.gates, *self.comparisons]
        self.decided = False
        self._seen: set[tuple[str, str]] = set()

    @property
    def can_use_more_epochs(self) -> bool:
        """Whether more epochs could decide a gate; comparisons do not count, because they use only first epochs."""
        return any(gate.can_use_more_epochs for gate in self.gates)

    @property
    def can_use_more_samples(self) -> bool:
        """Whether more samples could still decide a gate or a comparison."""
        return any(each.can_use_more_samples for each in self._decisions)

    def add_case(self, benchmark: str, row: Row) -> None:
        """Add one finished case; a case that runs twice (`--dist each`) counts once."""
        if (benchmark, row.case) in self._seen:
            return
        self._seen.add((benchmark, row.case))
        if not self.decided:
            for each in self._decisions:
                each.add_case(benchmark, row)
            self.decided = bool(self._decisions) and all(each.verdict != "open" for each in self._decisions)


def _make_early_comparison(
    baseline: Run, subject: ComparedMetric, rules: ComparisonRules, share: float
) -> EarlyComparison:
    """Prepare an early comparison; a metric without a range is decided only if all its scores are 0 or 1."""
    before = {}
    for question, rows in comparison.group_by_question(baseline.benchmarks[subject.benchmark].tally).items():
        if (score := comparison.compute_mean_score(rows, subject.metric)) is not None:
            before[question] = score, rows[0].fingerprints
    bounds = comparison.find_range(baseline, subject, (score for score, _ in before.values()))
    if bounds is None:
        before = {}
    low, high = bounds or (0.0, 1.0)
    margin = comparison.find_gate_margin(subject, rules) or rules.get_margin(subject.benchmark) * (high - low)
    return EarlyComparison(baseline.folder.name, subject, before, high - low, margin, share)


def prefer_early_decisions(early: Mapping[str, Any] | None, decisions: Iterable[GateDecision]) -> list[GateDecision]:
    """Replace final decisions by early ones, because deciding twice would increase the error probability."""
    verdicts = {row["gate"]: row["verdict"] for row in early["gates"]} if early else {}
    return [
        replace(decision, verdict=verdicts[decision.gate.text], reason="decided early")
        if decision.verdict in {"met", "missed"} and verdicts.get(decision.gate.text) in {"met", "missed"}
        else decision
        for decision in decisions
    ]


def prefer_early_verdicts(early: Mapping[str, Any], comparison: BaselineComparison) -> BaselineComparison:
    """Replace the final verdict by the early verdict for each metric that was decided early."""
    decided = {
        row["subject"]: row["verdict"]
        for row in early.get("compared", ())
        if row["verdict"] != "open" and row["baseline"] == comparison.name
    }
    return replace(
        comparison,
        found=[(subject, result, decided.get(str(subject), verdict)) for subject, result, verdict in comparison.found],
    )


def explain_left_out_cases(shard: str | None, early: Mapping[str, Any] | None, undecided_gates: str) -> str:
    """Explain why the run ran fewer or more cases than planned, and which gates are open; return "" if it did not."""
    if shard:
        return f"shard {shard}: gates are decided when `evalsuite runs merge` has joined all shards"
    if not early:
        return f"{LEFT_OUT}: {undecided_gates}" if undecided_gates else ""
    cases, planned = early["cases"], early["planned"]
    more = max(0, cases - planned)
    ran = f"{planned} planned cases and {more} more ran" if more else f"{cases} of {planned} cases ran"
    if early.get("open"):
        left = [row["gate"] for row in early["gates"] if row["verdict"] == "open"]
        left += [row["subject"] for row in early.get("compared", ()) if row["verdict"] == "open"]
        return f"stopped, as {early['open']}: {ran}, and what was still open is decided by these: {', '.join(left)}"
    if more:
        return f"went on until every gate was decided: {ran}"
    saved = 1 - cases / planned if planned else 0.0
    return f"stopped early, as every gate was decided: {ran}, {saved:.0%} of them were saved"
