from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

CASES = """
from evalsuite import Sample, Transcript, benchmark
from evalsuite.scorers import call, tool_calls, matches, similar

SAMPLES = [Sample(id=1, input="x", target="x", metadata={"calls": [call("find", city="Oslo"), "book"]})]

def solve(sample, model):
    events = [{"kind": "call", "turn": 1, "tool": "find", "arguments": {"city": "Rome"}}]
    return Transcript("AB", events=tuple(events))

@benchmark("own", SAMPLES, solver=solve, scorers=[tool_calls("exact"), matches("^AB$")])
def test_own(scores):
    assert scores["matches"] == 1.0
    assert scores["calls"] == 1.0
"""


def test_a_failure_shows_expected_and_actual_calls(suite: Suite, workers: tuple[str, ...]) -> None:
    (suite.path / "test_capitals.py").write_text(CASES, encoding="utf-8")
    result = suite.run(*workers)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*tool calls: - expected, + made*", '- find(city="Oslo")', '+ find(city="Rome")', "- book(...)"]
    )
    (record,) = suite.records()
    assert record["scores"] == {"calls": 0.0, "calls_precision": 0.0, "calls_recall": 0.0, "matches": 1.0}


MANY = """
import os
from evalsuite import Sample, Transcript, benchmark
from evalsuite.scorers import tool_calls

SAMPLES = [Sample(id=number, input="x", metadata={"calls": ["book"]}) for number in range(40)]

def solve(sample, model):
    text = "".join(model.chat(sample.input).text for _ in range(1 + int(sample.id) % 2))
    called = () if os.environ.get("BAD") else ({"kind": "call", "tool": "book", "arguments": {}},)
    return Transcript(text, events=called)

@benchmark("own", SAMPLES, solver=solve, scorers=[tool_calls("exact")])
def test_own(scores):
    scores["calls"]
"""


@pytest.mark.parametrize("gate", ["own.calls >= 0.9 @95%", "own.calls >= 90%", "calls no worse than good by 0.2"])
def test_the_score_calls_is_not_mistaken_for_the_number_of_calls_per_case(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, gate: str
) -> None:
    (suite.path / "test_capitals.py").write_text(MANY, encoding="utf-8")
    assert suite.run("--run=good", "--gate=own.calls >= 0.9 @95%").ret == 0
    monkeypatch.setenv("BAD", "1")
    assert suite.run("--baseline=good", f"--gate={gate}").ret == 10


def test_a_primary_score_named_calls_is_compared_with_a_baseline(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    (suite.path / "test_capitals.py").write_text(MANY, encoding="utf-8")
    assert suite.run("--run=good").ret == 0
    monkeypatch.setenv("BAD", "1")
    assert suite.run("--baseline=good").ret == 11


def test_a_failed_score_named_calls_of_another_scorer_has_no_list_of_calls(suite: Suite) -> None:
    code = CASES.replace("def solve", "def calls(sample, transcript):\n    return 0\n\ndef solve")
    code = code.replace('tool_calls("exact"), ', "calls, ")
    (suite.path / "test_capitals.py").write_text(code, encoding="utf-8")
    suite.run().assert_outcomes(failed=1)


def test_calls_per_case_are_not_decided_on_a_score_named_calls(suite: Suite) -> None:
    (suite.path / "test_capitals.py").write_text(MANY, encoding="utf-8")
    result = suite.run("--gate=calls per case <= 9")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*calls is a score here, not an amount per case*"])
