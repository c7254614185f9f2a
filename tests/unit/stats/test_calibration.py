"""How often a verdict fails candidates whose true loss is known, drawn from the pairs themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalsuite import stats


def pairs(lost: int, won: int, n: int, seed: int = 1) -> tuple[list[float], list[float]]:
    """Paired scores of 0 and 1, in random order."""
    order = np.random.default_rng(seed).permutation(n)
    before = np.array([1.0] * lost + [0.0] * won + [1.0] * (n - lost - won))[order]
    after = np.array([0.0] * lost + [1.0] * won + [1.0] * (n - lost - won))[order]
    return list(before), list(after)


def drawn(one: stats.NonInferiority, cases: int | None = None) -> stats.Calibration:
    calibration = one.calibrate(cases=cases)
    assert calibration is not None
    return calibration


def chance(share: float, draws: int) -> float:
    """Four standard errors of a share."""
    return 4 * math.sqrt(share * (1 - share) / draws) + 1 / draws


def test_equal_models_fail_as_often_as_the_binomial_distribution_says() -> None:
    lost, won, n = 25, 15, 300
    exact = sum(
        math.comb(lost + won, k) / 2 ** (lost + won)
        for k in range(lost + won + 1)
        if stats.compare_paired(*pairs(k, lost + won - k, n), margin=0.1).is_failing(0.95)
    )
    found = drawn(stats.compare_paired(*pairs(lost, won, n), margin=0.1))
    assert exact > 0
    assert abs(found.equal_fails - exact) < chance(exact, found.draws)


def test_a_lost_margin_fails_about_as_often_as_new_runs_that_lost_it() -> None:
    random, n, margin = np.random.default_rng(2), 250, 0.1

    def compare(loss: float) -> stats.NonInferiority:
        before = random.random(n) < 0.8
        kept = random.random(n)
        after = np.where(before, kept > 0.05 + loss / 0.8, kept < 0.2)
        return stats.compare_paired(before.astype(float), after.astype(float), margin=margin)

    real = sum(compare(margin).is_failing(0.95) for _ in range(100)) / 100
    found = sum(drawn(compare(0.0)).loss_fails for _ in range(6)) / 6
    assert abs(found - real) < 0.2


def test_scores_of_clusters_are_exchanged_by_cluster() -> None:
    random = np.random.default_rng(3)
    shared = np.repeat(random.normal(0, 0.2, 30), 10)
    before = np.clip(0.6 + random.normal(0, 0.05, 300), 0, 1)
    after = np.clip(before + shared, 0, 1)
    clusters = [case // 10 for case in range(300)]
    clustered = drawn(stats.compare_paired(before, after, margin=0.05, clusters=clusters))
    assert clustered.equal_fails < 0.06
    assert clustered.loss_fails < drawn(stats.compare_paired(before, after, margin=0.05)).loss_fails


def test_of_a_metric_that_should_be_low_the_rise_is_the_loss() -> None:
    before, after = pairs(12, 8, 200)
    high = stats.compare_paired(before, after, margin=0.1)
    wrong = [[1 - score for score in scores] for scores in (before, after)]
    low = stats.compare_paired(*wrong, margin=0.1, lower_is_better=True)
    assert drawn(high) == drawn(low)


def test_more_planned_cases_show_a_loss_more_often() -> None:
    one = stats.compare_paired(*pairs(10, 10, 100), margin=0.1)
    assert drawn(one, cases=1000).loss_fails > 0.9 > drawn(one).loss_fails


def test_scores_that_cannot_fall_never_lose_the_margin() -> None:
    found = drawn(stats.compare_paired([0.0] * 50, [0.0] * 50, margin=0.1))
    assert found.loss_fails == found.equal_fails == 0.0


@pytest.mark.parametrize("cases", [1, 9])
def test_fewer_than_ten_clusters_are_not_drawn_from(cases: int) -> None:
    assert stats.compare_paired([1.0] * cases, [0.5] * cases, margin=0.1).calibrate() is None


def test_a_statistic_that_is_not_a_mean_is_not_drawn_from() -> None:
    left_out = [(0.5, 0.5 + case / 100) for case in range(12)]
    one = stats.compare_statistic((0.5, 0.6), left_out, n=12, clusters=12, margin=0.1)
    assert one.calibrate() is None
    assert "pairs" not in one.to_dict()
