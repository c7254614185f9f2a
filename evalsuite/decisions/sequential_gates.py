"""Gates decided while a run goes on, by confidence sequences that stay valid however often they are read.

For 0/1 scores Robbins' beta-binomial mixture, for others in [0, 1] the hedged capital of Waudby-Smith and
Ramdas (arXiv 2010.09686): `stats.BinarySequence`, `stats.BoundedSequence`. The cases come in random order,
so that those seen so far stand for all.

The sequences are those of unlimited cases although their number is planned: which cases will be errors or be
skipped, and so have no score, is known at the end only, and a population that turns out smaller would make
the narrower sequences (`population=`) wrong. A gate without a confidence is about these very cases, which are
drawn at random whatever they share. One with a confidence (`@95%`) is about cases beyond them: of a sample's
epochs it takes in the one that comes first, and where samples share a source it waits for the end of the run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from evalsuite.decisions.gates import PASS_RATE, Gate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalsuite.results.tally import Row
    from evalsuite.stats import ConfidenceSequence

CONFIDENCE = 0.95
"""Of a gate that names none."""

Early = Literal["met", "missed", "open"]


class EarlyGate:
    """One gate, fed case by case.

    Args:
        gate: names one metric of one benchmark.
        share: of the error that all gates together may make, which falls to this one.
    """

    def __init__(self, gate: Gate, share: float = 1.0) -> None:
        self.gate = gate
        self._confidence = 1 - (1 - (gate.confidence or CONFIDENCE)) * share
        self._waiting: list[float] = []
        self._sequence: ConfidenceSequence | None = None
        self._binary = True
        self._impossible = "*" in {gate.metric, gate.benchmark}
        self._sample_of: dict[str, str] = {}

    def hear(self, benchmark: str, row: Row) -> None:
        """Takes in one finished case."""
        if self._impossible or not self.gate.covers(benchmark) or not self._selects(row):
            return
        score = self._score(row)
        if score is None or not self._is_independent(row):
            return
        if not 0 <= score <= 1:
            # Without bounds nothing holds at every look; such a gate waits for the end of the run.
            self._impossible = True
            return
        self._add(score)

    def _selects(self, row: Row) -> bool:
        tag, value = self.gate.tag, self.gate.value
        if value is None:
            return True
        return row.tags.get(tag) == value if tag else value in row.tags.values()

    def _score(self, row: Row) -> float | None:
        if self.gate.metric == PASS_RATE:
            return {"passed": 1.0, "failed": 0.0}.get(row.outcome)
        return row.scores.get(self.gate.metric) if row.outcome != "error" else None

    def _is_independent(self, row: Row) -> bool:
        """Whether the row stands for itself; where samples share a source, the gate waits from here on."""
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


class EarlyStop:
    """All gates of a run; it may stop when each is decided.

    The error is shared among the gates (Bonferroni), so that the chance that any of them is decided wrongly
    is at most 1 - confidence.

    Args:
        gates: of the run.

    Attributes:
        decided: whether nothing is open any more; what is heard from then on is counted, and changes nothing.
    """

    def __init__(self, gates: Iterable[Gate]) -> None:
        listed = list(gates)
        self.gates = [EarlyGate(gate, 1 / len(listed)) for gate in listed]
        self.decided = False
        self._heard: set[tuple[str, str]] = set()

    @property
    def cases(self) -> int:
        """How many cases were heard."""
        return len(self._heard)

    def hear(self, benchmark: str, row: Row) -> None:
        """Takes in one finished case; one that ran twice (`--dist each`) is no second piece of evidence."""
        if (benchmark, row.case) in self._heard:
            return
        self._heard.add((benchmark, row.case))
        if not self.decided:
            for gate in self.gates:
                gate.hear(benchmark, row)
            self.decided = bool(self.gates) and all(gate.verdict != "open" for gate in self.gates)
