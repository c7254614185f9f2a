"""Cases drawn by the disagreement of judges, and means of labels with weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalsuite import stats
from evalsuite.commands.judge_sheet import draw_cases, draw_cases_per_stratum
from evalsuite.core.errors import RunError
from evalsuite.results.judge_labels import compute_accuracy, compute_kappa, compute_rho
from evalsuite.results.tally import Row, Tally

SPREADS = [0.5] * 20 + [0.1] * 20 + [0.0] * 160


def test_a_draw_has_the_wanted_size_and_its_weights_stand_for_all_cases() -> None:
    draws = [draw_cases(SPREADS, 40, seed) for seed in range(400)]
    assert {len(drawn) for drawn in draws} == {40}
    totals = [math.fsum(drawn.values()) for drawn in draws]
    assert np.mean(totals) == pytest.approx(200, rel=0.02)
    first = [sum(weight for at, weight in drawn.items() if at < 20) for drawn in draws]
    assert np.mean(first) == pytest.approx(20, rel=0.06)
    assert max(max(drawn.values()) for drawn in draws) <= 200 / 40 * 4 / 3 + 1e-9


def test_cases_that_are_certain_to_be_drawn_stand_for_themselves() -> None:
    drawn = draw_cases([1.0] + [0.0] * 49, 10, 1)
    assert (len(drawn), drawn[0]) == (10, 1.0)


@pytest.mark.parametrize(("spreads", "count"), [([0.0] * 10, 4), ([0.5, 0.0, 0.2], 5)])
def test_without_disagreement_or_choice_all_weights_are_equal(spreads: list[float], count: int) -> None:
    drawn = draw_cases(spreads, count, 3)
    assert len(drawn) == min(count, len(spreads))
    assert len(set(drawn.values())) == 1


def test_strata_are_drawn_equally_and_a_small_one_leaves_its_share_to_the_others() -> None:
    strata = ["head"] * 5 + ["torso"] * 100 + ["tail"] * 200
    drawn = draw_cases_per_stratum(strata, [0.0] * 305, 65, 3)
    weights = {stratum: [weight for at, weight in drawn.items() if strata[at] == stratum] for stratum in strata}
    assert {stratum: len(found) for stratum, found in weights.items()} == {"head": 5, "torso": 30, "tail": 30}
    # A stratum's weights add up to its size, so the labelled cases stand for all cases.
    assert [sum(weights[stratum]) for stratum in ("head", "torso", "tail")] == pytest.approx([5, 100, 200])
    assert list(drawn) != sorted(drawn)


def test_fewer_cases_than_strata_are_refused() -> None:
    with pytest.raises(RunError, match="--cases 2 is too few for 3 strata"):
        draw_cases_per_stratum(["a", "b", "c"], [0.0] * 3, 2, 0)


def make_row(at: int, label: float, says: float, weight: float) -> Row:
    people = {"label": label, "passes": 1.0, "weight": weight}
    return Row(f"{at}", f"{at}", 1, "passed", {}, {"s": says}, {"ballots": ["j"], "people": {"s": people}})


def test_accuracy_is_weighted_and_agreement_beyond_chance_is_refused() -> None:
    drawn = Tally.of([make_row(at, 1.0, float(at % 2), 1.0 + 2 * (at % 2)) for at in range(40)])
    accuracy = compute_accuracy(drawn)
    assert accuracy is not None
    assert accuracy.value == pytest.approx(0.75)
    assert accuracy.low is not None
    assert accuracy.low < 0.75 < (accuracy.high or 0.0)
    assert compute_kappa(drawn) is compute_rho(drawn) is None


def test_corrected_means_with_weights_cover_the_truth() -> None:
    # A quarter of the cases is hard for all of five judges; 97.5% are asked for on each side.
    rng, repetitions, outside = np.random.default_rng(4), 150, [0, 0]
    for seed in range(repetitions):
        right = (rng.random(600) < 0.9).astype(float)
        sure = np.where(rng.random(600) < 0.25, 0.6, 0.98)
        votes = np.array([np.where(rng.random(600) < sure, right, 1 - right) for _ in range(5)])
        judged, drawn = votes.mean(0), draw_cases(votes.std(0).tolist(), 100, seed)
        labelled = np.isin(np.arange(600), list(drawn))
        at = list(drawn)
        found = stats.ppi_mean(right[at], judged[at], judged[~labelled], weights=list(drawn.values()))
        outside[0] += found.low > 0.9
        outside[1] += found.high < 0.9
    assert max(outside) / repetitions <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / repetitions)


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, math.nan]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        stats.ppi_mean([1.0, 0.0], [1.0, 0.0], [0.0, 1.0], weights=weights)
