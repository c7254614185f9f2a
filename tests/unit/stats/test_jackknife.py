"""The jackknife's interval."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.stats import cohen_kappa, mean_interval
from evalsuite.stats.agreement import compute_kappa_replicates
from evalsuite.stats.clustering import jackknife_interval


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


@settings(deadline=None)
@given(st.lists(st.floats(-100, 100), min_size=2, max_size=20))
def test_for_a_mean_it_is_the_t_interval(values: list[float]) -> None:
    # Efron and Tibshirani (1993, section 11.2): for the mean, the jackknife's error is s / sqrt(n).
    found, textbook = jackknife_interval([[one] for one in values], mean), mean_interval(values)
    if math.isnan(found.low):
        assert max(values) - min(values) < 1e-6, "see the test below"
        return
    assert found.low == pytest.approx(textbook.low, abs=1e-6)
    assert found.high == pytest.approx(textbook.high, abs=1e-6)


def test_equal_clusters_agree_with_the_cluster_robust_interval() -> None:
    clusters = [[1.0, 2.0], [3.0, 5.0], [2.0, 2.0], [7.0, 4.0]]
    flat, names = [one for pair in clusters for one in pair], [at for at in range(4) for _ in range(2)]
    found, robust = jackknife_interval(clusters, mean), mean_interval(flat, clusters=names)
    assert found.low == pytest.approx(robust.low)
    assert found.high == pytest.approx(robust.high)


def test_it_is_cut_at_the_bounds() -> None:
    found = jackknife_interval([[1.0], [0.0]], mean, bounds=(0.0, 1.0))
    assert (found.low, found.high) == (0.0, 1.0)


@pytest.mark.parametrize("clusters", [[], [[1.0]], [[1.0], []]])
def test_without_two_clusters_or_where_the_statistic_is_undefined_there_is_none(clusters: list[list[float]]) -> None:
    found = jackknife_interval(clusters, mean)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_a_confidence_that_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="confidence"):
        jackknife_interval([[1.0], [2.0]], mean, confidence=95)


@pytest.mark.parametrize("clusters", [2, 10, 1000])
def test_clusters_that_agree_have_no_interval_of_zero_width(clusters: int) -> None:
    assert math.isnan(jackknife_interval([[1.0]] * clusters, mean).low)


LABELLED = st.lists(st.tuples(*[st.sampled_from("abc")] * 2, st.integers(0, 4)), min_size=1, max_size=12)


@given(LABELLED)
def test_kappa_without_a_cluster_is_that_of_the_other_items(items: list[tuple[str, str, int]]) -> None:
    one, other, clusters = (list(side) for side in zip(*items, strict=True))
    rest = [[item for item in items if item[2] != left_out] for left_out in dict.fromkeys(clusters)]
    wanted = [cohen_kappa([a for a, _, _ in some], [b for _, b, _ in some]) if some else math.nan for some in rest]
    value, replicates = compute_kappa_replicates(one, other, clusters)
    assert repr([value, *replicates]) == repr([cohen_kappa(one, other), *wanted])
