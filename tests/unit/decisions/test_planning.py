"""What a suite will take and can show, planned from an earlier run."""

from __future__ import annotations

import math
import random
import statistics
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.types import SHARE, Usage
from evalsuite.decisions.gates import parse_gate
from evalsuite.decisions.planning import (
    PlannedBenchmark,
    compute_detectable_losses,
    count_planned_cases,
    estimate_expense,
)
from evalsuite.gateway.spend import Price
from evalsuite.plugin.terminal import advise_on_loss
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.decisions.planning import DetectableLoss
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Tally
    from tests.unit.conftest import Desk

GATES = [parse_gate("capitals.m >= 0.5")]


def run_of(desk: Desk, name: str, epochs: Sequence[Sequence[float]], **info: object) -> Run:
    """A run of 0/1 scores, one row per epoch."""
    records = [
        desk.record(f"{question:03}", {"m": score}, epoch=epoch)
        for epoch, scores in enumerate(epochs, 1)
        for question, score in enumerate(scores)
    ]
    return desk.run(records, name, **info)


def seen(
    desk: Desk, epochs: Sequence[Sequence[float]], earlier: Run | None = None, detect: float = 0.02
) -> DetectableLoss:
    asked = PlannedBenchmark("capitals", len(epochs[0]) * len(epochs), len(epochs[0]), len(epochs))
    (sight,) = compute_detectable_losses([asked], run_of(desk, "before", epochs), earlier, GATES, detect)
    return sight


def test_cases_are_counted_by_benchmark_question_and_epoch() -> None:
    assert count_planned_cases([("b", "1"), ("a", "1"), ("a", "1"), ("a", "2")]) == [
        PlannedBenchmark("a", 3, 2, 2),
        PlannedBenchmark("b", 1, 1, 1),
    ]


def spread_of_scores(cases: Tally) -> Estimate | None:
    """A metric that is no mean over cases: the standard deviation, whose error is known."""
    values = cases.values("m")
    return Estimate(statistics.pstdev(values), n=len(values)) if len(values) > 1 else None


def test_a_derived_metric_is_planned_by_leaving_out_cases(desk: Desk) -> None:
    desk.declare("capitals", derived={"spread": spread_of_scores}, metrics={"spread": SHARE})
    rng = random.Random(4)
    scores = [rng.random() for _ in range(400)]
    baseline = run_of(desk, "before", [scores])
    gates, asked = [parse_gate("capitals.spread <= 0.5")], PlannedBenchmark("capitals", 400, 400, 1)
    (alone,) = compute_detectable_losses([asked], baseline, None, gates, 0.05)
    # The variance of a standard deviation is (m4 - m2^2) / (4 m2 n), which for uniform scores is 1 / (60 n).
    assert alone.variance.between == pytest.approx(2 / 60, rel=0.15)
    assert "nothing in common" in alone.source
    assert advise_on_loss(alone)
    moved = run_of(desk, "earlier", [[score + rng.gauss(0, 0.01) for score in scores]])
    (paired,) = compute_detectable_losses([asked], baseline, moved, gates, 0.05)
    assert paired.variance.between < alone.variance.between / 10
    assert paired.compute_detectable_loss() < alone.compute_detectable_loss()


def test_a_derived_metric_without_a_declared_range_is_not_planned(desk: Desk) -> None:
    desk.declare("capitals", derived={"spread": spread_of_scores})
    baseline = run_of(desk, "before", [[0, 1] * 10])
    asked = PlannedBenchmark("capitals", 20, 20, 1)
    assert compute_detectable_losses([asked], baseline, None, [parse_gate("capitals.spread <= 0.5")], 0.05) == []


def test_usage_and_minutes_grow_with_the_number_of_cases(desk: Desk) -> None:
    run = run_of(desk, "before", [[1, 0] * 5], seconds=60.0)
    run = desk.run([desk.record(f"{n}", {"m": 1.0}, seconds=2.0) for n in range(10)], "timed", seconds=60.0)
    expense = estimate_expense(
        PlannedBenchmark("capitals", 30, 30, 1),
        run,
        lambda usage: (usage.prompt_tokens + 2 * usage.completion_tokens) / 1000,
    )
    assert expense.usage is not None
    assert (expense.usage.calls, expense.usage.prompt_tokens, expense.usage.completion_tokens) == (30, 300, 150)
    assert expense.usage.cost == pytest.approx(0.6)
    assert expense.minutes == pytest.approx(3.0)


def test_a_plan_prices_cached_tokens_and_prompts_of_their_length(desk: Desk) -> None:
    usage = Usage(2, 1000, 100, cached_tokens=800)
    run = desk.run([desk.record(f"{n}", {"m": 1.0}, usage=usage) for n in range(10)], "cached")
    price = Price(10, 20, 600, 1e6, 1e6, cached=1)
    expense = estimate_expense(PlannedBenchmark("capitals", 30, 30, 1), run, price.compute_usage_cost)
    assert expense.usage is not None
    assert expense.usage.cached_tokens == 30 * 800
    assert expense.usage.cost == pytest.approx(30 * (200 * 10 + 800 * 1 + 100 * 20) / 1e6)


def test_a_plan_counts_the_judge_once_and_at_its_own_cost(desk: Desk) -> None:
    judge = Usage(3, 30, 15, 0.5)
    whole = Usage(1, 10, 5, 0.1) + judge
    run = desk.run([desk.record("fr", {"m": 1.0}, usage=whole, judge_usage=judge)], "judged")
    asked = PlannedBenchmark("capitals", 2, 2, 1)
    kept, priced = estimate_expense(asked, run), estimate_expense(asked, run, lambda usage: 1.0 * usage.calls)
    assert kept.usage is not None
    assert priced.usage is not None
    assert kept.usage.calls == priced.usage.calls == 8
    assert kept.usage.cost == pytest.approx(1.2)
    assert priced.usage.cost == pytest.approx(3.0)


def test_calls_without_a_known_price_have_no_expected_cost(desk: Desk) -> None:
    judge = Usage(1, 30, 15, unpriced=1)
    costs = [
        estimate_expense(PlannedBenchmark("capitals", 2, 2, 1), desk.run([record], "unpriced"), price).usage
        for record in (
            desk.record("fr", {"m": 1.0}, usage=Usage(1, 10, 5, unpriced=1)),
            desk.record("fr", {"m": 1.0}, usage=Usage(1, 10, 5, 0.1) + judge, judge_usage=judge),
        )
        for price in (None, lambda usage: 1.0 * usage.calls)
    ]
    assert [usage and usage.cost for usage in costs] == pytest.approx([math.nan, 2.0, math.nan, math.nan], nan_ok=True)


def test_nothing_is_expected_of_a_benchmark_that_the_baseline_lacks(desk: Desk) -> None:
    expense = estimate_expense(PlannedBenchmark("rivers", 30, 30, 1), run_of(desk, "before", [[1, 0]]))
    assert expense.usage is None


def test_two_earlier_runs_say_how_many_questions_change(desk: Desk) -> None:
    scores = [1.0, 0.0] * 100
    changed = [1 - score if n % 20 == 0 else score for n, score in enumerate(scores)]
    sight = seen(desk, [scores], run_of(desk, "earlier", [changed]))
    assert sight.variance.compute_variance(1, 1) == pytest.approx(0.05, abs=0.003)
    assert sight.questions_needed is not None
    assert 1200 < sight.questions_needed < 1500  # z^2 (d + loss) / loss^2 = 7.85 * 0.07 / 0.0004
    assert "needs" in advise_on_loss(sight)
    assert sight.calibration is not None
    assert sight.calibration.equal_fails < 0.05 < sight.calibration.loss_fails < 0.5  # 2.5% is meant; few cases.
    assert "equal models fail in" in advise_on_loss(sight)


def test_zeros_and_ones_on_a_wider_range_are_not_planned_as_shares(desk: Desk) -> None:
    scores = [1.0, 0.0] * 100
    ten = {"metrics": {"capitals": {"m": {"range": [0, 10], "better": "higher"}}}}
    asked = [PlannedBenchmark("capitals", 200, 200, 1)]
    (wide,) = compute_detectable_losses(asked, run_of(desk, "before", [scores], **ten), None, GATES, 0.02)
    assert not wide.variance.shares
    assert seen(desk, [scores]).variance.shares


def test_without_two_runs_or_epochs_nothing_is_calibrated(desk: Desk) -> None:
    sight = seen(desk, [[1.0, 0.0] * 20])
    assert sight.calibration is None
    assert "equal models" not in advise_on_loss(sight)


def test_a_noisy_model_pays_for_epochs_as_much_as_for_questions(desk: Desk) -> None:
    # Each question is right in every other epoch, so that all variance is within.
    sight = seen(desk, [[0.0, 1.0] * 100, [1.0, 0.0] * 100], detect=0.001)
    assert sight.noise_known
    doubled = sight.compute_detectable_loss(question_factor=2)
    assert sight.compute_detectable_loss(epoch_factor=2) == pytest.approx(doubled, rel=0.02)
    assert "epochs pay as much" in advise_on_loss(sight)
    assert sight.calibration is not None  # By the two epochs.


def test_a_steady_model_pays_for_questions_alone(desk: Desk) -> None:
    scores = [0.0, 1.0] * 100
    sight = seen(desk, [scores, scores], run_of(desk, "earlier", [list(reversed(scores))] * 2))
    assert sight.epochs_needed is None
    assert "more questions pay more" in advise_on_loss(sight)


def test_one_epoch_leaves_open_what_more_would_help(desk: Desk) -> None:
    sight = seen(desk, [[0.0, 1.0] * 100])
    assert not sight.noise_known
    assert "not known" in advise_on_loss(sight)
