"""An application's own calls, through clients of the openai package and over a loopback address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

APP = """
import json

def echo(messages, tools=None, response_format=None):
    last = messages[-1]
    if tools and last["role"] == "user":
        name = tools[0]["function"]["name"]
        call = {"id": "", "function": {"name": name, "arguments": json.dumps({"city": last["content"]})}}
        return {"content": "", "tool_calls": [call], "finish_reason": "tool_calls"}
    if last["role"] == "tool":
        return f"It is {last['content']}."
    return last["content"]
"""

HEAD = """
import json
import subprocess
import sys
import openai
from evalsuite import Sample, benchmark, exact_match
SAMPLES = [Sample(id=1, input="Hello big world", target="Hello big world")]

def collected(stream):
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
"""
CASE = """
@benchmark("own", SAMPLES, solver=solve, scorers=[exact_match()])
def test_own(scores):
    assert scores["exact_match"] == 1.0
"""

SOLVERS = {
    "sync": """
def solve(sample, model):
    client = model.openai_sync()
    reply = client.chat.completions.create(model="any", messages=[{"role": "user", "content": sample.input}])
    return reply.choices[0].message.content
""",
    "async": """
async def solve(sample, model):
    client = model.openai()
    reply = await client.chat.completions.create(model="any", messages=[{"role": "user", "content": sample.input}])
    assert reply.usage.total_tokens == 0
    return reply.choices[0].message.content
""",
    "stream": """
def solve(sample, model):
    stream = model.openai_sync().chat.completions.create(
        model="any", messages=[{"role": "user", "content": sample.input}], stream=True,
        stream_options={"include_usage": True})
    chunks = list(stream)
    assert len(chunks) == 6 and chunks[-1].usage is not None
    return collected(chunks)
""",
    "async stream": """
async def solve(sample, model):
    stream = await model.openai().chat.completions.create(
        model="any", messages=[{"role": "user", "content": sample.input}], stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
""",
    "responses": """
def solve(sample, model):
    client = model.openai_sync()
    first = client.responses.create(model="any", input="first", instructions="Be brief.")
    second = client.responses.create(model="any", input=sample.input, previous_response_id=first.id)
    return second.output_text
""",
    "responses stream": """
def solve(sample, model):
    with model.openai_sync().responses.stream(model="any", input=sample.input) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        assert stream.get_final_response().output_text == text
        return text
""",
    "other loop": """
import asyncio
def solve(sample, model):
    async def ask():
        client = model.openai()
        return (await client.chat.completions.create(
            model="any", messages=[{"role": "user", "content": sample.input}])).choices[0].message.content
    return asyncio.run(ask())
""",
    "endpoint": """
import os
def solve(sample, model):
    program = (
        "import openai, sys; reply = openai.OpenAI().chat.completions.create(model='any', "
        "messages=[{'role': 'user', 'content': sys.argv[1]}]); print(reply.choices[0].message.content)"
    )
    done = subprocess.run([sys.executable, "-c", program, sample.input], env=model.endpoint().env(),
                          check=True, capture_output=True, text=True)
    return done.stdout.strip()
""",
    "endpoint stream": """
def solve(sample, model):
    endpoint = model.endpoint()
    client = openai.OpenAI(base_url=endpoint.base_url, api_key="any")
    with client:
        return collected(client.chat.completions.create(
            model="any", messages=[{"role": "user", "content": sample.input}], stream=True))
""",
}


def write(suite: Suite, body: str) -> None:
    (suite.path / "test_capitals.py").write_text(HEAD + body, encoding="utf-8")
    (suite.path / "app.py").write_text(APP, encoding="utf-8")


@pytest.mark.parametrize("door", SOLVERS)
def test_every_door_leads_to_the_gateway_and_can_be_replayed(suite: Suite, door: str) -> None:
    write(suite, SOLVERS[door] + CASE)
    suite.run("--run", "first").assert_outcomes(passed=1)
    (record,) = suite.records("first")
    calls = 2 if door == "responses" else 1
    assert record["usage"]["calls"] == calls
    assert record["transcript"]["messages"][-2:] == [
        {"role": "user", "content": "Hello big world"},
        {"role": "assistant", "content": "Hello big world"},
    ]
    (suite.path / "app.py").unlink()
    suite.run("--replay", "first", "--run", "again", model=False).assert_outcomes(passed=1)
    (again,) = suite.records("again")
    assert again["transcript"]["messages"] == record["transcript"]["messages"]


@pytest.mark.parametrize("door", ["sync", "endpoint"])
def test_doors_are_open_in_workers(suite: Suite, door: str) -> None:
    write(suite, SOLVERS[door] + CASE)
    suite.run("-n", "2").assert_outcomes(passed=1)
    assert suite.records()[0]["usage"]["calls"] == 1


WEATHER = """
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}

def solve(sample, model):
    client = model.openai_sync()
    messages = [{"role": "user", "content": "Oslo"}]
    message = client.chat.completions.create(model="any", messages=messages, tools=[TOOL]).choices[0].message
    (call,) = message.tool_calls
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    messages += [message.model_dump(exclude_none=True), result]
    return client.chat.completions.create(model="any", messages=messages, tools=[TOOL]).choices[0].message.content

@benchmark("own", SAMPLES, solver=solve)
def test_own(transcript):
    assert transcript.answer == "It is sunny."
"""


def test_tool_calls_and_what_came_of_them_stand_in_the_transcript(suite: Suite) -> None:
    write(suite, WEATHER)
    suite.run().assert_outcomes(passed=1)
    transcript = suite.records()[0]["transcript"]
    assert [message["role"] for message in transcript["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [event["kind"] for event in transcript["events"]] == ["turn", "call", "turn"]
    call = transcript["events"][1]
    assert (call["tool"], call["arguments"], call["observation"]) == ("weather", {"city": "Oslo"}, "sunny")


def test_the_fixtures_have_both_doors_and_the_transcript_is_kept(suite: Suite, workers: tuple[str, ...]) -> None:
    write(
        suite,
        """
@benchmark("own", SAMPLES)
def test_own(sample, model, endpoint):
    ask = {"model": "any", "messages": [{"role": "user", "content": sample.input}]}
    with model.openai_sync() as near, openai.OpenAI(base_url=endpoint.base_url, api_key=endpoint.api_key) as far:
        texts = [client.chat.completions.create(**ask).choices[0].message.content for client in (near, far)]
        assert texts == [sample.input] * 2
        assert [model.id for model in far.models.list()] == ["function:app:echo"]
""",
    )
    suite.run(*workers).assert_outcomes(passed=1)
    (record,) = suite.records()
    assert record["usage"]["calls"] == 2
    assert record["transcript"]["answer"] == "Hello big world"


def test_the_endpoint_wants_its_secret_and_ends_with_its_case(suite: Suite) -> None:
    write(
        suite,
        """

import urllib.request, urllib.error, pathlib

def status(url, key=""):
    ask = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
    request = urllib.request.Request(url, ask, {"Authorization": f"Bearer {key}"})
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code

@benchmark("own", [Sample(id=1, input="x"), Sample(id=2, input="x")])
def test_own(sample, endpoint):
    server = endpoint.base_url.rsplit("/", 2)[0]
    note = pathlib.Path("earlier")
    assert status(f"{endpoint.base_url}/chat/completions") == 200
    assert status(f"{server}/v1/chat/completions", endpoint.api_key) == 200
    assert status(f"{server}/v1/chat/completions", "wrong") == 401
    assert status(f"{server}/wrong/v1/chat/completions") == 401
    assert status(f"{endpoint.base_url}/images") == 404
    if sample.id == "1":
        note.write_text(endpoint.base_url)
    else:
        assert status(f"{note.read_text()}/chat/completions") == 401
""",
    )
    suite.run().assert_outcomes(passed=2)


@pytest.mark.own_interpreter
def test_without_a_case_that_asks_nothing_listens(suite: Suite) -> None:
    write(
        suite,
        """
def solve(sample, model):
    import evalsuite.applications.case_model, sys
    return str("evalsuite.applications.endpoint" in sys.modules)

@benchmark("own", SAMPLES, solver=solve)
def test_own(transcript):
    assert transcript.answer == "False"
""",
    )
    suite.run(fresh=True).assert_outcomes(passed=1)


def test_a_client_that_would_wait_for_itself_is_told(suite: Suite) -> None:
    write(
        suite,
        """
async def solve(sample, model):
    return model.openai_sync().chat.completions.create(
        model="any", messages=[{"role": "user", "content": "x"}]).choices[0].message.content
"""
        + CASE,
    )
    suite.run().assert_outcomes(errors=1)
    assert "use model.openai() and await" in suite.records()[0]["error"]


def test_a_request_that_makes_no_sense_is_answered_400_in_the_apis_words(suite: Suite) -> None:
    write(
        suite,
        """
def solve(sample, model):
    try:
        model.openai_sync().chat.completions.create(
            model="any", n=2, messages=[{"role": "user", "content": "x"}])
    except openai.BadRequestError as error:
        return error.body["message"]

@benchmark("own", SAMPLES, solver=solve)
def test_own(transcript):
    assert transcript.answer.startswith("n=2: a request has one answer; send it 2 times")
""",
    )
    suite.run().assert_outcomes(passed=1)
