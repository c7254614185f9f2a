"""Bradley-Terry ratings, and win rates at equal lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.stats import bradley_terry, controlled_win_rate
from tests.unit.stats.test_stats_simulations import beyond_chance

OUTCOMES = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=30)


def test_three_wins_of_four_are_odds_of_three_to_one() -> None:
    # With many comparisons the half win and the half loss do not count: 400 log10(3) = 190.8 points.
    found = bradley_terry([("a", "b", outcome) for outcome in [1, 1, 1, 0] * 2500])
    assert found["a"].points - found["b"].points == pytest.approx(400 * math.log10(3), abs=0.1)
    assert list(found) == ["a", "b"]
    assert [rating.rank for rating in found.values()] == [1, 2]


def test_a_player_who_wins_every_comparison_has_a_finite_rating() -> None:
    found = bradley_terry([("b", "a", 0.0)] * 20)
    assert found["a"].low > found["b"].points
    assert math.isfinite(found["a"].high)


@given(OUTCOMES, OUTCOMES, OUTCOMES)
def test_ratings_have_the_mean_1000_and_turn_round_with_the_outcomes(
    ab: list[float], bc: list[float], ac: list[float]
) -> None:
    pairs = [
        (first, second, outcome)
        for first, second, outcomes in (("a", "b", ab), ("b", "c", bc), ("a", "c", ac))
        for outcome in outcomes
    ]
    found = bradley_terry(pairs)
    turned = bradley_terry([(first, second, 1 - outcome) for first, second, outcome in pairs])
    assert sum(rating.points for rating in found.values()) == pytest.approx(3000)
    for name, rating in found.items():
        assert rating.points + turned[name].points == pytest.approx(2000, abs=1e-6)
        assert rating.low < rating.points < rating.high


@given(OUTCOMES, st.data())
def test_ratings_do_not_depend_on_which_player_of_a_comparison_is_named_first(
    outcomes: list[float], data: st.DataObject
) -> None:
    comparisons = [("abc"[at % 3], "bca"[at % 3], outcome) for at, outcome in enumerate([*outcomes, 0.5, 0.5])]
    turned = data.draw(st.lists(st.booleans(), min_size=len(comparisons), max_size=len(comparisons)))
    exchanged = [
        (second, first, 1 - outcome) if turns else (first, second, outcome)
        for (first, second, outcome), turns in zip(comparisons, turned, strict=True)
    ]
    found, again = bradley_terry(comparisons), bradley_terry(exchanged)
    for name, rating in found.items():
        assert (again[name].points, again[name].low) == pytest.approx((rating.points, rating.low))


def test_players_that_nothing_connects_are_refused() -> None:
    with pytest.raises(ValueError, match="connect all players"):
        bradley_terry([("a", "b", 1.0), ("c", "d", 1.0)])
    with pytest.raises(ValueError, match="compared with itself"):
        bradley_terry([("a", "a", 1.0)])
    with pytest.raises(ValueError, match="empty"):
        bradley_terry([])


def test_a_judge_that_always_takes_the_longer_answer_shows_an_even_win_rate() -> None:
    rng = np.random.default_rng(1)
    own, rival = rng.integers(50, 500, 300), rng.integers(50, 250, 300)
    wins = (own > rival).astype(float)
    found = controlled_win_rate(wins, own, rival)
    assert wins.mean() > 0.7
    assert found.low < 0.5 < found.high


def test_answers_of_equal_length_keep_their_win_rate() -> None:
    found = controlled_win_rate([1.0] * 700 + [0.5] * 100 + [0.0] * 200, [10] * 1000, [10] * 1000)
    assert found.share == pytest.approx(0.75, abs=0.001)


def test_comparisons_of_one_sample_count_as_one() -> None:
    wins, same = [1.0, 1.0, 1.0, 0.0] * 10, [5] * 40
    apart = controlled_win_rate(wins, same, same)
    together = controlled_win_rate(wins * 5, same * 5, same * 5, clusters=list(range(40)) * 5)
    assert together.high - together.low == pytest.approx(apart.high - apart.low, rel=0.1)


@pytest.mark.parametrize(("theta", "length"), [(0.0, 1.5), (1.0, 0.0), (3.0, 1.5)])
def test_the_interval_at_equal_lengths_covers_the_true_rate(theta: float, length: float) -> None:
    # Stated: 94% at least.
    rng, covered = np.random.default_rng(9), 0
    truth = 1 / (1 + math.exp(-theta))
    for _ in range(400):
        own, rival = rng.lognormal(5, 0.6, 50), rng.lognormal(5.2, 0.6, 50)
        difference = own - rival
        chance = 1 / (1 + np.exp(-(theta + length * np.tanh(difference / difference.std()))))
        found = controlled_win_rate((rng.random(50) < chance).astype(float), own, rival)
        covered += found.low <= truth <= found.high
    assert covered / 400 >= 0.94 - beyond_chance(0.94, 400)


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="paired by position"):
        controlled_win_rate([1.0, 0.0], [1], [1, 2])
    with pytest.raises(ValueError, match="paired by position"):
        controlled_win_rate([1.0, 0.0], [1, 2], [1, 2], clusters=["a"])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        controlled_win_rate([2.0], [1], [2])
