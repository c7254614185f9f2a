"""Scorers that compare a transcript's answer with its sample's target or targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.core.errors import ScoringError
from evalsuite.core.types import SHARE
from evalsuite.metrics import numbers, text

if TYPE_CHECKING:
    from evalsuite.core.types import Metric, Sample, Transcript

_Comparison = Callable[[str, text.Targets], float]


@dataclass(frozen=True, slots=True)
class TargetScorer:
    """A metric as a scorer.

    Attributes:
        name: of its one score.
        metric: compares the answer with the targets; in [0, 1].
    """

    name: str
    metric: _Comparison

    @property
    def metrics(self) -> dict[str, Metric]:
        """What its one score can be."""
        return {self.name: SHARE}

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        """Scores the answer.

        Raises:
            ScoringError: the sample has no target.
        """
        if sample.target is None or sample.target in ([], ()):
            raise ScoringError(
                f"{self.name} needs something to compare with, but sample {sample.id!r} has no target; "
                f"give it one, or score it otherwise"
            )
        return {self.name: self.metric(transcript.answer, sample.target)}


def exact_match() -> TargetScorer:
    """`exact_match`: 1.0 where answer and a target are the same text but for case, punctuation, articles."""
    return TargetScorer("exact_match", text.exact_match)


def contains() -> TargetScorer:
    """`contains`: 1.0 where a target stands in the answer as whole words."""
    return TargetScorer("contains", text.contains)


def token_f1() -> TargetScorer:
    """`token_f1`: overlap of words with the best target."""
    return TargetScorer("token_f1", text.token_f1)


def rouge_l() -> TargetScorer:
    """`rouge_l`: longest common subsequence of stemmed words with the best target."""
    return TargetScorer("rouge_l", text.rouge_l)


def bleu() -> TargetScorer:
    """`bleu`: sentence BLEU with the best target."""
    return TargetScorer("bleu", text.bleu)


def numeric_match() -> TargetScorer:
    """`numeric_match`: 1.0 where the answer is a number and equal to a target."""
    return TargetScorer("numeric_match", _any_number)


def _any_number(answer: str, targets: text.Targets) -> float:
    several = [targets] if isinstance(targets, (str, int, float)) else targets
    return max(numbers.numeric_match(answer, target) for target in several)
