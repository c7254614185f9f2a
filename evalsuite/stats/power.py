"""Power: the smallest difference that a number of cases can show, and the number of cases that a difference needs."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betainc, gammaln, nctdtr, nctdtrinc, stdtrit, xlog1py, xlogy

from evalsuite.stats.inputs import Array, Values, check_probability, convert_to_floats

MOST_CASES = 10**9  # Largest number of cases that a search tries.
BLOCK = 256  # Numbers of discordant cases that are computed together.


def power_share(n: int, discordance: float, difference: float, confidence: float = 0.95) -> float:
    """Compute the probability that McNemar's exact two-sided test shows a drop of a share.

    The number of discordant cases is binomial (n, discordance). Among the discordant cases, the number of wins is
    binomial with probability (1 - difference / discordance) / 2 (Duffy, "Asymptotic and exact power for the McNemar
    test", Biometrics 40, 1984).

    Args:
        n: the number of independent cases.
        discordance: the share of cases whose outcome differs between the two runs; a share below `difference` is raised
            to `difference`.
        difference: size of the true drop, in (0, 1].
        confidence: 1 minus the level of the test.

    Raises:
        ValueError: n is not above 0, or a share is out of range.
    """
    check_probability(confidence, "confidence")
    if n < 1 or not 0 <= discordance <= 1 or not 0 < difference <= 1:
        raise ValueError(
            f"power needs n above 0, discordance in [0, 1] and a drop in (0, 1]; "
            f"got n={n}, discordance={discordance}, difference={difference}"
        )
    discordance = max(discordance, difference)
    spread = 9 * math.sqrt(n * discordance * (1 - discordance)) + 9
    first, last = max(0, int(n * discordance - spread)), min(n, math.ceil(n * discordance + spread))
    changed = np.arange(first, last + 1)
    blocks = [_find_most_wins(block, 1 - confidence) for block in range(first // BLOCK, last // BLOCK + 1)]
    wins = np.concatenate(blocks)[first % BLOCK :][: len(changed)]
    shown = _compute_binomial_cdf(wins, changed, (1 - difference / discordance) / 2)
    ways = gammaln(n + 1) - gammaln(changed + 1) - gammaln(n - changed + 1)
    chances = np.exp(ways + xlogy(changed, discordance) + xlog1py(n - changed, -discordance))
    return float((chances * shown).sum())


def _compute_binomial_cdf(k: Array, n: Array, share: float) -> Array:
    """Compute the probability of at most k successes in n trials, by `betainc`, which is 20 times as fast as `bdtr`."""
    return np.where(k < 0, 0.0, np.where(k >= n, 1.0, betainc(np.maximum(n - k, 1), k + 1, 1 - share)))


@lru_cache(maxsize=1024)  # Cached, because the steps of a search need nearly the same blocks.
def _find_most_wins(block_number: int, level: float) -> Array:
    """Find, for each number of discordant cases in a block, the most wins with a significant drop; -1 if none."""
    changed = np.arange(block_number * BLOCK, (block_number + 1) * BLOCK)
    few, many = np.full(changed.shape, -1), changed // 2 + 1  # A share drops only if wins are fewer than losses.
    while (many - few > 1).any():
        middle = (few + many) // 2
        significant = 2 * _compute_binomial_cdf(middle, changed, 0.5) <= level
        few, many = np.where(significant, middle, few), np.where(significant, many, middle)
    return few


def detectable_share(n: int, discordance: float, *, confidence: float = 0.95, power: float = 0.8) -> float:
    """Compute the smallest drop of a share that McNemar's exact test would show with the given power.

    Args:
        n: the number of independent cases.
        discordance: the share of cases whose outcome differs between equal models. The drop is added to it, because a
            drop changes further outcomes.
        confidence: 1 minus the level of the two-sided test.
        power: the probability of showing the drop.

    Returns:
        The drop, in (0, 1]; infinity if this power is not reached even if every case is lost.

    Raises:
        ValueError: an argument is invalid for `power_share`, or the power is not in (0, 1).
    """
    check_probability(power, "power")
    if power_share(n, discordance, 1.0, confidence) < power:
        return math.inf
    low, high = 0.0, 1.0
    while high - low > 1e-4 * high:  # A relative error of 1e-4 does not change the printed digits.
        middle = (low + high) / 2
        is_enough = power_share(n, min(1.0, discordance + middle), middle, confidence) >= power
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def power_mean(n: int, deviation: float, difference: float, confidence: float = 0.95) -> float:
    """Compute the probability that the two-sided paired t test shows a drop, by the noncentral t distribution.

    A significant result in the wrong direction (a gain instead of the true drop) does not count. Cohen, "Statistical
    Power Analysis for the Behavioral Sciences" (1988, chapter 2).

    Args:
        n: the number of independent clusters, at least 2.
        deviation: the standard deviation of the paired differences, above 0.
        difference: the size of the true drop, above 0.
        confidence: 1 minus the level of the test.

    Raises:
        ValueError: an argument is out of range.
    """
    _check_mean_arguments(n, deviation, confidence)
    if not 0 < difference < math.inf:
        raise ValueError(f"power is asked for a drop above 0; got {difference}")
    threshold = stdtrit(n - 1, (1 + confidence) / 2)
    return 1.0 - float(nctdtr(n - 1, difference / deviation * math.sqrt(n), threshold))


def _check_mean_arguments(n: int, deviation: float, confidence: float) -> None:
    check_probability(confidence, "confidence")
    if n < 2 or not 0 < deviation < math.inf:
        raise ValueError(f"power needs at least 2 clusters that vary; got n={n}, deviation={deviation}")


def detectable_mean(
    n: int,
    deviation: float,
    *,
    freedom: float | None = None,
    confidence: float = 0.95,
    power: float = 0.8,
    scale: float = 1.0,
    widening: float = 0.0,
) -> float:
    """Compute the smallest drop of a mean that the paired t test would show with the given power.

    A drop also increases the squared standard error, by `widening * drop * (scale - drop)`. If single independent cases
    fall by the whole scale, give 1 / (number of cases) as `widening`; see `compute_dispersion`.

    Args:
        n: the number of independent clusters, at least 2.
        deviation: standard deviation of the paired differences of equal models, above 0. With clusters, give the
            standard error times the square root of the number of clusters.
        freedom: the test's degrees of freedom; None means n - 1. With clusters of unequal sizes, there are fewer.
        confidence: 1 minus the level of the two-sided test.
        power: the probability of showing the drop.
        scale: the largest difference that two scores can have.
        widening: the factor by which `drop * (scale - drop)` is added to the squared standard error; 0 adds nothing.

    Raises:
        ValueError: an argument is out of range.
    """
    _check_mean_arguments(n, deviation, confidence)
    check_probability(power, "power")
    freedom = n - 1 if freedom is None else freedom
    threshold = stdtrit(freedom, (1 + confidence) / 2)
    errors = float(nctdtrinc(freedom, 1 - power, threshold))  # The smallest drop in units of its standard error.
    # Solve drop^2 = errors^2 * (deviation^2 / n + widening * drop * (scale - drop)).
    share, fixed = errors**2 * widening, errors**2 * deviation**2 / n
    half = share * scale / 2
    return (half + math.sqrt(half**2 + (1 + share) * fixed)) / (1 + share)


def compute_dispersion(scores: Values, scale: float) -> float:
    """Compute the ratio of the scores' variance to the greatest variance with this mean: 1 for scores of 0 and 1.

    A loss increases the variance most if single cases drop by the whole scale. The result estimates which share of this
    greatest increase a real loss causes.
    """
    array = convert_to_floats(scores, "scores")
    # Take the lowest score as the lower end of the range, because `scale` gives only the range's width.
    mean = float((array - array.min()).mean())
    greatest = mean * (scale - mean)
    return min(1.0, float(array.var()) / greatest) if greatest > 0 else 1.0


def required_n_share(difference: float, discordance: float, *, confidence: float = 0.95, power: float = 0.8) -> int:
    """Compute how many cases McNemar's exact test needs to show a drop of a share with the given power.

    The result is a number of cases that gives the power, while one case fewer does not. Some larger numbers may also
    lack the power, because the exact power does not rise monotonically.

    Args:
        difference: size of the true drop, in (0, 1].
        discordance: the share of cases whose outcome differs; see `power_share`.
        confidence: 1 minus the level of the two-sided test.
        power: the probability of showing the drop.

    Raises:
        ValueError: an argument is out of range, or a billion cases are not enough.
    """
    check_probability(power, "power")
    return _find_smallest_n(lambda n: power_share(n, discordance, difference, confidence) >= power, 1)


def required_n_mean(difference: float, deviation: float, *, confidence: float = 0.95, power: float = 0.8) -> int:
    """Compute how many independent clusters the paired t test needs to show a drop with the given power.

    `required_n_share` and `power_mean` describe the arguments and errors.
    """
    check_probability(power, "power")
    return _find_smallest_n(lambda n: power_mean(n, deviation, difference, confidence) >= power, 2)


def _find_smallest_n(is_enough: Callable[[int], bool], start: int) -> int:
    low, high = start - 1, start
    while not is_enough(high):
        if high > MOST_CASES:
            raise ValueError(f"more than {MOST_CASES} cases would be needed: ask for a larger difference")
        low, high = high, high * 2
    return bisect_left(range(high), True, low + 1, key=is_enough)


MOST_EPOCHS = 1000  # Largest number of epochs per question that a search tries.
POWER = 0.8


@dataclass(frozen=True, slots=True)
class DifferenceVariance:
    """The variance of a question's difference between two runs, to plan the numbers of questions and epochs."""

    between: float  # The variance of the questions' true differences, on the metric's scale squared.
    within: float  # The variance of one answer's score around its question's mean, in one run.
    # Whether scores are 0 or 1 and questions are independent, so that McNemar's test can be used with one epoch.
    shares: bool = False
    # The factor by which the variance of a mean is greater because questions share sources; 1 without shared sources.
    crowding: float = 1.0
    width: float = 1.0  # The width of the metric's range.
    dispersion: float = 0.0  # A share in [0, 1], see `compute_dispersion`; 0 if a loss does not increase the variance.

    def compute_variance(self, epochs_before: int, epochs_after: int, loss: float = 0.0) -> float:
        """Compute the variance of one question's difference, given the number of epochs in each run and the loss."""
        widened = self._compute_loss_dispersion(epochs_after) * max(0.0, loss * (self.width - loss))
        return (self.between + self.within / epochs_before + self.within / epochs_after + widened) * self.crowding

    def _compute_loss_dispersion(self, epochs_after: int) -> float:
        """Compute the dispersion that a loss adds; more epochs reduce it by the same factor as the variance."""
        noise = self.within / (self.between + self.within) if self.within else 0.0
        return self.dispersion * (1 - noise + noise / epochs_after)

    def count_questions_needed(self, loss: float, epochs_before: int, epochs_after: int) -> int:
        """Compute how many questions are needed to show a loss with a power of 80%, two-sided at 5%."""
        variance = self.compute_variance(epochs_before, epochs_after, loss)
        if self.shares and epochs_before == epochs_after == 1:
            return required_n_share(loss, min(1.0, variance + loss * loss))
        return required_n_mean(loss, math.sqrt(variance)) if variance > 0 else 2

    def compute_detectable_loss(self, questions: int, epochs_before: int, epochs_after: int) -> float:
        """Compute the smallest loss that the questions would show with a power of 80%; infinity if none."""
        variance = self.compute_variance(epochs_before, epochs_after)
        if self.shares and epochs_before == epochs_after == 1:
            return detectable_share(questions, min(1.0, variance))
        if questions < 2:
            return math.inf
        widening = self._compute_loss_dispersion(epochs_after) * self.crowding / questions
        least = 1e-9 * self.width  # `detectable_mean` needs a deviation above 0, even if all scores are equal.
        return detectable_mean(questions, math.sqrt(variance) or least, scale=self.width, widening=widening)

    def count_epochs_needed(self, loss: float, questions: int) -> int | None:
        """Compute how many epochs both runs need to show a loss on this many questions; None if 1,000 are too few."""
        if self.compute_detectable_loss(questions, MOST_EPOCHS, MOST_EPOCHS) > loss:
            return None
        epochs = range(MOST_EPOCHS)
        return bisect_left(epochs, True, 1, key=lambda n: self.compute_detectable_loss(questions, n, n) <= loss)


def estimate_within_variance(epochs: Iterable[Sequence[float]]) -> float | None:
    """Estimate the variance of scores between a question's epochs, pooled over questions; None without two epochs."""
    squares, freedom = [], 0
    for scores in epochs:
        mean = math.fsum(scores) / len(scores)
        squares += [(score - mean) ** 2 for score in scores]
        freedom += len(scores) - 1
    return math.fsum(squares) / freedom if freedom else None
