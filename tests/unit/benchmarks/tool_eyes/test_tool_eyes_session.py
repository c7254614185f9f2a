"""ToolEyes as a user runs it: real pytest sessions, a function as the model, through to the report."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SUITE = """
from evalsuite import benchmark
from evalsuite.benchmarks.tool_eyes import TOOL_EYES

@benchmark(TOOL_EYES{options})
def test_tool_eyes(scores):
    assert scores["finished"] == 1.0
"""

# Looks something up and finishes, in whichever protocol it is spoken to. Plays tools as well, never twice
# alike, and judges.
MODEL = """
import json
from importlib.util import find_spec
import uuid

def call(name, arguments, tools):
    if tools:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"content": "So.", "tool_calls": [{"id": "1", "type": "function", "function": function}]}
    return f"Thought: So.\\nAction: {name}\\nAction Input: {json.dumps(arguments)}"

def answer(messages, tools=None):
    first = messages[0]["content"]
    if first.startswith("You take the place of a software tool"):
        return json.dumps({"id": uuid.uuid4().hex})
    if sum(message["role"] == "assistant" for message in messages) == 0:
        return call("look", {"where": "there"}, tools)
    return call("finish", {"answer": "It is there."}, tools)

def judge(messages):
    if messages[0]["content"].startswith("You take"):
        return answer(messages)
    return "It is so.\\nScore: 8"
"""
LOOK = {
    "name": "look",
    "description": "Looks.",
    "parameters": {
        "type": "object",
        "properties": {"where": {"type": "string", "description": "a place"}},
        "required": ["where"],
    },
}


def records(pytester: pytest.Pytester, run: str) -> list[dict[str, Any]]:
    lines = (pytester.path / "reports" / run / "records.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def report(pytester: pytest.Pytester, run: str) -> str:
    return (pytester.path / "reports" / run / "report.md").read_text("utf-8")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(app=MODEL)
    return pytester


def published(folder: Path) -> None:
    subject = folder / "tool_eyes" / "Tool_Library" / "Place" / "Finder"
    subject.mkdir(parents=True)
    (subject / "config_gpt4.json").write_text(json.dumps([LOOK]), encoding="utf-8")
    path = "ToolEyes/Tool_Library/Place/Finder"
    queries = [{"query": f"Where is it? {n}", "path": path, "scenario": s} for n, s in enumerate(("TG", "FT"))]
    (folder / "tool_eyes" / "scenario_data_raw.json").write_text(json.dumps(queries), encoding="utf-8")


def test_the_shipped_queries_run_through_to_the_report_in_both_protocols(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_tool_eyes=SUITE.format(options=", queries=1"))
    result = suite.runpytest_subprocess("--model=function:app:answer", "--mode=paper", "--mode=functions", "--run=one")
    result.assert_outcomes(passed=14)
    # Every episode has one turn with a tool that does not exist, and one that finishes.
    assert all(
        record["scores"] == {"format_alignment": 1.0, "reality": 0.5, "finished": 1.0}
        for record in records(suite, "one")
    )
    text = report(suite, "one")
    assert "a tool that does not exist" in text
    assert "| functions |" in text
    assert "| paper " in text
    assert "no judge, so only the rule parts are measured" in text


def test_published_tools_are_simulated_once_for_all_runs_and_can_be_replayed_from_a_record(
    suite: pytest.Pytester,
) -> None:
    published(suite.path / "data")
    options = {
        "one": ", observations='kept'",
        "two": ", observations='kept'",
        "three": ", executor='recorded', recording='reports/one'",
    }
    for run, option in options.items():
        suite.makepyfile(test_tool_eyes=SUITE.format(options=option))
        result = suite.runpytest_subprocess(
            "--model=function:app:answer", "--judge-model=function:app:judge", "--data=data", f"--run={run}"
        )
        result.assert_outcomes(passed=2)
    looked = [
        event["observation"]
        for run in options
        for record in records(suite, run)
        for event in record["transcript"]["events"]
        if event.get("tool") == "look"
    ]
    # Two queries in three runs make one and the same call.
    assert len(looked) == 6
    assert len(set(looked)) == 1
    assert "2 simulated, played by function:app:judge" in report(suite, "two")
    assert "2 recorded" in report(suite, "three")
    # 1.0 by rule; the judge's 0.8 and 0.8 x 0.8; two real calls with 0.8 each; finished x 0.8.
    overall = (1.0 + 0.8 + 0.64 + 0.8 + 0.8) / 5
    assert [record["scores"]["overall"] for record in records(suite, "one")] == pytest.approx([overall] * 2)


def test_a_call_outside_the_recording_is_an_error_of_the_case(suite: pytest.Pytester) -> None:
    published(suite.path / "data")
    (suite.path / "records.jsonl").write_text("")
    suite.makepyfile(test_tool_eyes=SUITE.format(options=", executor='recorded', recording='.'"))
    suite.runpytest_subprocess("--model=function:app:answer", "--data=data", "--run=one")
    found = records(suite, "one")
    assert [record["outcome"] for record in found] == ["error", "error"]
    assert all("does not hold the call" in record["error"] for record in found)


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="pip install 'evalsuite[local]'")
def test_the_embedded_model_plays_episodes_in_both_protocols(suite: pytest.Pytester) -> None:
    published(suite.path / "data")
    suite.makepyfile(test_tool_eyes=SUITE.format(options=", queries=1, max_turns=2, max_tokens=16"))
    suite.runpytest_subprocess(
        "--model=local:smollm2", "--data=data", "--mode=paper", "--mode=functions", "--run=one", "-k", "tg"
    )
    found = records(suite, "one")
    assert sorted(record["tags"]["mode"] for record in found) == ["functions", "paper"]
    for record in found:
        assert record["outcome"] in {"passed", "failed"}
        assert 1 <= record["facts"]["turns"] <= 2
        assert record["usage"]["completion_tokens"] > 0
    text = report(suite, "one")
    assert "| functions |" in text
    assert "The worst episode" in text
