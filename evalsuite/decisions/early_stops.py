"""Decides gates while a run goes on, by confidence sequences that stay valid however often they are read.

For 0/1 scores Robbins' beta-binomial mixture, for others in [0, 1] the hedged capital of Waudby-Smith and
Ramdas (arXiv 2010.09686): `stats.BinarySequence`, `stats.BoundedSequence`. The cases come in random order,
so those seen so far represent all.

The sequences assume unlimited cases although the number is planned: errors and skipped cases have no score, and
how many there will be is known only at the end. A population that turns out smaller would invalidate the narrower
sequences (`population=`). A gate without a confidence is about these very cases, which are drawn at random
whatever they share. One with a confidence (`@95%`) is about further cases like them: it uses only the first epoch
of each sample, and waits for the end of the run if samples share a source.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from evalsuite.decisions.comparison import find_declaration, own_margin, subjects
from evalsuite.decisions.measured import PASS_RATE, is_selected, score_of
from evalsuite.decisions.pairing import by_question, same_question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalsuite.decisions.comparison import Against, ComparedMetric, ComparisonRules
    from evalsuite.decisions.conditions import Gate
    from evalsuite.decisions.gates import GateDecision
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Question, Row
    from evalsuite.stats import ConfidenceSequence

T = TypeVar("T")
NOTHING: Any = object()
"""In place of the items of a part that is shorter than others."""


class PlannedOrder(Generic[T]):
    """Holds back each result until all that were planned before it have arrived.

    Workers finish cases as these are answered, and right answers may be faster than wrong ones: the results that
    are there first are then no random part of all, and no sequence that supposes so may hear them as they come.

    Args:
        ids: all items, in an order that was fixed before anything was asked.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = list(dict.fromkeys(ids))
        self._waiting: dict[str, T | None] = {}
        self._next = 0

    @property
    def arrived(self) -> int:
        """How many results have arrived, whether used or held back."""
        return sum(result is not None for result in self._waiting.values())

    @property
    def awaited(self) -> str | None:
        """The item whose result is used next; None when all have been."""
        return self._ids[self._next] if self._next < len(self._ids) else None

    def arrive(self, item: str, result: T | None) -> Iterator[T]:
        """Yield the results that may be used now that an item has ended; its result is None if it has none."""
        if item not in self._waiting:
            self._waiting[item] = result
        while self._next < len(self._ids) and self._ids[self._next] in self._waiting:
            ready = self._waiting[self._ids[self._next]]
            self._next += 1
            if ready is not None:
                yield ready


def spread(wanted: Sequence[T], hands: int) -> list[T]:
    """Order items so that workers, each with a part, run them roughly as wanted; the inverse of `dealt`."""
    places = dealt(range(len(wanted)), hands)
    return [item for _, item in sorted(zip(places, wanted, strict=True), key=lambda pair: pair[0])]


def dealt(ids: Sequence[T], hands: int) -> list[T]:
    """List the first item of each worker's part, then the second of each, and so on: roughly as xdist returns them."""
    parts, start = [], 0
    for left in range(max(1, hands), 0, -1):
        size = (len(ids) - start) // left
        parts.append(ids[start : start + size])
        start += size
    return [
        item for item in chain.from_iterable(zip_longest(*parts, fillvalue=NOTHING)) if item is not NOTHING
    ]


CONFIDENCE = 0.95
"""Of a gate that names none."""

EARLY_SHARE = 0.5
"""Of the error of a decision, what deciding it early may make; the rest is left to the look at the end of the run."""

LEFT_OUT = "a gate is decided where its benchmark is collected, which leaves undecided"
"""Begins the line about gates of an ini file whose cases this session did not collect."""

Early = Literal["met", "missed", "open"]
EarlyComparisonVerdict = Literal["no worse", "worse", "open"]


def at_the_end(confidence: float) -> float:
    """Compute the confidence of the look at the end of a run that could have been decided early."""
    return 1 - (1 - confidence) * (1 - EARLY_SHARE)


class EarlyGate:
    """One gate, fed case by case.

    Args:
        gate: names one metric of one benchmark.
        share: this gate's part of the error that all gates together may make.
    """

    def __init__(self, gate: Gate, share: float = 1.0) -> None:
        self.gate = gate
        # Without a confidence the last look is at the cases there are, and makes no error of its own.
        early = share if gate.confidence is None else share * EARLY_SHARE
        self._confidence = 1 - (1 - (gate.confidence or CONFIDENCE)) * early
        self._waiting: list[float] = []
        self._sequence: ConfidenceSequence | None = None
        self._binary = True
        self._impossible = "*" in {gate.metric, gate.benchmark}
        self._sample_of: dict[str, str] = {}

    def add(self, benchmark: str, row: Row) -> None:
        """Add one finished case."""
        if self.gate.metric == PASS_RATE and "at_least" in row.facts:
            # It is about samples, which are there when all their epochs are.
            self._impossible = True
        if (
            self._impossible
            or not self.gate.covers(benchmark)
            or not is_selected(row, self.gate.tag, self.gate.value)
        ):
            return
        score = score_of(row, self.gate.metric)
        if score is None or not self._is_independent(row):
            return
        if not 0 <= score <= 1:
            # Without bounds nothing holds at every look; such a gate waits for the end of the run.
            self._impossible = True
            return
        self._add(score)

    def _is_independent(self, row: Row) -> bool:
        """Tell whether the row is independent; if samples share a source, the gate waits from here on."""
        if self.gate.confidence is None:
            return True
        if row.cluster not in self._sample_of:
            self._sample_of[row.cluster] = row.sample
            return True
        # The first of each cluster alone would weigh small clusters more than the mean over cases does.
        self._impossible = self._sample_of[row.cluster] != row.sample
        return False

    def _add(self, score: float) -> None:
        from evalsuite.stats import BinarySequence, BoundedSequence

        self._waiting.append(score)
        if self._binary and score not in {0.0, 1.0}:
            # The first score between the two: all is told again to the sequence for such scores.
            self._binary, self._sequence = False, None
        if self._sequence is None:
            kind = BinarySequence if self._binary else BoundedSequence
            self._sequence = kind(confidence=self._confidence)
            for earlier in self._waiting[:-1]:
                self._sequence.add(earlier)
        self._sequence.add(score)

    @property
    def helped_by_samples(self) -> bool:
        """Whether it is still open and uses further samples."""
        return self.verdict == "open" and not self._impossible

    @property
    def helped_by_epochs(self) -> bool:
        """Whether it is still open and uses further epochs of a sample."""
        return self.helped_by_samples and self.gate.confidence is None

    @property
    def verdict(self) -> Early:
        """What is certain by now."""
        if self._impossible or self._sequence is None:
            return "open"
        low, high, threshold = self._sequence.low, self._sequence.high, self.gate.threshold
        if not math.isfinite(low) or not math.isfinite(high):
            return "open"
        above, below = low >= threshold, high < threshold
        if not self.gate.wants_more:
            above, below = high <= threshold, low > threshold
        return "met" if above else "missed" if below else "open"


class EarlyComparison:
    """A comparison with a baseline, fed question by question.

    Each question's difference is one value of the sequence, the first epoch against the mean of the baseline's; of
    questions that share a source none is independent, and the comparison waits for the end of the run.

    Args:
        baseline: its name.
        subject: what is compared.
        before: the baseline's score of each question, with the question's fingerprints.
        width: high minus low end of the metric's range.
        margin: the loss that matters, on the metric's own scale.
        share: this comparison's part of the error that all decisions together may make.
    """

    def __init__(
        self,
        baseline: str,
        subject: ComparedMetric,
        before: Mapping[Question, tuple[float, Mapping[str, str]]],
        width: float,
        margin: float,
        share: float,
    ) -> None:
        from evalsuite.stats import BoundedSequence

        self.baseline, self.subject = baseline, subject
        self._before, self._width, self._margin = before, width, margin
        self._sequence = BoundedSequence(-1.0, 1.0, 1 - (1 - CONFIDENCE) * share * EARLY_SHARE)
        self._question_of: dict[str, Question] = {}
        self._impossible = False

    def add(self, benchmark: str, row: Row) -> None:
        """Add one finished case."""
        subject, score = self.subject, score_of(row, self.subject.metric)
        before = self._before.get(row.question)
        if benchmark != subject.benchmark or score is None or before is None or self._impossible:
            return
        if not is_selected(row, subject.tag, subject.value) or not same_question(row.fingerprints, before[1]):
            return
        if row.cluster in self._question_of:
            self._impossible = self._question_of[row.cluster] != row.question
            return
        self._question_of[row.cluster] = row.question
        gain = (before[0] - score if subject.lower_is_better else score - before[0]) / self._width
        if abs(gain) > 1:
            self._impossible = True
        else:
            self._sequence.add(gain)

    @property
    def helped_by_samples(self) -> bool:
        """Whether it is still open and the baseline has further questions."""
        return self.verdict == "open" and not self._impossible and len(self._question_of) < len(self._before)

    @property
    def verdict(self) -> EarlyComparisonVerdict:
        """What is certain by now: that a loss of the margin is excluded, or that there is a loss."""
        if self._impossible or not self._sequence.n:
            return "open"
        if self._sequence.low > -self._margin / self._width:
            return "no worse"
        return "worse" if self._sequence.high < 0 else "open"


class EarlyStop:
    """Everything to be decided about a run: its gates and its comparison with a baseline.

    The error is shared among them (Bonferroni), so that the chance that any is decided wrongly is at most
    1 - confidence. Cases must be added in an order that was fixed before: see `PlannedOrder`.

    Args:
        gates: the run's.
        comparisons: those with the run's baselines, each made with its share of the error.

    Attributes:
        decided: whether nothing is open any more; what is added from then on is counted, and changes nothing.
    """

    def __init__(
        self, gates: Iterable[Gate], comparisons: Callable[[float], Sequence[EarlyComparison]] = lambda _: ()
    ) -> None:
        listed = list(gates)
        number = len(listed) + len(comparisons(1.0))
        self.gates = [EarlyGate(gate, 1 / number) for gate in listed]
        self.comparisons = comparisons(1 / number) if number else ()
        self.decided = False
        self._seen: set[tuple[str, str]] = set()

    @property
    def helped_by_epochs(self) -> bool:
        """Whether more epochs could still decide a gate; comparisons use the first epoch alone."""
        return any(gate.helped_by_epochs for gate in self.gates)

    @property
    def helped_by_samples(self) -> bool:
        """Whether more samples could still decide a gate or a comparison."""
        tests: list[EarlyGate | EarlyComparison] = [*self.gates, *self.comparisons]
        return any(test.helped_by_samples for test in tests)

    @property
    def cases(self) -> int:
        """Count the cases that were added."""
        return len(self._seen)

    def add(self, benchmark: str, row: Row) -> None:
        """Add one finished case; a case that ran twice (`--dist each`) counts once."""
        if (benchmark, row.case) in self._seen:
            return
        self._seen.add((benchmark, row.case))
        if not self.decided:
            deciding: list[EarlyGate | EarlyComparison] = [*self.gates, *self.comparisons]
            for sequence in deciding:
                sequence.add(benchmark, row)
            self.decided = bool(self.gates) and all(sequence.verdict != "open" for sequence in deciding)


def early_comparisons(
    baselines: Sequence[Run], gates: Sequence[Gate], rules: ComparisonRules
) -> Callable[[float], Sequence[EarlyComparison]]:
    """Make the comparisons of all gated metrics with all baselines, given the share of the error that each may use."""
    compared = [(baseline, subject) for baseline in baselines for subject in subjects(baseline, gates, rules)]
    return partial(_make, compared, rules)


def _make(
    compared: Sequence[tuple[Run, ComparedMetric]], rules: ComparisonRules, share: float
) -> list[EarlyComparison]:
    return [_comparison(baseline, subject, rules, share) for baseline, subject in compared]


def _comparison(
    baseline: Run, subject: ComparedMetric, rules: ComparisonRules, share: float
) -> EarlyComparison:
    """Make one comparison; it has nothing to compare with if the metric's range is not declared."""
    metric = find_declaration(baseline, subject.benchmark, subject.metric)
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


def early_gates(early: Mapping[str, Any] | None, decisions: Iterable[GateDecision]) -> list[GateDecision]:
    """Keep what the sequences decided, since looking at the ordinary interval as well would be one look too many."""
    verdicts = {row["gate"]: row["verdict"] for row in early["gates"]} if early else {}
    return [
        replace(decision, verdict=verdicts[decision.gate.text], reason="decided early")
        if decision.verdict in {"met", "missed"} and verdicts.get(decision.gate.text) in {"met", "missed"}
        else decision
        for decision in decisions
    ]


def early_verdicts(early: Mapping[str, Any], against: Against) -> Against:
    """Keep what the sequences decided of a comparison with a baseline."""
    decided = {
        row["subject"]: row["verdict"]
        for row in early.get("compared", ())
        if row["verdict"] != "open" and row["baseline"] == against.name
    }
    return replace(
        against,
        found=[
            (subject, comparison, decided.get(str(subject), verdict))
            for subject, comparison, verdict in against.found
        ],
    )


def explain_shortening(shard: str | None, early: Mapping[str, Any] | None, aside: str) -> str:
    """Say why other cases ran than the suite has, where that was meant; empty otherwise.

    Args:
        shard: the run's part, such as 3/8; None for a whole run.
        early: the record of its early end.
        aside: the gates that a run of chosen cases leaves undecided.
    """
    if shard:
        return f"shard {shard}: gates are decided when `evalsuite runs merge` has joined all shards"
    if early:
        return _ended_early(early)
    return f"{LEFT_OUT}: {aside}" if aside else ""


def _ended_early(early: Mapping[str, Any]) -> str:
    cases, planned = early["cases"], early["planned"]
    more = max(0, cases - planned)
    ran = f"{planned} planned cases and {more} more ran" if more else f"{cases} of {planned} cases ran"
    if early.get("open"):
        return (
            f"stopped, as {early['open']}: {ran}, and what was still open is decided by these: "
            f"{', '.join(_left_open(early))}"
        )
    if more:
        return f"went on until every gate was decided: {ran}"
    saved = 1 - cases / planned if planned else 0.0
    return f"stopped early, as every gate was decided: {ran}, {saved:.0%} of them were saved"


def _left_open(early: Mapping[str, Any]) -> Sequence[str]:
    gates = [row["gate"] for row in early["gates"] if row["verdict"] == "open"]
    return [*gates, *(row["subject"] for row in early.get("compared", ()) if row["verdict"] == "open")]
