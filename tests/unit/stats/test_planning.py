"""How many questions and epochs show a loss: what is planned, simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from evalsuite.stats import compare_paired, detectable_share, paired_difference, power
from evalsuite.stats.power import DifferenceVariance, compute_dispersion, estimate_within_variance, power_share


def test_the_variance_within_questions_is_pooled_over_their_epochs() -> None:
    assert estimate_within_variance([[0.0, 1.0], [1.0, 1.0], [0.5]]) == 0.25


def test_without_a_second_epoch_nothing_is_known_of_the_variance_within() -> None:
    assert estimate_within_variance([[0.0], [1.0]]) is None


def test_scores_of_0_and_1_are_dispersed_most() -> None:
    assert compute_dispersion([0.0, 1.0, 1.0], 1.0) == pytest.approx(1)
    assert compute_dispersion([1.0, 1.0], 1.0) == 1
    assert compute_dispersion([0.0, 0.5, 1.0], 1.0) == pytest.approx(2 / 3)


@pytest.mark.parametrize("shares", [True, False])
def test_a_planned_number_of_questions_shows_a_loss_that_widens_the_spread(*, shares: bool) -> None:
    rng = np.random.default_rng()
    right, loss = rng.uniform(0.6, 0.95), rng.uniform(0.05, 0.12)
    plan = DifferenceVariance(2 * right * (1 - right), 0.0, shares, dispersion=1.0)
    questions = plan.count_questions_needed(loss, 1, 1)
    before = rng.random((400, questions)) < right
    after = rng.random((400, questions)) < right - loss
    found = [compare_paired(*pair, margin=0.01).pvalue for pair in zip(before * 1.0, after * 1.0, strict=True)]
    assert sum(pvalue <= 0.05 for pvalue in found) / 400 > 0.72  # 0.78, and three standard errors


@pytest.mark.parametrize("epochs", [1, 4])
def test_the_planned_number_of_questions_shows_the_loss_four_times_in_five(epochs: int) -> None:
    loss, rng = 0.05, np.random.default_rng(3)
    plan = DifferenceVariance(between=0.04, within=0.09)
    questions = plan.count_questions_needed(loss, epochs, epochs)
    shown = 0
    for _ in range(300):
        truth = rng.normal(-loss, math.sqrt(plan.between), questions)
        noise = rng.normal(0, math.sqrt(plan.within / epochs), (2, questions))
        shown += paired_difference(noise[0], truth + noise[1]).high < 0
    assert abs(shown / 300 - 0.8) < 0.07  # three standard errors


def test_mcnemars_plan_shows_the_loss_four_times_in_five() -> None:
    plan = DifferenceVariance(between=0.12, within=0.0, shares=True, dispersion=1.0)
    questions = plan.count_questions_needed(0.05, 1, 1)
    assert plan.compute_detectable_loss(questions, 1, 1) == pytest.approx(0.05, abs=0.003)


def test_epochs_average_noise_away_but_not_what_differs_between_questions() -> None:
    noisy = DifferenceVariance(between=0.01, within=0.2)
    epochs = noisy.count_epochs_needed(0.03, 150)
    assert epochs is not None
    assert (
        noisy.compute_detectable_loss(150, epochs, epochs)
        <= 0.03
        < noisy.compute_detectable_loss(150, epochs - 1, epochs - 1)
    )
    assert DifferenceVariance(between=0.2, within=0.01).count_epochs_needed(0.03, 150) is None


def test_questions_that_share_a_source_count_for_less() -> None:
    alone, crowded = (DifferenceVariance(0.04, 0.0, crowding=factor) for factor in (1.0, 3.0))
    assert crowded.count_questions_needed(0.05, 1, 1) == pytest.approx(
        3 * alone.count_questions_needed(0.05, 1, 1), rel=0.02
    )


@pytest.mark.parametrize("n", [255, 256, 257, 511, 512])
def test_where_every_case_changes_the_power_is_that_of_the_sign_test(n: int) -> None:
    most = max(wins for wins in range(n) if 2 * binom.cdf(wins, n, 0.5) <= 0.05)
    assert power_share(n, 1.0, 0.2) == pytest.approx(binom.cdf(most, n, 0.4), rel=1e-9)


def test_the_steps_of_a_search_share_their_significant_numbers_of_wins() -> None:
    power._find_most_wins.cache_clear()
    detectable_share(1560, 0.1)
    searched = power._find_most_wins.cache_info()
    assert searched.misses <= 1560 // power.BLOCK + 1 < searched.hits
