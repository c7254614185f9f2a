"""The confidence sequence of a share: Robbins' beta-binomial mixture, also for a known number of cases."""

from __future__ import annotations

import math

from evalsuite.stats.inputs import probability
from evalsuite.stats.sequences import check_population, check_room, left_by_counting

PRECISION = 1e-12
"""Relative size of the last step towards a bound."""


class BinarySequence:
    """The confidence sequence of a share, by Robbins' beta-binomial mixture.

    After s ones among n values it holds every share p with (n + 1) C(n, s) p^s (1 - p)^(n - s) > alpha.
    Robbins, "Statistical methods related to the law of the iterated logarithm" (Annals of Mathematical
    Statistics 41, 1970), with the uniform mixture. For a population of N it holds every number of ones
    with (n + 1) times the hypergeometric probability of s above alpha: the same mixture, without replacement;
    Waudby-Smith and Ramdas, "Confidence sequences for sampling without replacement" (arXiv 2006.04347).

    Args:
        confidence: 0.95 for an error of at most 5% over all looks.
        population: number of all cases, where the question is about these and no others.

    Raises:
        ValueError: confidence is not in (0, 1), or the population not above 0.
    """

    def __init__(self, confidence: float = 0.95, *, population: int | None = None) -> None:
        level = math.log(1 - probability(confidence, "confidence"))
        check_population(population)
        self.n, self.low, self.high = 0, 0.0, 1.0
        self._ones = 0
        self._population = population
        self._below, self._above = _lower_end(level, population), _lower_end(level, population)

    @property
    def mean(self) -> float:
        """The share of ones; nan before the first value."""
        return self._ones / self.n if self.n else math.nan

    def add(self, value: float) -> None:
        """Takes in a 0 or a 1.

        Raises:
            ValueError: it is neither, or more than the population.
        """
        if value not in (0, 1):
            raise ValueError(f"a binary sequence takes 0 and 1; got {value}")
        check_room(self.n, self._population)
        self.n += 1
        self._ones += int(value)
        low = self._below.raised(self._ones, self.n)
        high = 1 - self._above.raised(self.n - self._ones, self.n)
        if low > high or self.n == self._population:
            low, high = left_by_counting(self._ones, self.n, self._population)
        self.low, self.high = low, high


def _lower_end(level: float, population: int | None) -> _InfiniteShare | _FiniteShare:
    return _InfiniteShare(level) if population is None else _FiniteShare(level, population)


class _InfiniteShare:
    """The lower end of Robbins' set for independent values."""

    def __init__(self, level: float) -> None:
        self.level = level
        self.bound = 0.0

    def raised(self, ones: int, n: int) -> float:
        """The bound after n values, found by Newton's method from below.

        The logarithm of the mixture's inverse is concave in p, so every step from an excluded share ends at
        an excluded share: the bound is safe wherever the steps stop.
        """
        if not ones:
            return self.bound
        constant = math.log(n + 1) + _log_choose(n, ones) - self.level
        share = max(self.bound, math.exp(-constant / ones))
        while share * n < ones:
            excess = constant + ones * math.log(share) + (n - ones) * math.log1p(-share)
            step = -excess / (ones / share - (n - ones) / (1 - share))
            if step <= PRECISION * share:
                break
            share += step
        self.bound = share
        return share


class _FiniteShare:
    """The lower end of the set for values drawn from a population without replacement."""

    def __init__(self, level: float, population: int) -> None:
        self.level = level
        self.population = population
        self.ones = 0

    def raised(self, ones: int, n: int) -> float:
        """The bound after n values: numbers of ones are given up from below while they are too unlikely."""
        rest = self.population - n
        self.ones = max(self.ones, ones)
        while self.ones < ones + rest and self._is_unlikely(self.ones, ones, n):
            self.ones += 1
        return self.ones / self.population

    def _is_unlikely(self, total: int, ones: int, n: int) -> bool:
        if total * n >= ones * self.population:
            return False
        chance = (
            _log_choose(total, ones)
            + _log_choose(self.population - total, n - ones)
            - _log_choose(self.population, n)
        )
        return math.log(n + 1) + chance <= self.level


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
