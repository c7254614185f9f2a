from __future__ import annotations

from typing import TYPE_CHECKING

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
