"""A solver or scorer that cannot be called as one is refused with what to write instead."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite import case_metrics, contains, exact_match, generate, rubric, stats
from evalsuite.core.errors import SettingsError
from evalsuite.engine.scoring import check_benchmark_parts, check_callable, get_own_judge, needs_run_judge
from evalsuite.judges import single
from evalsuite.metrics import tables, text

if TYPE_CHECKING:
    from evalsuite.core.types import Sample, Transcript


def check(solver: Any, scorers: Any) -> None:
    check_benchmark_parts("own", solver, scorers)


def length(sample: Sample, transcript: Transcript) -> dict[str, float]:
    return {"length": len(transcript.answer) + len(sample.id)}


@pytest.mark.parametrize(
    ("solver", "scorers", "message"),
    [
        (generate, [], "benchmark own: a solver takes .sample, model.; generate takes .*write generate"),
        (single(), [], "benchmark own: JudgeScorer is not a solver"),
        (generate(), exact_match(), "scorers must be a list; write scorers=.* around TargetScorer"),
        (generate(), [exact_match], r"a scorer takes .sample, transcript.; exact_match takes .*exact_match\(\)"),
        (generate(), ["exact_match"], "str is not a scorer"),
        (generate(), [lambda answer: {"length": len(answer)}], "a scorer takes"),
        (generate(), [exact_match(), exact_match()], "two scorers give the score 'exact_match'"),
        (None, [exact_match()], "it has scorers but no solver"),
        (
            generate(),
            [text.exact_match],
            r"exact_match of evalsuite\.metrics\.text compares plain values: use a function of evalsuite\.scorers",
        ),
        (generate(), [tables.table_score], "call table_score in a function of your own"),
    ],
)
def test_what_is_no_solver_or_scorer_is_refused(solver: Any, scorers: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check(solver, scorers)


def test_a_statistic_of_plain_values_is_refused_as_a_metric_over_all_cases() -> None:
    with pytest.raises(SettingsError, match=r"spearman of .* compares plain values: .* evalsuite\.case_metrics"):
        check_callable(stats.spearman, "a metric takes one argument, a Tally", 1)


@pytest.mark.parametrize(
    "make", [case_metrics.spearman, case_metrics.auroc, case_metrics.calibration_error], ids=lambda make: make.__name__
)
def test_a_metric_over_cases_refuses_the_numbers_that_its_namesake_takes(make: Any) -> None:
    numbers = [random.random() for _ in range(3)]
    for arguments in ((numbers, "right"), ("sure", numbers)):
        with pytest.raises(SettingsError, match=rf"{make.__name__} takes the names of two scores, not \[.*evalsuite\."):
            make(*arguments)
    assert make("sure", "right").name == make.__name__


def test_what_can_be_called_is_accepted() -> None:
    check(generate(), (exact_match(), contains(), length, single(), rubric("Is it right?")))
    check(lambda sample, model: model.chat(sample.input), [])
    check(None, [])


def test_a_scorer_with_a_judge_of_its_own_does_not_ask_the_run_s() -> None:
    assert needs_run_judge(single())
    assert not needs_run_judge(exact_match())
    assert not needs_run_judge(single(model="gpt-4"))
    assert get_own_judge(rubric("Is it right?", model=["gpt-4", "o3"])) == "gpt-4"
