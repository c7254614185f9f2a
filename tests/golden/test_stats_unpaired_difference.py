"""Two independent shares against published intervals."""

from __future__ import annotations

import pytest

from evalsuite import stats


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), pp. 873-890, Table II, method 10.
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ],
)
def test_the_difference_of_two_shares_has_newcombe_s_interval(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    (won, n), (other, m) = first, second
    lower, upper = stats.unpaired_difference(
        won / n, stats.wilson_interval(won, n), other / m, stats.wilson_interval(other, m)
    )
    assert lower == pytest.approx(low, abs=5e-5)
    assert upper == pytest.approx(high, abs=5e-5)
