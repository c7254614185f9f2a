"""What a suite will take and can show, planned from an earlier run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.decisions.gates import parse_gate
from evalsuite.decisions.planning import PlannedBenchmark, count_asked, expenses, sights
from evalsuite.reporting.plan_section import advice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.decisions.planning import Sight
    from evalsuite.results.runs import Run
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
) -> Sight:
    asked = PlannedBenchmark("capitals", len(epochs[0]) * len(epochs), len(epochs[0]), len(epochs))
    (sight,) = sights([asked], run_of(desk, "before", epochs), earlier, GATES, detect)
    return sight


def test_cases_are_counted_by_benchmark_question_and_epoch() -> None:
    assert count_asked([("b", "1"), ("a", "1"), ("a", "1"), ("a", "2")]) == [
        PlannedBenchmark("a", 3, 2, 2),
        PlannedBenchmark("b", 1, 1, 1),
    ]


def test_usage_and_minutes_grow_with_the_number_of_cases(desk: Desk) -> None:
    run = run_of(desk, "before", [[1, 0] * 5], seconds=60.0)
    run = desk.run([desk.record(f"{n}", {"m": 1.0}, seconds=2.0) for n in range(10)], "timed", seconds=60.0)
    (expense,) = expenses(
        [PlannedBenchmark("capitals", 30, 30, 1)], run, lambda prompt, answer: (prompt + 2 * answer) / 1000
    )
    assert expense.usage is not None
    assert (expense.usage.calls, expense.usage.prompt_tokens, expense.usage.completion_tokens) == (
        30,
        300,
        150,
    )
    assert expense.usage.cost == pytest.approx(0.6)
    assert expense.minutes == pytest.approx(3.0)


def test_nothing_is_expected_of_a_benchmark_that_the_baseline_lacks(desk: Desk) -> None:
    (expense,) = expenses([PlannedBenchmark("rivers", 30, 30, 1)], run_of(desk, "before", [[1, 0]]))
    assert expense.usage is None


def test_two_earlier_runs_say_how_many_questions_change(desk: Desk) -> None:
    scores = [1.0, 0.0] * 100
    changed = [1 - score if n % 20 == 0 else score for n, score in enumerate(scores)]
    sight = seen(desk, [scores], run_of(desk, "earlier", [changed]))
    assert sight.variance.of(1, 1) == pytest.approx(0.05, abs=0.003)
    assert sight.needed is not None
    assert 800 < sight.needed < 1200  # z^2 d / loss^2 = 7.85 * 0.05 / 0.0004
    assert "needs" in advice(sight)


def test_a_noisy_model_pays_for_epochs_as_much_as_for_questions(desk: Desk) -> None:
    # Each question is right in every other epoch, so that all variance is within.
    sight = seen(desk, [[0.0, 1.0] * 100, [1.0, 0.0] * 100], detect=0.001)
    assert sight.noise_known
    assert sight.with_twice_the_epochs == pytest.approx(sight.with_twice_the_questions, rel=0.02)
    assert "epochs pay as much" in advice(sight)


def test_a_steady_model_pays_for_questions_alone(desk: Desk) -> None:
    scores = [0.0, 1.0] * 100
    sight = seen(desk, [scores, scores], run_of(desk, "earlier", [list(reversed(scores))] * 2))
    assert sight.needed_epochs is None
    assert "more questions pay more" in advice(sight)


def test_one_epoch_leaves_open_what_more_would_help(desk: Desk) -> None:
    sight = seen(desk, [[0.0, 1.0] * 100])
    assert sight.with_twice_the_epochs is None
    assert "not known" in advice(sight)
