"""Power: the smallest difference that a number of cases shows, and the number that a difference needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.stats.inputs import probability

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.stats.inputs import Array

MOST_CASES = 10**9
"""Where a search for the number of cases gives up."""


def power_share(n: int, discordance: float, difference: float, confidence: float = 0.95) -> float:
    """The probability that McNemar's exact two-sided test shows a drop of a share.

    The number of discordant cases is binomial (n, discordance); given it, the number of wins is binomial
    with probability (1 - difference / discordance) / 2 (Duffy, "Asymptotic and exact power for the McNemar
    test", Biometrics 40, 1984).

    Args:
        n: independent cases.
        discordance: share of cases whose outcome differs between the two runs; raised to the difference
            where it is smaller, as no fewer can differ.
        difference: size of the true drop, in (0, 1].
        confidence: 1 minus the level of the test.

    Raises:
        ValueError: n is not above 0, or a share is out of range.
    """
    import numpy as np

    _check_share(n, discordance, difference, confidence)
    discordance = max(discordance, difference)
    spread = 9 * math.sqrt(n * discordance * (1 - discordance)) + 9
    first, last = max(0, int(n * discordance - spread)), min(n, math.ceil(n * discordance + spread))
    changed = np.arange(first, last + 1)
    wins = _most_wins(changed, 1 - confidence)
    shown = _at_most(wins, changed, (1 - difference / discordance) / 2)
    return float((_binomial(changed, n, discordance) * shown).sum())


def _check_share(n: int, discordance: float, difference: float, confidence: float) -> None:
    probability(confidence, "confidence")
    if n < 1 or not 0 <= discordance <= 1 or not 0 < difference <= 1:
        raise ValueError(
            f"power needs n above 0, discordance in [0, 1] and a drop in (0, 1]; "
            f"got n={n}, discordance={discordance}, difference={difference}"
        )


def _binomial(k: Array, n: int, share: float) -> Array:
    """The probabilities of k of n."""
    import numpy as np
    from scipy.special import gammaln, xlog1py, xlogy

    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.exp(ways + xlogy(k, share) + xlog1py(n - k, -share)))


def _at_most(k: Array, n: Array, share: float) -> Array:
    """The probabilities of at most k of n; 0 for k = -1. The incomplete beta outruns `bdtr` twentyfold."""
    import numpy as np
    from scipy.special import betainc

    return np.where(k < 0, 0.0, np.where(k >= n, 1.0, betainc(np.maximum(n - k, 1), k + 1, 1 - share)))


def _most_wins(changed: Array, level: float) -> Array:
    """For each number of discordant cases the most wins at which a drop is significant; -1 for none."""
    import numpy as np

    few, many = np.full(changed.shape, -1), changed // 2 + 1  # at half and above no drop is significant
    while (many - few > 1).any():
        middle = (few + many) // 2
        significant = 2 * _at_most(middle, changed, 0.5) <= level
        few, many = np.where(significant, middle, few), np.where(significant, many, middle)
    return few


def detectable_share(n: int, discordance: float, *, confidence: float = 0.95, power: float = 0.8) -> float:
    """The smallest drop of a share that McNemar's exact test would show with the given power.

    Args:
        n: independent cases.
        discordance: observed share of cases whose outcome differs; see `power_share`.
        confidence: 1 minus the level of the two-sided test.
        power: probability of showing it.

    Returns:
        In (0, 1]; infinity where not even the loss of every case would be significant.

    Raises:
        ValueError: as `power_share`, or power is not in (0, 1).
    """
    probability(power, "power")
    if power_share(n, discordance, 1.0, confidence) < power:
        return math.inf
    low, high = 0.0, 1.0
    while high - low > 1e-4 * high:  # more digits than anybody prints
        middle = (low + high) / 2
        enough = power_share(n, discordance, middle, confidence) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def power_mean(n: int, deviation: float, difference: float, confidence: float = 0.95) -> float:
    """The probability that the two-sided paired t test shows a drop, by the noncentral t distribution.

    Cohen, "Statistical Power Analysis for the Behavioral Sciences" (1988, chapter 2); only the tail on the
    side of the true difference counts.

    Args:
        n: independent clusters, at least 2.
        deviation: standard deviation of the paired differences, above 0.
        difference: size of the true drop, above 0.
        confidence: 1 minus the level of the test.

    Raises:
        ValueError: an argument is out of range.
    """
    from scipy.special import nctdtr, stdtrit

    _check_mean(n, deviation, confidence)
    if not 0 < difference < math.inf:
        raise ValueError(f"power is asked for a drop above 0; got {difference}")
    threshold = stdtrit(n - 1, (1 + confidence) / 2)
    return 1.0 - float(nctdtr(n - 1, difference / deviation * math.sqrt(n), threshold))


def _check_mean(n: int, deviation: float, confidence: float) -> None:
    probability(confidence, "confidence")
    if n < 2 or not 0 < deviation < math.inf:
        raise ValueError(f"power needs at least 2 clusters that vary; got n={n}, deviation={deviation}")


def detectable_mean(n: int, deviation: float, *, confidence: float = 0.95, power: float = 0.8) -> float:
    """The smallest drop of a mean that the paired t test would show with the given power.

    Args:
        n: independent clusters, at least 2.
        deviation: standard deviation of the paired differences (for clusters: standard error times the
            root of their number), above 0.
        confidence: 1 minus the level of the two-sided test.
        power: probability of showing it.

    Raises:
        ValueError: an argument is out of range.
    """
    from scipy.special import nctdtrinc, stdtrit

    _check_mean(n, deviation, confidence)
    probability(power, "power")
    threshold = stdtrit(n - 1, (1 + confidence) / 2)
    return float(nctdtrinc(n - 1, 1 - power, threshold)) * deviation / math.sqrt(n)


def required_n_share(
    difference: float, discordance: float, *, confidence: float = 0.95, power: float = 0.8
) -> int:
    """How many cases McNemar's exact test needs to show a drop of a share with the given power.

    Exact power rises in saw teeth; the number found has the power, the one before it has not.

    Args:
        difference: size of the true drop, in (0, 1].
        discordance: share of cases whose outcome differs; see `power_share`.
        confidence: 1 minus the level of the two-sided test.
        power: probability of showing it.

    Raises:
        ValueError: an argument is out of range, or a billion cases are not enough.
    """
    probability(power, "power")
    return _fewest(lambda n: power_share(n, discordance, difference, confidence) >= power, 1)


def required_n_mean(
    difference: float, deviation: float, *, confidence: float = 0.95, power: float = 0.8
) -> int:
    """How many independent clusters the paired t test needs to show a drop with the given power.

    Arguments and errors as `required_n_share` and `power_mean`.
    """
    probability(power, "power")
    return _fewest(lambda n: power_mean(n, deviation, difference, confidence) >= power, 2)


def _fewest(enough: Callable[[int], bool], start: int) -> int:
    low, high = start - 1, start
    while not enough(high):
        if high > MOST_CASES:
            raise ValueError(f"more than {MOST_CASES} cases would be needed: ask for a larger difference")
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
