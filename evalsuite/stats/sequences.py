"""Confidence sequences: intervals that stay valid regardless of how often they are checked.

The probability that the interval ever excludes the true mean, over all checks, is at most 1 - confidence. A run may
stop as soon as the interval lies on one side of a threshold. The added values must be independent: one value per
cluster, such as the mean of a sample's epochs, in random order.

An interval becomes empty if the true mean was excluded, which is improbable, or if the order was not random. An empty
interval is reset to the whole range. Without this reset, the first half of a run would decide the result even if the
model's answers change midway.
"""

import math
from typing import Protocol

from evalsuite.stats.inputs import Array, check_probability


class ConfidenceSequence(Protocol):
    """An interval that is updated with each added value and is valid at any time.

    Attributes:
        n: the number of added values.
        low: lower bound, which never falls unless the interval becomes empty.
        high: upper bound, which never rises unless the interval becomes empty.
    """

    n: int
    low: float
    high: float

    @property
    def mean(self) -> float:
        """The mean of the added values; nan before the first value."""

    def add(self, value: float) -> None:
        """Add one more value.

        Raises:
            ValueError: the value is out of range or not a number.
        """


PRECISION = 1e-12  # The search for a bound ends at a step of less than this share of the bound.


class BinarySequence:
    """The confidence sequence of a share, by Robbins' beta-binomial mixture.

    After s ones among n values, the interval contains every share p with (n + 1) C(n, s) p^s (1 - p)^(n - s) > alpha,
    where alpha is 1 - confidence. The mixture is uniform: Robbins, "Statistical methods related to the law of the
    iterated logarithm" (Annals of Mathematical Statistics 41, 1970).

    Args:
        confidence: the probability that the interval is right in all checks, for example 0.95.

    Raises:
        ValueError: the confidence is not in (0, 1).
    """

    def __init__(self, confidence: float = 0.95) -> None:
        self._level = math.log(1 - check_probability(confidence, "confidence"))
        self.n, self.low, self.high = 0, 0.0, 1.0
        self._ones, self._below, self._above = 0, 0.0, 0.0

    @property
    def mean(self) -> float:
        """The share of ones; nan before the first value."""
        return self._ones / self.n if self.n else math.nan

    def add(self, value: float) -> None:
        """Add a 0 or a 1.

        Raises:
            ValueError: the value is neither 0 nor 1.
        """
        if value not in (0, 1):
            raise ValueError(f"a binary sequence takes 0 and 1; got {value}")
        self.n += 1
        self._ones += int(value)
        self._below = _raise_bound(self._below, self._ones, self.n, self._level)
        self._above = _raise_bound(self._above, self.n - self._ones, self.n, self._level)
        low, high = self._below, 1 - self._above
        self.low, self.high = (low, high) if low <= high else (0.0, 1.0)


def _raise_bound(bound: float, ones: int, n: int, level: float) -> float:
    """Find the lower bound of Robbins' interval after n values, by Newton's method from the bound before.

    The logarithm of the inverse mixture is concave in the share p. Hence each step from an excluded share leads to an
    excluded share, so the search may stop after any step.
    """
    if not ones:
        return bound
    log_ways = math.lgamma(n + 1) - math.lgamma(ones + 1) - math.lgamma(n - ones + 1)
    constant = math.log(n + 1) + log_ways - level
    share = max(bound, math.exp(-constant / ones))
    while share * n < ones:
        excess = constant + ones * math.log(share) + (n - ones) * math.log1p(-share)
        step = -excess / (ones / share - (n - ones) / (1 - share))
        if step <= PRECISION * share:
            break
        share += step
    return share


GRID = 1000  # Number of steps between hypothesised means, so bounds are rounded outwards to a thousandth of the range.
TRUNCATION = 0.5  # Maximum share of the capital that a bet may risk; c in Waudby-Smith and Ramdas.


class BoundedSequence:
    """The confidence sequence of the mean of bounded scores, by betting.

    For each hypothesised mean m, one gambler bets that scores are above m, and another gambler bets that scores are
    below m. If m is the true mean, neither gambler's capital is likely to grow much. A mean m is excluded permanently
    once either gambler's capital has grown by the factor 2 / alpha, where alpha is 1 - confidence. The stake on the
    t-th score is sqrt(2 log(2 / alpha) / (v t log(t + 1))), where v is the variance of the earlier scores. The stake is
    at most 0.5 / m for bets on scores above m, and at most 0.5 / (1 - m) for bets on scores below m. The hypothesised
    means are spaced by a thousandth of the range. Waudby-Smith and Ramdas, "Estimating means of bounded random
    variables by betting" (JRSS B 86, 2024; arXiv 2010.09686: the hedged capital).

    Args:
        low: the lowest possible score.
        high: the highest possible score.
        confidence: the probability that the interval is right in all checks, for example 0.95.

    Raises:
        ValueError: low is not below high, or the confidence is not in (0, 1).
    """

    def __init__(self, low: float = 0.0, high: float = 1.0, confidence: float = 0.95) -> None:
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"scores need a range with low below high; got {low} and {high}")
        self.n, self.low, self.high = 0, float(low), float(high)
        self._least, self._range = float(low), float(high) - float(low)
        self._target = 2 / (1 - check_probability(confidence, "confidence"))
        self._sum, self._squares = 0.0, 0.25
        self._below, self._above = _BettingBound(self._target), _BettingBound(self._target)

    @property
    def mean(self) -> float:
        """The mean of the added scores; nan before the first score."""
        return self._least + self._range * self._sum / self.n if self.n else math.nan

    def add(self, value: float) -> None:
        """Add one score.

        Raises:
            ValueError: the score is out of range or not a number.
        """
        score = (value - self._least) / self._range
        if not 0 <= score <= 1:
            raise ValueError(f"scores lie in [{self._least:g}, {self._least + self._range:g}]; got {value}")
        # The stake's formula contains the product v t, which is the sum of squares plus 1/4.
        bet = math.sqrt(2 * math.log(self._target) / (self._squares * math.log(self.n + 2)))
        low, high = self._below.update_bound(score, bet), 1 - self._above.update_bound(1 - score, bet)
        self.n += 1
        self._sum += score
        # Add the squared distance from the regularised mean, (1/2 + sum) / (number of scores + 1).
        self._squares += (score - (0.5 + self._sum) / (self.n + 1)) ** 2
        if low >= high:
            low, high = 0.0, 1.0
        else:
            self._below.drop_means_above(high)
            self._above.drop_means_above(1 - low)
        self.low, self.high = self._least + self._range * low, self._least + self._range * high


class _BettingBound:
    """The lower bound: for each mean on a grid, a gambler bets that the scores' mean is higher.

    If bets exclude a mean, they also exclude all lower means, because bets against lower means win more.
    """

    def __init__(self, target: float) -> None:
        import numpy as np

        self.bound = 0.0
        self._target = target
        self._means: Array = np.arange(1, GRID) / GRID
        self._capital: Array = np.ones_like(self._means)

    def update_bound(self, score: float, bet: float) -> float:
        """Return the lower bound of the mean after one more score."""
        import numpy as np

        self._capital *= 1 + np.minimum(TRUNCATION / self._means, bet) * (score - self._means)
        if excluded := int(np.count_nonzero(self._capital >= self._target)):
            self.bound = float(self._means[excluded - 1])
            self._means, self._capital = self._means[excluded:], self._capital[excluded:]
        return self.bound

    def drop_means_above(self, limit: float) -> None:
        """Drop the means above a limit to save time, because the upper bound already excludes them."""
        if len(self._means) and self._means[-1] > limit:
            kept = int(self._means.searchsorted(limit, side="right"))
            self._means, self._capital = self._means[:kept], self._capital[:kept]
