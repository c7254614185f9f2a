"""`--inject`: faults of the model on purpose, and what an application makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SettingsError
from evalsuite.gateway.faults import format_fault_tag, parse_fault

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

AGENT = """
from evalsuite import Sample, benchmark, exact_match
from evalsuite.solvers import application
import openai

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}

def careful(question, client):
    asked = [{"role": "user", "content": question}]
    try:
        return client.chat.completions.create(model="m", messages=asked).choices[0].message.content
    except openai.APIStatusError as error:
        return f"status {error.status_code}"

def hasty(question, client):
    asked = [{"role": "user", "content": question}]
    return client.chat.completions.create(model="m", messages=asked).choices[0].message.content

def calls(question, client):
    asked = [{"role": "user", "content": question}]
    message = client.chat.completions.create(model="m", messages=asked, tools=[TOOL]).choices[0].message
    return message.tool_calls[0].function.arguments

SAMPLES = [Sample(id=str(n), input=f"number {n}", target="status 529") for n in range(40)]

@benchmark("numbers", SAMPLES, solver=application(AGENT), scorers=[exact_match()]FAULTS)
def test_numbers(scores):
    assert scores["exact_match"] == 1.0
"""
APP = """
def echo(messages):
    return messages[-1]["content"]

def caller(messages):
    look = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}
    return {"content": "", "tool_calls": [look]}
"""


def write(suite: Suite, agent: str = "careful", faults: str = "") -> None:
    suite.path.joinpath("test_capitals.py").unlink()
    suite.path.joinpath("app.py").write_text(APP)
    suite.path.joinpath("test_numbers.py").write_text(AGENT.replace("AGENT", agent).replace("FAULTS", faults))


def compared(suite: Suite, run: str) -> list[tuple[Any, ...]]:
    names = ("case", "tags", "scores", "outcome", "facts", "usage")
    return [tuple(record.get(name) for name in names) for record in suite.records(run)]


def test_an_agent_that_falls_back_passes_and_a_replay_meets_the_same_faults(
    suite: Suite, workers: tuple[str, ...]
) -> None:
    write(suite)
    gate = "--gate=numbers[fault=status].exact_match >= 0.5"
    assert suite.run(*workers, "--inject=status=529:40%", gate, "--run=first").ret == 0
    met = {record["tags"]["fault"]: record["scores"]["exact_match"] for record in suite.records("first")}
    assert met == {"status": 1.0, "none": 0.0}
    assert "Faults on purpose" in suite.report("first")
    suite.run("--replay=first", gate, "--run=again")
    assert compared(suite, "again") == compared(suite, "first")


def test_another_seed_draws_other_cases(suite: Suite) -> None:
    write(suite)
    hit = []
    for seed in ("1", "2"):
        suite.run("--inject=status=500:40%", f"--seed={seed}", f"--run=s{seed}")
        hit.append({record["sample"] for record in suite.records(f"s{seed}") if record["tags"]["fault"] == "status"})
    assert hit[0] != hit[1]
    assert all(4 <= len(cases) <= 28 for cases in hit)  # 16 are expected, with a standard deviation of 3.1.


def test_an_agent_that_does_not_fall_back_has_an_error(suite: Suite) -> None:
    write(suite, "hasty")
    suite.run("--inject=status=529:100%", "--limit=2")
    assert {(record["outcome"], record["tags"]["fault"]) for record in suite.records()} == {("error", "status")}


def test_a_benchmark_declares_its_own_faults(suite: Suite) -> None:
    write(suite, faults=', faults=["cut=100%", "latency=0.01s:100%"]')
    suite.run("--limit=2")
    for record in suite.records():
        assert record["tags"]["fault"] == "latency+cut"
        assert record["facts"]["injected"] == ["latency 0.01 s", "cut"]
        assert record["transcript"]["answer"] == "numb"


def test_a_malformed_tool_call_reaches_the_application(suite: Suite) -> None:
    write(suite, "calls")
    suite.run("--model=function:app:caller", "--inject=malformed_tool_call=100%", "--limit=1", model=False)
    (record,) = suite.records()
    assert record["tags"]["fault"] == "malformed_tool_call"
    assert record["transcript"]["answer"] == '{"at": "x"'


def test_a_cut_answer_with_tool_calls_loses_the_end_of_the_last_call(suite: Suite) -> None:
    write(suite, "calls")
    suite.run("--model=function:app:caller", "--inject=cut=100%", "--limit=1", model=False)
    (record,) = suite.records()
    assert (record["tags"]["fault"], record["transcript"]["answer"]) == ("cut", '{"at"')


EPISODE = """
from evalsuite import Sample, benchmark
from evalsuite.solvers import tool_loop
from evalsuite.tools import World, tool

class Shop:
    def __init__(self, sample): ...

    @tool
    def look(self) -> str:
        "Looks."
        return "nothing"

SOLVER = tool_loop([World(Shop).fails("look")], max_turns=2)

@benchmark("shop", [Sample("s", "hi")], solver=SOLVER)
def test_shop(transcript): ...
"""


def test_injected_faults_stand_beside_the_faults_of_an_episode(suite: Suite) -> None:
    write(suite)
    suite.path.joinpath("test_numbers.py").write_text(EPISODE)
    suite.run("--inject=latency=0.01s:100%")
    facts = suite.records()[0]["facts"]
    assert facts["faults"] == {"no_call": 2}
    assert facts["injected"] == ["look fails at call 1", "latency 0.01 s", "latency 0.01 s"]


def test_an_answer_without_tool_calls_has_none_to_damage(suite: Suite) -> None:
    write(suite)
    suite.run("--inject=malformed_tool_call=100%", "--limit=1")
    assert suite.records()[0]["tags"]["fault"] == "none"


def test_a_run_with_faults_is_not_compared_with_one_without(suite: Suite) -> None:
    write(suite)
    suite.run("--run=plain")
    result = suite.run("--inject=status=529:40%", "--baseline=plain")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*is not compared with plain*faults*"])


@pytest.mark.parametrize(
    "text", ["", "status=529", "status=200:5%", "latency=10:1%", "cut=0%", "cut=101%", "status=529:5", "crash=5%"]
)
def test_a_fault_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="write status=529:5%"):
        parse_fault(text)


def test_a_bad_fault_is_one_message_before_anything_is_asked(suite: Suite) -> None:
    result = suite.run("--inject=often")
    assert result.ret == 4
    assert "--inject often: write status=529:5%" in result.stderr.str() + result.stdout.str()


def test_the_tag_joins_the_kinds_in_one_order() -> None:
    assert format_fault_tag(["cut", "status 500", "cut"]) == "status+cut"
    assert format_fault_tag([]) == "none"
