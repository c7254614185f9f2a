"""The confidence sequence of a bounded mean: the hedged capital of Waudby-Smith and Ramdas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.stats.inputs import probability
from evalsuite.stats.sequences import check_population, check_room, left_by_counting

if TYPE_CHECKING:
    from evalsuite.stats.inputs import Array

GRID = 1000
"""Cells of the range: bounds are multiples of its thousandth part, rounded outwards."""

TRUNCATION = 0.5
"""The share of the capital that a bet may put at risk: the paper's c."""


class BoundedSequence:
    """The confidence sequence of the mean of bounded scores, by betting.

    For each supposed mean m two gamblers bet that the scores are above or below it; fair bets do not make
    rich, so the means at which either has multiplied their capital by 2 / alpha are excluded for good. Bets
    are the predictable plug-in ones. Waudby-Smith and Ramdas, "Estimating means of bounded random variables
    by betting" (JRSS B 86, 2024; arXiv 2010.09686: the hedged capital; for populations its part on
    sampling without replacement).

    Args:
        low: the least possible score.
        high: the greatest possible score.
        confidence: 0.95 for an error of at most 5% over all looks.
        population: number of all cases, where the question is about these and no others.

    Raises:
        ValueError: low is not below high, confidence is not in (0, 1), or the population not above 0.
    """

    def __init__(
        self,
        low: float = 0.0,
        high: float = 1.0,
        confidence: float = 0.95,
        *,
        population: int | None = None,
    ) -> None:
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"scores need a range with low below high; got {low} and {high}")
        check_population(population)
        self.n, self.low, self.high = 0, float(low), float(high)
        self._least, self._range = float(low), float(high) - float(low)
        self._population = population
        self._target = 2 / (1 - probability(confidence, "confidence"))
        self._sum, self._squares = 0.0, 0.25
        self._below = _Gambler(self._target, population)
        self._above = _Gambler(self._target, population)

    @property
    def mean(self) -> float:
        """The mean of the scores added; nan before the first."""
        return self._least + self._range * self._sum / self.n if self.n else math.nan

    def add(self, value: float) -> None:
        """Takes in one score.

        Raises:
            ValueError: it is out of range or not a number, or more than the population.
        """
        score = (value - self._least) / self._range
        if not 0 <= score <= 1:
            raise ValueError(f"scores lie in [{self._least:g}, {self._least + self._range:g}]; got {value}")
        check_room(self.n, self._population)
        bet = self._bet()
        low, high = self._below.play(score, bet), 1 - self._above.play(1 - score, bet)
        self._take(score)
        if low >= high or self.n == self._population:
            low, high = left_by_counting(self._sum, self.n, self._population)
        else:
            self._below.leave(high)
            self._above.leave(1 - low)
        self.low, self.high = self._least + self._range * low, self._least + self._range * high

    def _bet(self) -> float:
        """The t-th bet, sqrt(2 log(2 / alpha) / (v t log(t + 1))), by the variance v of the t - 1 scores before.

        v = (1/4 + squares) / t, so that t cancels.
        """
        return math.sqrt(2 * math.log(self._target) / (self._squares * math.log(self.n + 2)))

    def _take(self, score: float) -> None:
        """Adds to the squares the distance from the regularised mean, (1/2 + sum) / (t + 1)."""
        self.n += 1
        self._sum += score
        self._squares += (score - (0.5 + self._sum) / (self.n + 1)) ** 2


class _Gambler:
    """Bets on high scores at every supposed mean of a grid.

    Capital falls as the supposed mean rises, so that a mean is given up together with all below it.
    """

    def __init__(self, target: float, population: int | None) -> None:
        import numpy as np

        self.bound = 0.0
        self._target = target
        self._population = population
        self._n, self._sum = 0, 0.0
        self._means: Array = np.arange(1, GRID) / GRID
        self._capital: Array = np.ones_like(self._means)

    def play(self, score: float, bet: float) -> float:
        """The lower bound of the mean after one more score."""
        import numpy as np

        expected = self._expected()
        self._capital *= 1 + np.minimum(TRUNCATION / expected, bet) * (score - expected)
        self._n += 1
        self._sum += score
        self._give_up(int(np.count_nonzero(self._capital >= self._target)))
        return self.bound if self._population is None else max(self.bound, self._sum / self._population)

    def _expected(self) -> Array:
        """What the next score is on average, if the mean of all is the supposed one: above 0."""
        import numpy as np

        if self._population is None:
            return self._means
        remaining = self._population * self._means - self._sum
        impossible = int(np.count_nonzero(remaining <= 0))
        self._give_up(impossible)
        return remaining[impossible:] / (self._population - self._n)

    def leave(self, limit: float) -> None:
        """Leaves the means above a limit, which the other gambler has excluded: fewer bets to follow."""
        if len(self._means) and self._means[-1] > limit:
            kept = int(self._means.searchsorted(limit, side="right"))
            self._means, self._capital = self._means[:kept], self._capital[:kept]

    def _give_up(self, count: int) -> None:
        """Excludes the lowest of the means that are left."""
        if count:
            self.bound = float(self._means[count - 1])
            self._means, self._capital = self._means[count:], self._capital[count:]
