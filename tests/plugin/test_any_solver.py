"""Solvers and scorers that are plain functions of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

HEAD = """
import dataclasses
import pytest
from evalsuite import Sample, Score, Transcript, benchmark, exact_match
SAMPLES = [Sample(id=1, input="Paris", target="Paris")]
"""


def write(suite: Suite, body: str) -> None:
    (suite.path / "test_capitals.py").write_text(HEAD + body, encoding="utf-8")


SOLVERS = {
    "plain": "def solve(sample, model):\n    return model.chat(sample.input).text",
    "async": "async def solve(sample, model):\n    return (await model.chat(sample.input)).text",
    "lambda": "solve = lambda sample, model: model.chat(sample.input).text",
    "mapping": "def solve(sample, model):\n"
    "    return {'answer': model.chat(sample.input).text, 'passages': ['a', 'b']}",
    "dataclass": "@dataclasses.dataclass\nclass Reply:\n    answer: str\n    passages: list\n"
    "def solve(sample, model):\n    return Reply(model.chat(sample.input).text, ['a', 'b'])",
    "transcript": "def solve(sample, model):\n    return Transcript(model.chat(sample.input).text)",
}
CASE = """
@benchmark("own", SAMPLES, solver=solve, scorers=[exact_match()])
def test_own(scores):
    assert scores["exact_match"] == 1.0
"""


@pytest.mark.parametrize("kind", SOLVERS)
def test_a_solver_may_be_any_function(suite: Suite, kind: str) -> None:
    write(suite, f"\n{SOLVERS[kind]}\n{CASE}")
    suite.run().assert_outcomes(passed=1)
    (record,) = suite.records()
    assert record["sample"] == "1"
    assert record["usage"]["calls"] == 1
    transcript = record["transcript"]
    assert [message["role"] for message in transcript["messages"]] == ["user", "assistant"]
    assert [event["kind"] for event in transcript["events"]] == ["turn"]
    if kind in {"mapping", "dataclass"}:
        assert record["facts"]["passages"] == ["a", "b"]


OWN_FACTS = (
    "{'asserts': False, 'at_least': 0, 'judge_signatures': {'exact_match': 3}, 'metadata': 4, 'unmeasured': 5, "
    "'ballots': [6], 'mutations': 7}"
)


def test_a_solver_cannot_set_the_facts_that_decide_what_its_case_counts_for(suite: Suite) -> None:
    write(suite, f"\ndef solve(sample, model):\n    return {{'answer': 'Rome', **{OWN_FACTS}}}\n{CASE}")
    assert suite.run("--gate=own.pass_rate >= 0.5").ret == 10
    (record,) = suite.records()
    assert record["facts"] == {}
    assert record["transcript"]["facts"]["at_least"] == 0


def test_a_scorer_cannot_set_the_facts_that_decide_what_its_case_counts_for(suite: Suite) -> None:
    facts = "{'seen': 1, 'asserts': False, 'at_least': 0, 'judge_signatures': {'own': 3}, 'metadata': 4}"
    scorer = f"def own(sample, transcript):\n    return Score(0.0, facts={facts})"
    write(
        suite, f"\n{SOLVERS['plain']}\n{scorer}\n" + CASE.replace("exact_match()", "own").replace("exact_match", "own")
    )
    assert suite.run("--gate=own.pass_rate >= 0.5").ret == 10
    assert suite.records()[0]["facts"].keys() & {"seen", "asserts", "at_least", "metadata"} == {"seen"}


def test_plain_functions_run_in_workers(suite: Suite) -> None:
    write(suite, f"\n{SOLVERS['plain']}\n{CASE}")
    suite.run("-n", "2").assert_outcomes(passed=1)
    assert suite.records()[0]["usage"]["calls"] == 1


def test_plain_solvers_run_at_once(suite: Suite) -> None:
    write(
        suite,
        """
import threading
barrier = threading.Barrier(20, timeout=60)
def solve(sample, model):
    barrier.wait()
    return "met"
@benchmark("own", [Sample(id=n, input="x") for n in range(20)], solver=solve)
def test_own(transcript):
    assert transcript.answer == "met"
""",
    )
    suite.run("--max-connections", "20").assert_outcomes(passed=20)


@pytest.mark.parametrize(
    ("fault", "words"),
    [("return 42", "returned 42"), ("raise SystemExit(3)", "SystemExit: 3"), ("raise StopIteration", "StopIteration")],
)
def test_a_solver_that_fails_is_an_error_of_its_case(suite: Suite, fault: str, words: str) -> None:
    write(suite, f"\ndef solve(sample, model):\n    {fault}\n{CASE}")
    suite.run().assert_outcomes(errors=1)
    (record,) = suite.records()
    assert record["outcome"] == "error"
    assert words in record["error"]


def test_a_failed_model_call_is_an_error_whatever_the_solver_makes_of_it(suite: Suite) -> None:
    write(
        suite,
        """
def solve(sample, model):
    try:
        return model.chat("something else").text
    except Exception:
        return "Paris"
"""
        + CASE,
    )
    (suite.path / "app.py").write_text("def echo(messages):\n    return 'x'\n", encoding="utf-8")
    suite.run("--run", "first").assert_outcomes(failed=1)
    (suite.path / "test_capitals.py").write_text(
        (suite.path / "test_capitals.py").read_text("utf-8").replace("something else", "never asked"), "utf-8"
    )
    suite.run("--replay", "first", "--run", "again", model=False).assert_outcomes(errors=1)
    assert suite.records("again")[0]["cause"] == "ReplayMiss"


def test_a_scorer_may_be_async(suite: Suite, workers: tuple[str, ...]) -> None:
    write(
        suite,
        """
async def shout(sample, transcript):
    return {"loud": Score(0.5, note="not very")}
@benchmark("own", SAMPLES, solver=lambda sample, model: "hm", scorers=[shout])
def test_own(scores):
    assert scores["loud"] == 0.5
""",
    )
    suite.run(*workers).assert_outcomes(passed=1)
    assert suite.records()[0]["notes"] == {"loud": "not very"}


def test_scores_may_be_numbers_of_numpy(suite: Suite) -> None:
    write(
        suite,
        """
import numpy
def score(sample, transcript):
    return {"a": numpy.float32(0.5), "b": numpy.int64(2), "c": numpy.bool_(True)}
@benchmark("own", SAMPLES, solver=lambda sample, model: "hm", scorers=[score])
def test_own(scores):
    assert scores == {"a": 0.5, "b": 2.0, "c": 1.0}
""",
    )
    suite.run().assert_outcomes(passed=1)


def test_parameters_reach_sample_and_tags(suite: Suite, workers: tuple[str, ...]) -> None:
    write(
        suite,
        """
def solve(sample, model):
    return f"{sample.metadata['language']} {sample.tags['language']}"
@pytest.mark.parametrize("language", ["en", "de"])
@benchmark("own", SAMPLES, solver=solve)
def test_own(transcript, sample, language):
    assert transcript.answer == f"{language} {language}"
    assert sample.tags["language"] == language
""",
    )
    suite.run(*workers).assert_outcomes(passed=2)
    assert sorted(record["tags"]["language"] for record in suite.records()) == ["de", "en"]
