"""Plans how many questions and epochs show a loss, from the variance of an earlier run.

The variance of one question's difference between two runs has two parts: the variance of the true differences
between questions, and the noise of answering, which epochs average out. Miller, "Adding Error Bars to Evals" (arXiv
2411.00640, sections on resampling and on power).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.stats.power import detectable_mean, detectable_share, required_n_mean, required_n_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_EPOCHS = 1000
"""Where a search for the number of epochs gives up."""

POWER = 0.8


@dataclass(frozen=True, slots=True)
class DifferenceVariance:
    """The variance of the difference between two runs, per question.

    Attributes:
        between: variance of the true differences of questions, on the metric's scale squared.
        within: variance of one answer's score about its question's mean, for one run.
        shares: whether scores are 0 or 1 and questions independent, so that one epoch is tested by McNemar's test.
        crowding: the factor by which questions that share a source inflate the variance of a mean; 1 without any.
    """

    between: float
    within: float
    shares: bool = False
    crowding: float = 1.0

    def of(self, before: int, after: int) -> float:
        """The variance of one question's difference, with so many epochs in either run."""
        return (self.between + self.within / before + self.within / after) * self.crowding

    def questions(self, loss: float, before: int, after: int) -> int:
        """How many questions show a loss with a power of 80%, two-sided at 5%.

        Raises:
            ValueError: a billion questions are not enough.
        """
        variance = self.of(before, after)
        if self.shares and before == after == 1:
            return required_n_share(loss, min(1.0, variance + loss * loss))
        return required_n_mean(loss, math.sqrt(variance)) if variance > 0 else 2

    def detectable(self, questions: int, before: int, after: int) -> float:
        """The smallest loss that so many questions show with a power of 80%; infinity where none is."""
        variance = self.of(before, after)
        if self.shares and before == after == 1:
            return detectable_share(questions, min(1.0, variance))
        if questions < 2:
            return math.inf
        return detectable_mean(questions, math.sqrt(variance)) if variance > 0 else 0.0

    def epochs(self, loss: float, questions: int) -> int | None:
        """How many epochs, in both runs, show a loss on so many questions; None where no number of them does."""
        if self.detectable(questions, MOST_EPOCHS, MOST_EPOCHS) > loss:
            return None
        few, enough = 0, MOST_EPOCHS
        while enough - few > 1:
            middle = (few + enough) // 2
            shown = self.detectable(questions, middle, middle) <= loss
            few, enough = (few, middle) if shown else (middle, enough)
        return enough


def within_variance(epochs: Iterable[Sequence[float]]) -> float | None:
    """The pooled variance of a question's scores over its epochs; None if no question has two epochs.

    Args:
        epochs: the scores of each question.
    """
    squares, freedom = [], 0
    for scores in epochs:
        mean = math.fsum(scores) / len(scores)
        squares += [(score - mean) ** 2 for score in scores]
        freedom += len(scores) - 1
    return math.fsum(squares) / freedom if freedom else None


def one_sided_loss(loss: float, width: float) -> float:
    """The variance between questions if a loss consists of few questions that are lost entirely, and none is won.

    Args:
        loss: of the mean, on the metric's scale.
        width: of the metric's range.
    """
    return max(0.0, loss * (width - loss))
