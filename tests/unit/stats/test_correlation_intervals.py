"""Correlations of drawn pairs: scipy's values, within intervals that respect clusters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr

from evalsuite.stats.correlation import COEFFICIENTS, PairResamples, compute_correlations, compute_pearson_r

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCIPY: dict[str, Any] = {"Pearson": pearsonr, "Spearman": spearmanr, "Kendall": kendalltau}
PAIRS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 10)), min_size=3, max_size=20).filter(
    lambda pairs: all(len({pair[side] for pair in pairs}) > 1 for side in (0, 1))
)


def sides(pairs: list[tuple[int, int]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    one, two = zip(*pairs, strict=True)
    return np.array(one, dtype=float), np.array(two, dtype=float)


@pytest.mark.parametrize("name", COEFFICIENTS)
@given(PAIRS)
def test_each_coefficient_is_scipys(name: str, pairs: list[tuple[int, int]]) -> None:
    value = COEFFICIENTS[name](*sides(pairs))
    assert value == pytest.approx(SCIPY[name](*sides(pairs)).statistic, abs=1e-9)
    assert -1.0 <= value <= 1.0


def test_an_interval_holds_its_value_and_narrows_with_more_clusters() -> None:
    random = np.random.default_rng(3)
    widths = []
    for clusters in (10, 160):
        one = random.normal(size=clusters * 4)
        two = one + random.normal(size=clusters * 4)
        draws = PairResamples([place // 4 for place in range(clusters * 4)], resamples=300)
        found = compute_correlations(one, two, draws)["Pearson"]
        assert found.low < found.value < found.high
        widths.append(found.high - found.low)
    assert widths[1] < widths[0] / 2


def test_pairs_of_one_cluster_are_drawn_together() -> None:
    # Two clusters, each a single point many times over: a draw holds one of them or both, so r is 1 or undefined.
    one = np.array([0.0] * 50 + [1.0] * 50)
    draws = PairResamples(["a"] * 50 + ["b"] * 50, resamples=50)
    found = draws.interval(lambda at: compute_pearson_r(one[at], one[at]))
    assert found.value == pytest.approx(1.0)
    # That every draw says the same proves nothing.
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_pairs_with_a_missing_side_are_left_out_and_fewer_than_three_have_no_correlation() -> None:
    one, two = np.array([1.0, 2.0, math.nan, 4.0]), np.array([2.0, 1.0, 3.0, math.nan])
    found = compute_correlations(one, two, PairResamples(range(4), resamples=20))
    assert all(math.isnan(correlation.value) for correlation in found.values())
