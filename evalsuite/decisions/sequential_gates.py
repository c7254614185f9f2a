"""Decides gates while a run goes on, by confidence sequences that stay valid however often they are read.

For 0/1 scores Robbins' beta-binomial mixture, for others in [0, 1] the hedged capital of Waudby-Smith and
Ramdas (arXiv 2010.09686): `stats.BinarySequence`, `stats.BoundedSequence`. The cases come in random order,
so those seen so far represent all.

The sequences assume unlimited cases although the number is planned: errors and skipped cases have no score, and
how many there will be is known only at the end. A population that turns out smaller would invalidate the narrower
sequences (`population=`). A gate without a confidence is about these very cases, which are drawn at random
whatever they share. One with a confidence (`@95%`) is about further cases like them: it hears only the first epoch
of each sample, and waits for the end of the run if samples share a source.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from evalsuite.decisions.measured import PASS_RATE, is_selected, score_of
from evalsuite.decisions.pairing import same_question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evalsuite.decisions.baseline_result import ComparedMetric
    from evalsuite.decisions.conditions import Gate
    from evalsuite.results.tally import Question, Row
    from evalsuite.stats import ConfidenceSequence

CONFIDENCE = 0.95
"""Of a gate that names none."""

EARLY_SHARE = 0.5
"""Of the error of a decision, what deciding it early may make; the rest is left to the look at the end of the run."""

Early = Literal["met", "missed", "open"]
EarlyComparisonVerdict = Literal["no worse", "worse", "open"]


def at_the_end(confidence: float) -> float:
    """The confidence of the look at the end of a run that could have been decided early."""
    return 1 - (1 - confidence) * (1 - EARLY_SHARE)


class EarlyGate:
    """One gate, fed case by case.

    Args:
        gate: names one metric of one benchmark.
        share: of the error that all gates together may make, which falls to this one.
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

    def hear(self, benchmark: str, row: Row) -> None:
        """Takes in one finished case."""
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
        """Whether the row is independent; if samples share a source, the gate waits from here on."""
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
        """Whether it is still open and hears further samples."""
        return self.verdict == "open" and not self._impossible

    @property
    def helped_by_epochs(self) -> bool:
        """Whether it is still open and hears further epochs of a sample."""
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
    questions that share a source none can be heard apart, and the comparison waits for the end of the run.

    Args:
        baseline: its name.
        subject: what is compared.
        before: the baseline's score of each question, with the question's fingerprints.
        width: of the metric's range.
        margin: the loss that matters, on the metric's own scale.
        share: of the error that all decisions together may make, which falls to this one.
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

    def hear(self, benchmark: str, row: Row) -> None:
        """Takes in one finished case."""
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
    1 - confidence. What is heard must come in an order that was fixed before: see `PlannedOrder`.

    Args:
        gates: of the run.
        comparisons: of the run with its baseline, each made with its share of the error.

    Attributes:
        decided: whether nothing is open any more; what is heard from then on is counted, and changes nothing.
    """

    def __init__(
        self, gates: Iterable[Gate], comparisons: Callable[[float], Sequence[EarlyComparison]] = lambda _: ()
    ) -> None:
        listed = list(gates)
        number = len(listed) + len(comparisons(1.0))
        self.gates = [EarlyGate(gate, 1 / number) for gate in listed]
        self.comparisons = comparisons(1 / number) if number else ()
        self.decided = False
        self._heard: set[tuple[str, str]] = set()

    @property
    def helped_by_epochs(self) -> bool:
        """Whether more epochs could still decide a gate; comparisons hear the first epoch alone."""
        return any(gate.helped_by_epochs for gate in self.gates)

    @property
    def helped_by_samples(self) -> bool:
        """Whether more samples could still decide a gate or a comparison."""
        tests: list[EarlyGate | EarlyComparison] = [*self.gates, *self.comparisons]
        return any(test.helped_by_samples for test in tests)

    @property
    def cases(self) -> int:
        """How many cases have been heard."""
        return len(self._heard)

    def hear(self, benchmark: str, row: Row) -> None:
        """Takes in one finished case; a case that ran twice (`--dist each`) counts once."""
        if (benchmark, row.case) in self._heard:
            return
        self._heard.add((benchmark, row.case))
        if not self.decided:
            deciding: list[EarlyGate | EarlyComparison] = [*self.gates, *self.comparisons]
            for sequence in deciding:
                sequence.hear(benchmark, row)
            self.decided = bool(self.gates) and all(sequence.verdict != "open" for sequence in deciding)
