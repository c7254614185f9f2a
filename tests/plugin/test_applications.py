"""Applications as they are shipped: what they are given, what they return, how they fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

HEAD = """
import sys
from evalsuite import Sample, benchmark
from evalsuite.solvers import application
SAMPLES = [Sample(id=1, input="Paris")]
"""


def write(suite: Suite, solver: str, check: str = "True") -> None:
    (suite.path / "test_capitals.py").write_text(
        HEAD + solver + f"\n@benchmark('own', SAMPLES, solver=solve)\ndef test_own(transcript):\n    assert {check}\n",
        encoding="utf-8",
    )


def test_a_conversation_is_handed_over_in_the_openai_format(suite: Suite) -> None:
    write(
        suite,
        """
SAMPLES = [Sample(id=1, input=[{"role": "user", "content": "Hi"}])]
solve = application(lambda messages, sample, model: f"{messages[0]['content']} {sample.id} {model.name}")
""",
        "transcript.answer == 'Hi 1 function:app:echo'",
    )
    suite.run().assert_outcomes(passed=1)


def test_what_a_function_returns_beside_its_answer_becomes_facts(suite: Suite) -> None:
    write(
        suite,
        "solve = application(lambda question: {'reply': 'x', 'passages': ['p']}, answer='reply')",
        "(transcript.answer, transcript.facts) == ('x', {'passages': ['p']})",
    )
    suite.run().assert_outcomes(passed=1)


def test_a_program_reads_its_question_from_an_argument_or_from_standard_input(suite: Suite) -> None:
    write(
        suite,
        "solve = application([sys.executable, '-c', 'import sys; print(sys.argv[1] + input())', '<{input}>'])",
        "transcript.answer == '<Paris>Paris'",
    )
    suite.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        ("application([sys.executable, '-c', 'raise ValueError(\"no luck\")'])", "ended with status 1: Traceback"),
        (
            "application([sys.executable, '-c', 'import time; time.sleep(600)'], timeout=0.2)",
            "did not end within 0.2 s",
        ),
        ("application('no-such-program --at all')", "no-such-program cannot be started"),
        ("application(lambda question: 42)", "returned 42"),
    ],
)
def test_an_application_that_fails_is_the_cases_error(suite: Suite, solver: str, words: str) -> None:
    write(suite, f"solve = {solver}")
    suite.run().assert_outcomes(errors=1)
    assert words in suite.records()[0]["error"]


ANTHROPIC = """
solve = application([sys.executable, "-c", '''
import sys
from anthropic import Anthropic
client, messages = Anthropic(), [{"role": "user", "content": sys.stdin.read()}]
schema = {"type": "object", "properties": {"city": {"type": "string"}}}
tools = [{"name": "weather", "description": "Tells the weather.", "input_schema": schema}]
while True:
    with client.messages.stream(model="claude", max_tokens=99, messages=messages, tools=tools) as stream:
        said = stream.get_final_message()
    calls = [block for block in said.content if block.type == "tool_use"]
    if not calls:
        print(said.content[0].text)
        break
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny in " + call.input["city"]}
               for call in calls]
    messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]
'''])
"""
WEATHER_APP = """
import json

def agent(messages, tools):
    last = messages[-1]
    if last["role"] == "user":
        function = {"name": tools[0]["function"]["name"], "arguments": json.dumps({"city": last["content"]})}
        return {"content": "", "tool_calls": [{"id": "", "function": function}], "finish_reason": "tool_calls"}
    return last["content"]
"""


def test_a_program_that_uses_anthropics_client_asks_the_model_under_test(suite: Suite) -> None:
    pytest.importorskip("anthropic")
    (suite.path / "app.py").write_text(WEATHER_APP, encoding="utf-8")
    check = "(transcript.answer, [event['tool'] for event in transcript.events if event['kind'] == 'call'])"
    write(suite, ANTHROPIC, check + " == ('sunny in Paris', ['weather'])")
    suite.model = ("--model=function:app:agent",)
    suite.run("--run=first").assert_outcomes(passed=1)
    suite.run("--replay=first", model=False).assert_outcomes(passed=1)
