"""Applications as they are shipped: what they are given, what they return, how they fail."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SettingsError, SolverError
from evalsuite.solvers import application
from evalsuite.solvers.applications import LONGEST_END, ProgramApplication

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
        (
            "application([sys.executable, '-c', 'while True: print(\"x\" * 100000)'])",
            "printed more than 64 MiB; an answer may not be longer",
        ),
        ("application('no-such-program --at all')", "no-such-program cannot be started"),
        ("application(lambda question: 42)", "returned 42"),
    ],
)
def test_an_application_that_fails_is_the_cases_error(suite: Suite, solver: str, words: str) -> None:
    write(suite, f"solve = {solver}")
    suite.run().assert_outcomes(errors=1)
    assert words in suite.records()[0]["error"]


@pytest.mark.parametrize(
    ("left", "timeout", "words"),
    [("yes", None, "printed more than 1 MiB"), ("sleep 10", 0.1, "did not end within 0.1 s")],
)
def test_a_process_that_a_program_leaves_behind_does_not_hold_up_its_case(
    left: str, timeout: float | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalsuite.solvers.applications.LARGEST_ANSWER", 2**20)
    program = ProgramApplication(["sh", "-c", f"setsid {left} & exec sleep 60"], "answer", timeout)
    exchange: Any = SimpleNamespace(
        model=SimpleNamespace(endpoint=lambda: SimpleNamespace(base_url="", env=lambda: dict(os.environ)))
    )

    async def ask() -> None:
        async with asyncio.timeout(LONGEST_END - 1):
            await program.reply("Paris", exchange)

    with pytest.raises(SolverError, match=words):
        asyncio.run(ask())


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


GEMINI = """
solve = application([sys.executable, "-c", '''
import sys
from google import genai
from google.genai import types
asked = []
def weather(city: str) -> str:
    \\"\\"\\"Tells the weather in a city.\\"\\"\\"
    asked.append(city)
    return "sunny in " + city
config = types.GenerateContentConfig(tools=[weather], max_output_tokens=99)
with genai.Client() as client:
    if STREAM:
        said = client.models.generate_content_stream(model="gemini", contents=sys.stdin.read(), config=config)
        print("".join(piece.text or "" for piece in said))
    else:
        print(client.models.generate_content(model="gemini", contents=sys.stdin.read(), config=config).text)
'''])
"""


@pytest.mark.parametrize("stream", [True, False])
def test_a_program_that_uses_geminis_client_asks_the_model_under_test(suite: Suite, *, stream: bool) -> None:
    pytest.importorskip("google.genai")
    (suite.path / "app.py").write_text(WEATHER_APP, encoding="utf-8")
    check = "(transcript.answer, [event['tool'] for event in transcript.events if event['kind'] == 'call'])"
    write(suite, GEMINI.replace("STREAM", str(stream)), check + " == ('sunny in Paris', ['weather'])")
    suite.model = ("--model=function:app:agent",)
    suite.run("--run=first").assert_outcomes(passed=1)
    suite.run("--replay=first", model=False).assert_outcomes(passed=1)


SEVERAL = """
async def ask(question, client):
    answers = []
    for name in NAMES:
        messages = [{"role": "user", "content": question}]
        said = await client.chat.completions.create(model=name, messages=messages)
        answers.append(said.choices[0].message.content)
    vectors = await client.embeddings.create(model="vectors", input=["a"]) if EMBED else None
    return " ".join(answers)

solve = application(ask, models={"large": "function:app:echo", "small": "function:app:shout"})
"""
SHOUT = """
def echo(messages):
    return messages[-1]["content"]

def shout(messages):
    return {"content": messages[-1]["content"].upper(), "usage": {"prompt_tokens": 1, "completion_tokens": 9}}
"""


def test_each_name_that_an_agent_asks_for_has_a_model_of_its_own(suite: Suite) -> None:
    (suite.path / "app.py").write_text(SHOUT, encoding="utf-8")
    asked = "[event['model'] for event in transcript.events]"
    names = SEVERAL.replace("NAMES", "('large', 'small')").replace("EMBED", "False")
    write(suite, names, f"(transcript.answer, {asked}) == ('Paris PARIS', ['function:app:echo', 'function:app:shout'])")
    suite.run("--run=first").assert_outcomes(passed=1)
    usage = suite.records("first")[0]["usage"]
    assert (usage["calls"], usage["completion_tokens"] >= 9) == (2, True)
    suite.run("--replay=first", model=False).assert_outcomes(passed=1)


@pytest.mark.parametrize(("names", "embed"), [("('large', 'vast')", "False"), ("('large',)", "True")])
def test_a_name_without_a_model_is_the_cases_error(suite: Suite, names: str, embed: str) -> None:
    write(suite, SEVERAL.replace("NAMES", names).replace("EMBED", embed))
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*asked for the model 'v*', which application(models=...) lacks; add it: *"])


@pytest.mark.parametrize("models", [{"gpt-4o": ""}, {"gpt-4o": 4}])
def test_a_model_of_an_agent_is_named_as_for_the_command(models: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="names a model as --model does"):
        application(print, models=models)


OWN_GEMINI = """
import warnings
from google import genai

def plain(question):
    with genai.Client(api_key="mine") as client:
        return client.models.generate_content(model="gemini", contents=question).text

async def asynchronous(question):
    # Its class derives from one of aiohttp's, which warns of that.
    warnings.simplefilter("ignore", DeprecationWarning)
    async with genai.Client(api_key="mine").aio as client:
        return (await client.models.generate_content(model="gemini", contents=question)).text
"""


@pytest.mark.parametrize("function", ["plain", "asynchronous"])
def test_geminis_client_in_a_function_asks_the_model_under_test(suite: Suite, function: str) -> None:
    pytest.importorskip("google.genai")
    write(suite, f"{OWN_GEMINI}\nsolve = application({function}, route=True)", "transcript.answer == 'Paris'")
    suite.run("--run=first").assert_outcomes(passed=1)
    assert suite.records("first")[0]["usage"]["calls"] == 1


OWN_CLIENTS = """
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

def plain(question):
    with OpenAI(api_key="mine") as client:
        asked = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": question}])
    with Anthropic(api_key="mine") as client:
        said = client.messages.create(model="claude", max_tokens=9, messages=[{"role": "user", "content": "Rome"}])
    return asked.choices[0].message.content + said.content[0].text

async def asynchronous(question):
    async with AsyncOpenAI(api_key="mine") as client:
        asked = await client.responses.create(model="gpt-4o", input=question)
    async with AsyncAnthropic(api_key="mine") as client:
        messages = [{"role": "user", "content": "Rome"}]
        said = await client.messages.create(model="claude", max_tokens=9, messages=messages)
    return asked.output_text + said.content[0].text

async def blocking(question):
    with OpenAI(api_key="mine", max_retries=0) as client:
        client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": question}])
"""


@pytest.mark.parametrize("function", ["plain", "asynchronous"])
def test_clients_that_a_function_makes_itself_ask_the_model_under_test(suite: Suite, function: str) -> None:
    pytest.importorskip("anthropic")
    write(suite, f"{OWN_CLIENTS}\nsolve = application({function}, route=True)", "transcript.answer == 'ParisRome'")
    suite.run("--run=first").assert_outcomes(passed=1)
    assert suite.records("first")[0]["usage"]["calls"] == 2
    suite.run("--replay=first", model=False).assert_outcomes(passed=1)


def test_a_client_that_would_block_the_event_loop_is_an_error(suite: Suite) -> None:
    pytest.importorskip("anthropic")
    write(suite, f"{OWN_CLIENTS}\nsolve = application(blocking, route=True)")
    suite.run().assert_outcomes(errors=1)


UNROUTED = """
import httpx2

def solve_alone(question):
    with httpx2.Client(transport=httpx2.HTTPTransport(proxy="http://127.0.0.1:1")) as client:
        for _ in range(2):
            try:
                client.post("http://api.openai.com/v1/chat/completions")
            except httpx2.HTTPError:
                pass
    return "done"

solve = application(solve_alone)
"""


def test_calls_that_go_past_the_gateway_are_told(suite: Suite) -> None:
    write(suite, UNROUTED, "transcript.facts['unrouted'].startswith('2 calls went past the gateway')")
    suite.run().assert_outcomes(passed=1)


BY_A_CLIENT = """
import httpx2

def ask_provider(messages):
    with httpx2.Client(transport=httpx2.HTTPTransport(proxy="http://127.0.0.1:1")) as client:
        try:
            client.post("http://api.openai.com/v1/chat/completions")
        except httpx2.ConnectError:
            return "refused"
"""


def test_calls_of_the_gateway_itself_are_not_routed(suite: Suite) -> None:
    (suite.path / "app.py").write_text(BY_A_CLIENT, encoding="utf-8")
    ask = "async def ask(question, model):\n    return (await model.chat(question)).text\n"
    write(suite, f"{ask}\nsolve = application(ask)", "(transcript.answer, transcript.facts) == ('refused', {})")
    suite.model = ("--model=function:app:ask_provider",)
    suite.run().assert_outcomes(passed=1)


def test_only_a_function_has_clients_to_route() -> None:
    with pytest.raises(SettingsError, match="route is for functions"):
        application("node agent.js", route=True)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        *((3, r"application\(3\): give a function"), ([1, 2], "as a list of texts"), ("echo 'x", "cannot be split")),
        ([], "the command is empty"),
    ],
)
def test_what_is_neither_a_function_nor_a_command_is_refused(target: Any, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        application(target)


@pytest.mark.parametrize("timeout", ["5", 0, float("nan")])
def test_a_time_limit_is_a_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(SettingsError, match="give a number of seconds above 0"):
        application("cat", timeout=timeout)
