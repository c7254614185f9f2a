"""How many questions and epochs show a loss: what is planned, simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalsuite.stats import paired_difference
from evalsuite.stats.power import DifferenceVariance, one_sided_loss, within_variance


def test_the_variance_within_questions_is_pooled_over_their_epochs() -> None:
    assert within_variance([[0.0, 1.0], [1.0, 1.0], [0.5]]) == 0.25


def test_without_a_second_epoch_nothing_is_known_of_the_variance_within() -> None:
    assert within_variance([[0.0], [1.0]]) is None


def test_a_loss_on_few_questions_varies_least_where_each_is_lost_wholly() -> None:
    assert one_sided_loss(0.02, 1.0) == pytest.approx(0.0196)


@pytest.mark.parametrize("epochs", [1, 4])
def test_the_planned_number_of_questions_shows_the_loss_four_times_in_five(epochs: int) -> None:
    loss, rng = 0.05, np.random.default_rng(3)
    plan = DifferenceVariance(between=0.04, within=0.09)
    questions = plan.questions(loss, epochs, epochs)
    shown = 0
    for _ in range(300):
        truth = rng.normal(-loss, math.sqrt(plan.between), questions)
        noise = rng.normal(0, math.sqrt(plan.within / epochs), (2, questions))
        shown += paired_difference(noise[0], truth + noise[1]).high < 0
    assert abs(shown / 300 - 0.8) < 0.07  # three standard errors


def test_mcnemars_plan_shows_the_loss_four_times_in_five() -> None:
    plan = DifferenceVariance(between=0.12, within=0.0, shares=True)
    questions = plan.questions(0.05, 1, 1)
    assert plan.detectable(questions, 1, 1) == pytest.approx(0.05, abs=0.003)


def test_epochs_average_noise_away_but_not_what_differs_between_questions() -> None:
    noisy = DifferenceVariance(between=0.01, within=0.2)
    epochs = noisy.epochs(0.03, 150)
    assert epochs is not None
    assert noisy.detectable(150, epochs, epochs) <= 0.03 < noisy.detectable(150, epochs - 1, epochs - 1)
    assert DifferenceVariance(between=0.2, within=0.01).epochs(0.03, 150) is None


def test_questions_that_share_a_source_count_for_less() -> None:
    alone, crowded = (DifferenceVariance(0.04, 0.0, crowding=factor) for factor in (1.0, 3.0))
    assert crowded.questions(0.05, 1, 1) == pytest.approx(3 * alone.questions(0.05, 1, 1), rel=0.02)
