"""Correlations with intervals, by drawing clusters of pairs again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

RESAMPLES = 1_000
FEWEST = 3
"""Pairs; of fewer no correlation is computed."""
NO_WIDTH = 1e-12
"""Spread of resamples below which only rounding differs."""

Places = NDArray[np.intp]
Statistic = Callable[[Places], float]


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation and its bootstrap interval of 95%; NaN where it is not defined.

    A correlation that is the same in every resample, as a perfect one is, has no interval.
    """

    value: float
    low: float
    high: float


class ClusterDraws:
    """Which pairs each resample holds. Pairs of one cluster are drawn together, as they are not independent.

    Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), percentile intervals.

    Args:
        clusters: of each pair; all different where the pairs are independent.
        resamples: how many.
        seed: of the draws.
    """

    def __init__(self, clusters: Sequence[Hashable], *, resamples: int = RESAMPLES, seed: int = 0) -> None:
        members: dict[Hashable, list[int]] = {}
        for place, cluster in enumerate(clusters):
            members.setdefault(cluster, []).append(place)
        groups = [np.array(places, dtype=np.intp) for places in members.values()]
        random = np.random.default_rng(seed)
        self._size = len(clusters)
        self._draws = [
            np.concatenate([groups[group] for group in random.integers(len(groups), size=len(groups))])
            for _ in range(resamples if groups else 0)
        ]

    def __len__(self) -> int:
        """How many resamples there are."""
        return len(self._draws)

    def interval(
        self, statistic: Statistic, has: NDArray[np.bool_] | None = None, *, resamples: int | None = None
    ) -> Correlation:
        """A statistic of the pairs that have a value, and its percentile interval over the resamples.

        Args:
            statistic: of the pairs at these places, of which there may be several of one place.
            has: which pairs have a value; all where none is given.
            resamples: use only so many of the resamples, for a statistic that takes long.
        """
        counted = np.ones(self._size, dtype=bool) if has is None else has
        if counted.sum() < FEWEST:
            return Correlation(np.nan, np.nan, np.nan)
        drawn = np.array([statistic(draw[counted[draw]]) for draw in self._draws[:resamples]])
        drawn = drawn[~np.isnan(drawn)]
        varies = len(drawn) and np.ptp(drawn) > NO_WIDTH
        low, high = np.quantile(drawn, (0.025, 0.975)) if varies else (np.nan, np.nan)
        return Correlation(statistic(np.flatnonzero(counted)), float(low), float(high))


def pearson_r(one: NDArray[Any], two: NDArray[Any]) -> float:
    """Pearson's r; NaN for fewer than three pairs or a constant side."""
    if len(one) < FEWEST:
        return np.nan
    a, b = one - one.mean(), two - two.mean()
    spread = float(np.sqrt((a * a).sum() * (b * b).sum()))
    # Rounding must not lead beyond the bounds.
    return max(-1.0, min(1.0, float((a * b).sum()) / spread)) if spread else np.nan


def spearman_rho(one: NDArray[Any], two: NDArray[Any]) -> float:
    """Spearman's rho, ties by mean rank; NaN as `pearson_r`."""
    return pearson_r(mean_ranks(one), mean_ranks(two)) if len(one) >= FEWEST else np.nan


def mean_ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 1, ties by their mean: scipy's `rankdata` in a quarter of its time, which resamples need.

    Args:
        values: without NaN.
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks


def kendall_tau(one: NDArray[Any], two: NDArray[Any]) -> float:
    """Kendall's tau-b; NaN as `pearson_r`."""
    from scipy.stats import kendalltau

    return float(kendalltau(one, two).statistic) if len(one) >= FEWEST else np.nan


COEFFICIENTS: dict[str, Callable[[NDArray[Any], NDArray[Any]], float]] = {
    "Pearson": pearson_r,
    "Spearman": spearman_rho,
    "Kendall": kendall_tau,
}
SLOW = "Kendall"
SHARE_OF_SLOW = 5
"""Kendall's tau takes several times as long as the others, so its intervals rest on a fifth of the resamples."""


def correlations(one: NDArray[Any], two: NDArray[Any], draws: ClusterDraws) -> dict[str, Correlation]:
    """All three coefficients over the pairs in which both sides are numbers, not NaN."""
    has = ~(np.isnan(one) | np.isnan(two))

    def interval(name: str) -> Correlation:
        resamples = len(draws) // SHARE_OF_SLOW if name == SLOW else None
        coefficient = COEFFICIENTS[name]
        return draws.interval(lambda at: coefficient(one[at], two[at]), has, resamples=resamples)

    return {name: interval(name) for name in COEFFICIENTS}
