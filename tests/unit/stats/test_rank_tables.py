"""Rank correlations from tables of counts: scipy's values, for all cases and without each cluster."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.stats import kendall, pearson, spearman
from evalsuite.stats.correlation import Coefficient, compute_coefficient_replicates

SCORES = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([0.0, 0.5, 2 / 3, 3.0]), st.integers(0, 5)), min_size=6, max_size=40
)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
@settings(max_examples=60, deadline=None)
@given(cases=SCORES)
def test_the_values_are_scipys(coefficient: Coefficient, cases: list[tuple[int, float, int]]) -> None:
    measure = {"pearson": pearson, "spearman": spearman, "kendall": kendall}[coefficient]
    x, y, clusters = (list(column) for column in zip(*cases, strict=True))
    whole, left = compute_coefficient_replicates(x, y, clusters, coefficient)
    assert whole == pytest.approx(measure(x, y).statistic, nan_ok=True)
    for cluster, value in zip(dict.fromkeys(clusters), left, strict=True):
        rest = [case for case in cases if case[2] != cluster]
        if len(rest) >= 3:
            expected = measure([one[0] for one in rest], [one[1] for one in rest]).statistic
            assert value == pytest.approx(expected, nan_ok=True)


def test_a_constant_has_no_correlation() -> None:
    whole, _ = compute_coefficient_replicates([1, 1, 1, 1], [1, 2, 3, 4], [1, 2, 3, 4], "kendall")
    assert math.isnan(whole)
