"""Confidence sequences against their authors' code and against their definitions, worked directly."""

from __future__ import annotations

import math

import pytest

from evalsuite import stats

# Two hundred made-up scores, for the comparison with confseq 0.0.11.
SCORES = [((37 * i) % 101) / 100 for i in range(1, 201)]


def bounds_at(
    sequence: stats.ConfidenceSequence, values: list[float], times: tuple[int, ...]
) -> list[tuple[float, float]]:
    found = []
    for n, value in enumerate(values, 1):
        sequence.add(value)
        if n in times:
            found.append((round(sequence.low, 6), round(sequence.high, 6)))
    return found


def test_hedged_capital_is_that_of_its_authors_code() -> None:
    # confseq 0.0.11: betting_cs with lambda_predmix_eb(alpha=0.05 / 2), as in the paper's log(2 / alpha),
    # alpha=0.05, breaks=1000, trunc_scale=1/2, theta=1/2, convex_comb=False, running_intersection=True.
    found = bounds_at(stats.BoundedSequence(), SCORES, (10, 50, 100, 150, 200))
    assert found == [(0.247, 0.779), (0.39, 0.621), (0.42, 0.589), (0.432, 0.573), (0.44, 0.565)]


def test_hedged_capital_of_low_scores_is_that_of_its_authors_code() -> None:
    # The same with the cubes of the scores and alpha=0.1.
    sequence = stats.BoundedSequence(confidence=0.9)
    found = bounds_at(sequence, [score**3 for score in SCORES], (10, 50, 100, 150, 200))
    assert found == [(0.063, 0.582), (0.156, 0.371), (0.178, 0.336), (0.189, 0.319), (0.195, 0.312)]


def test_hedged_capital_on_another_range_is_the_same_moved_and_stretched() -> None:
    moved = bounds_at(stats.BoundedSequence(1, 10), [1 + 9 * score for score in SCORES], (100,))
    assert moved == [(round(1 + 9 * 0.42, 6), round(1 + 9 * 0.589, 6))]


def test_hedged_capital_is_that_of_its_definition_where_the_interval_becomes_narrow() -> None:
    # Both capital processes in full for every mean of the grid, with c = 1/2 and bets from log(2 / alpha).
    values = [0.5 + ((37 * i) % 11 - 5) / 500 for i in range(800)]
    sequence = stats.BoundedSequence()
    bounds_at(sequence, values, ())
    bets, total, squares = [], 0.5, 0.25
    for t, value in enumerate(values, 1):
        bets.append(math.sqrt(2 * math.log(40) / (squares / t * t * math.log(t + 1))))
        total += value
        squares += (value - total / (t + 1)) ** 2

    def is_kept(mean: float) -> bool:
        above = below = 1.0
        for bet, value in zip(bets, values, strict=True):
            above *= 1 + min(bet, 0.5 / mean) * (value - mean)
            below *= 1 - min(bet, 0.5 / (1 - mean)) * (value - mean)
            if max(above, below) >= 40:
                return False
        return True

    kept = [cell for cell in range(1, 1000) if is_kept(cell / 1000)]
    assert len(kept) < 15
    assert sequence.low == pytest.approx((kept[0] - 1) / 1000)
    assert sequence.high == pytest.approx((kept[-1] + 1) / 1000)


def test_binary_bounds_have_robbins_closed_form_where_all_values_are_ones() -> None:
    # (n + 1) p^n = alpha.
    sequence = stats.BinarySequence()
    for n in range(1, 30):
        sequence.add(1)
        assert sequence.low == pytest.approx((0.05 / (n + 1)) ** (1 / n), rel=1e-9)
        assert sequence.high == 1.0


def test_binary_bounds_solve_robbins_equation() -> None:
    # (n + 1) C(n, s) p^s (1 - p)^(n - s) = alpha on both sides of s / n; the last value of each order makes
    # for the narrowest bound so far.
    rising, falling = stats.BinarySequence(0.9), stats.BinarySequence(0.9)
    bounds_at(rising, [0, 1, 1] * 20, ())
    bounds_at(falling, [1, 1, 0] * 20, ())
    for share in (rising.low, falling.high):
        mixture = 61 * math.comb(60, 40) * share**40 * (1 - share) ** 20
        assert mixture == pytest.approx(0.1, rel=1e-6)
