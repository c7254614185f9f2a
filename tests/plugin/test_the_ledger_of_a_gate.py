"""What is missing is never green: sessions whose gate was met although scores were missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

LENIENT = """
import pytest
from evalsuite import Sample, benchmark, generate

def lenient(sample, transcript):
    if int(sample.id) < 3:
        return {"right": 1.0}
    RESULT

@benchmark("numbers", [Sample(id=str(n), input=str(n)) for n in range(10)], solver=generate(), scorers=[lenient])
def test_numbers(scores):
    assert scores
"""
FAILING = """
from evalsuite import Sample, benchmark, generate

def broken(tally):
    return 1 / 0

@benchmark("numbers", [Sample(id="1", input="1")], solver=generate(), scorers=[lambda sample, transcript: {"m": 1.0}],
           metrics=[broken])
def test_numbers(scores):
    assert scores["m"] == 1.0
"""


@pytest.mark.parametrize("result", ["return {}", "return {'wrong': 1.0}", "pytest.skip('no answer')"])
def test_a_scorer_that_gives_no_score_where_the_answer_is_wrong_does_not_meet_a_gate(
    suite: Suite, workers: tuple[str, ...], result: str
) -> None:
    suite.pytester.makepyfile(test_numbers=LENIENT.replace("RESULT", result))
    ended = suite.run(*workers, "test_numbers.py", "--gate=numbers.right >= 0.9")
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*numbers.right >= 0.9*3 of 10 cases scored*bad end of its range*"])


def test_a_gate_that_holds_whatever_the_missing_scores_are_is_met_and_says_so(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=LENIENT.replace("RESULT", "return {}"))
    ended = suite.run("test_numbers.py", "--gate=numbers.right >= 0.3")
    assert ended.ret == 0
    ended.stdout.fnmatch_lines(
        ["*met*3 of 10 cases scored, 7 without this score*it holds with these at 0, too*"]
    )


def test_scores_that_went_missing_since_the_baseline_leave_the_comparison_undone(suite: Suite) -> None:
    suite.pytester.makepyfile(test_numbers=LENIENT.replace("RESULT", "return {'right': 1.0}"))
    suite.run("test_numbers.py", "--run=before")
    suite.pytester.makepyfile(test_numbers=LENIENT.replace("RESULT", "return {}"))
    ended = suite.run("test_numbers.py", "--baseline=before")
    assert ended.ret == 12
    ended.stdout.fnmatch_lines(["*7 of 10 questions that the baseline scored have no score in this run*"])


@pytest.mark.parametrize(("gates", "status"), [((), 1), (("--gate=numbers.broken >= 0",), 12)])
def test_a_metric_that_raises_is_told_on_the_last_lines_and_is_red(
    suite: Suite, gates: tuple[str, ...], status: int
) -> None:
    suite.pytester.makepyfile(test_numbers=FAILING)
    ended = suite.run("test_numbers.py", *gates)
    assert ended.ret == status
    ended.stdout.fnmatch_lines(
        ["*numbers.broken could not be computed: its function raised ZeroDivisionError*"]
    )
