"""Agents that vote, are refused, give up or fall back: a replay gives each draw back as it was."""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import ChatServer, Reply
    from tests.plugin.conftest import Suite

AGENTS = """
import asyncio
import openai
from evalsuite import Sample, Transcript, benchmark, exact_match
from evalsuite.errors import RequestRefused

SAMPLES = [Sample(id=name, input=name, target="fine") for name in ("a", "b")]

async def agent(sample, model):
    votes = await asyncio.gather(*(model.chat("VOTE", temperature=1.0) for _ in range(3)))
    votes += [await model.chat("VOTE", temperature=1.0) for _ in range(2)]
    said = [vote.text for vote in votes]
    try:
        await model.chat("TOO LONG")
    except RequestRefused as error:
        said.append(f"refused: {error}")
    try:
        await model.openai().chat.completions.create(model="m", messages=[{"role": "user", "content": "TOO LONG"}])
    except openai.BadRequestError as error:
        said.append(f"refused: {error}")
    try:
        async with asyncio.timeout(0.2):
            said.append((await model.chat("SLOW")).text)
    except TimeoutError:
        said.append("gave up")
    for client in (model.openai().with_options(timeout=0.2), model.openai()):
        options = {} if client.timeout else {"timeout": 0.2}
        try:
            await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "SLOW"}], **options)
        except openai.APITimeoutError:
            said.append("timed out")
    # The last thing it does: whichever of two calls is first.
    calls = [asyncio.ensure_future(model.chat(text)) for text in ("SLOW", "QUICK")]
    done, late = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    for call in late:
        call.cancel()
    said += [call.result().text for call in done]
    return Transcript("fine", facts={"said": said})

@benchmark("agents", SAMPLES, solver=agent, scorers=[exact_match()])
def test_agents(scores):
    assert scores["exact_match"] == 1.0
"""


def without_times(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in record.items() if "seconds" not in name}
        | {"transcript": {**record["transcript"], "events": []}}
        for record in records
    ]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_replay_gives_every_draw_its_outcome_again(suite: Suite, chat_server: ChatServer, workers: str) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_agents=AGENTS)
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    numbers = itertools.count(1)

    def reply(body: dict[str, Any]) -> Reply:
        content = body["messages"][-1]["content"]
        if content == "TOO LONG":
            return chat_server.say(status=400, body={"error": {"message": "context length exceeded"}})
        return chat_server.say(str(next(numbers)), delay=2.0 * (content == "SLOW"))

    chat_server.reply = reply
    suite.run("-n", workers, "--run=first").assert_outcomes(passed=2)
    first = suite.records("first")
    votes = [record["facts"]["said"][:5] for record in first]
    assert len({vote for each in votes for vote in each}) == 10
    assert all("context length exceeded" in record["facts"]["said"][5] for record in first)
    assert [record["facts"]["said"][7:10] for record in first] == [["gave up", "timed out", "timed out"]] * 2
    requests = len(chat_server.bodies)
    suite.run("-n", workers, "--replay=first", "--run=second").assert_outcomes(passed=2)
    assert len(chat_server.bodies) == requests
    assert without_times(suite.records("second")) == without_times(first)


HURRIED = """
import asyncio, json, urllib.request
from evalsuite import Sample, Transcript, benchmark, exact_match

def ask(endpoint, text, timeout):
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(endpoint.base_url + "/chat/completions", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]
    except TimeoutError:
        return "gave up"

async def program(sample, model):
    endpoint = model.endpoint()
    said = [await asyncio.to_thread(ask, endpoint, text, 0.5) for text in ("SLOW", "QUICK")]
    # The case ends before this request is answered.
    asyncio.get_running_loop().run_in_executor(None, ask, endpoint, "SLOW, TOO", 5.0)
    await asyncio.sleep(0.3)
    return Transcript("fine", facts={"said": said})

@benchmark("programs", [Sample(id="a", input="a", target="fine")], solver=program, scorers=[exact_match()])
def test_programs(scores):
    assert scores["exact_match"] == 1.0
"""

TESTED = """
def test_program(endpoint):
    assert [ask(endpoint, text, 0.5) for text in ("SLOW", "QUICK")] == ["gave up", "an answer"]
"""


def test_a_replay_repeats_that_a_client_of_the_endpoint_gave_up(suite: Suite, chat_server: ChatServer) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_programs=HURRIED)
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    chat_server.reply = lambda body: chat_server.say(
        "an answer", delay=2.0 * body["messages"][-1]["content"].startswith("SLOW")
    )
    suite.run("--run=first").assert_outcomes(passed=1)
    first = suite.records("first")
    assert first[0]["facts"]["said"] == ["gave up", "an answer"]
    with closing(sqlite3.connect(suite.path / "reports" / "first" / "journal.sqlite")) as journal:
        cancelled = journal.execute("SELECT count(*) FROM outcomes WHERE cancelled IS NOT NULL").fetchone()
    assert cancelled == (2,)
    suite.run("--replay=first", "--run=second").assert_outcomes(passed=1)
    assert without_times(suite.records("second")) == without_times(first)


def test_a_replay_repeats_that_a_client_of_the_fixture_endpoint_gave_up(suite: Suite, chat_server: ChatServer) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_programs=HURRIED.partition("async def program")[0] + TESTED)
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    chat_server.reply = lambda body: chat_server.say(
        "an answer", delay=2.0 * (body["messages"][-1]["content"] == "SLOW")
    )
    suite.run("--run=first").assert_outcomes(passed=1)
    suite.run("--replay=first", "--run=second").assert_outcomes(passed=1)


OWN_LOOPS = """
import asyncio
import openai
from evalsuite import Sample, Transcript, benchmark, exact_match

async def ask(model, text):
    client = model.openai().with_options(timeout=0.2 if text == "SLOW" else None)
    said = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    return [said.choices[0].message.content, (await model.chat("DIRECT")).text]

async def agent(sample, model):
    said = await asyncio.to_thread(lambda: asyncio.run(ask(model, "QUICK")))
    try:
        await asyncio.to_thread(lambda: asyncio.run(ask(model, "SLOW")))
    except openai.APITimeoutError:
        said.append("timed out")
    return Transcript("fine", facts={"said": said})

SAMPLES = [Sample(id=name, input=name, target="fine") for name in ("a", "b")]

@benchmark("loops", SAMPLES, solver=agent, scorers=[exact_match()])
def test_loops(scores):
    assert scores["exact_match"] == 1.0
"""


def test_an_application_may_call_the_model_on_event_loops_of_its_own(suite: Suite, chat_server: ChatServer) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_loops=OWN_LOOPS)
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    chat_server.reply = lambda body: chat_server.say(
        "an answer", delay=2.0 * (body["messages"][-1]["content"] == "SLOW")
    )
    suite.run("--run=first").assert_outcomes(passed=2)
    first = suite.records("first")
    assert [record["facts"]["said"] for record in first] == [["an answer", "an answer", "timed out"]] * 2
    suite.run("--replay=first", "--run=second").assert_outcomes(passed=2)
    assert without_times(suite.records("second")) == without_times(first)


DOORS = """
import asyncio, os
from pathlib import Path
import aiohttp, openai
from evalsuite import Sample, Transcript, benchmark, exact_match
from evalsuite.errors import RequestRefused

Path("process").write_text(str(os.getpid()))
SECONDS = 0.3

async def by_model(model, text):
    return (await model.chat(text)).text

async def by_client(model, text):
    messages = [{"role": "user", "content": text}]
    answer = await model.openai().chat.completions.create(model="m", messages=messages)
    return answer.choices[0].message.content

async def by_endpoint(model, text):
    body = {"messages": [{"role": "user", "content": text}]}
    url = model.endpoint().base_url + "/chat/completions"
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
        said = await answer.json()
        return said["choices"][0]["message"]["content"] if answer.ok else f"refused: {answer.status} {said}"

WAYS = {"model": by_model, "client": by_client, "endpoint": by_endpoint}

async def agent(sample, model):
    said = []
    for step in ("answered", "refused", "timed out", "cancelled", "answered again"):
        call = asyncio.ensure_future(WAYS[sample.id](model, f"{sample.id}: {step}"))
        try:
            if step == "cancelled":
                await asyncio.sleep(SECONDS)
                call.cancel()
            said.append(await asyncio.wait_for(call, SECONDS if step == "timed out" else None))
        except (RequestRefused, openai.BadRequestError) as error:
            said.append(f"refused: {error}")
        except TimeoutError:
            said.append("timed out")
        except asyncio.CancelledError:
            said.append("cancelled")
    return Transcript("fine", facts={"said": said})

SAMPLES = [Sample(id=name, input=name, target="fine") for name in WAYS]

@benchmark("doors", SAMPLES, solver=agent, scorers=[exact_match()])
def test_doors(scores):
    assert scores["exact_match"] == 1.0
"""
STEPS = ("answered", "refused", "timed out", "cancelled", "answered again")


@pytest.mark.parametrize("last", STEPS)
def test_a_session_killed_at_any_step_resumes_without_asking_again_and_replays(
    suite: Suite, chat_server: ChatServer, last: str
) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_doors=DOORS)
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    numbers = itertools.count(1)
    waiting = {f"{way}: {last}" for way in ("model", "client", "endpoint")}
    killed = threading.Event()

    def reply(body: dict[str, Any]) -> Reply:
        content = body["messages"][-1]["content"]
        waiting.discard(content)
        if not waiting and not killed.is_set():
            os.kill(int((suite.path / "process").read_text()), signal.SIGKILL)
            killed.set()
        step = content.partition(": ")[2]
        if step == last:
            killed.wait(5)
        if step == "refused":
            return chat_server.say(status=400, body={"error": {"message": "context length exceeded"}})
        return chat_server.say(f"{step} {next(numbers)}", delay=0.8 * (step in {"timed out", "cancelled"}))

    chat_server.reply = reply
    assert suite.run("--run=first", fresh=True).ret == -signal.SIGKILL
    asked = set(chat_server.asked())
    chat_server.bodies.clear()
    suite.run("--resume=last").assert_outcomes(passed=3)
    again = asked & set(chat_server.asked())
    # A case may have gone on to later steps while the others reached the last one.
    assert all(STEPS.index(text.partition(": ")[2]) >= STEPS.index(last) for text in again), again
    resumed = suite.records("first")
    for record in resumed:
        said = record["facts"]["said"]
        assert said[0].startswith("answered ")
        assert "refused: " in said[1]
        assert said[2:4] == ["timed out", "cancelled"]
        assert said[4].startswith("answered again ")
    chat_server.bodies.clear()
    suite.run("--replay=first", "--run=second").assert_outcomes(passed=3)
    assert not chat_server.bodies
    assert without_times(suite.records("second")) == without_times(resumed)
