"""Conversations between an agent with tools and a user, scripted or played by a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import ChatServer, Reply
    from tests.plugin.conftest import Suite

APP = """
import json

def agent(messages, tools=()):
    assert messages[0] == {"role": "system", "content": "You sell tickets."}
    last = messages[-1]
    if last["role"] == "user" and "Oslo" in last["content"]:
        arguments = json.dumps({"city": "Oslo"})
        return {"content": "", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "book", "arguments": arguments}}]}
    return "Booked." if last["role"] == "tool" else "Where to?"

def user(messages):
    assert "A ticket to Oslo" in messages[0]["content"]
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    return ["I want a ticket.", "To Oslo.", "###END###"][len(said)]
"""

CASES = """
from evalsuite import Sample, benchmark
from evalsuite.scorers import expect_state
from evalsuite.solvers import conversation
from evalsuite.tools import Persona, Scripted, tool

class Shop:
    def __init__(self, sample):
        self.booked = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        self.booked = None

    @tool
    async def book(self, city: str) -> str:
        \"\"\"Books a ticket.\"\"\"
        self.booked.append(city)
        return "done"

    async def state(self):
        return {"booked": self.booked, "more": 1}

SAMPLES = [Sample(id="oslo", input="A ticket to Oslo", metadata={"state": {"booked": ["Oslo"]}})]
SOLVER = conversation(user=USER, world=Shop, policy="You sell tickets.", max_turns=5)

@benchmark("shop", SAMPLES, solver=SOLVER, scorers=[expect_state()])
def test_shop(scores, transcript):
    assert scores["state"] == 1.0
    assert transcript.answer == "Booked."
    assert transcript.facts["exchanges"] == 2
    assert transcript.facts["ended"] == "user"
"""


@pytest.mark.parametrize(
    ("user", "options"),
    [
        ('Scripted(["I want a ticket.", "To Oslo."])', ()),
        ("Persona()", ("--user-model=function:app:user",)),
        ("Persona()", ("--judge-model=function:app:user",)),
    ],
)
def test_the_agent_acts_in_its_world_until_the_user_ends_it(suite: Suite, user: str, options: tuple[str, ...]) -> None:
    (suite.path / "app.py").write_text(APP, encoding="utf-8")
    (suite.path / "test_capitals.py").write_text(CASES.replace("USER", user), encoding="utf-8")
    suite.model = ("--model=function:app:agent",)
    suite.run("--run=first", *options).assert_outcomes(passed=1)
    suite.run("--replay=first", "--run=again", model=False).assert_outcomes(passed=1)
    assert suite.records("first")[0]["transcript"] == suite.records("again")[0]["transcript"]


def test_a_persona_without_a_model_is_an_error_that_names_the_option(suite: Suite) -> None:
    (suite.path / "app.py").write_text(APP, encoding="utf-8")
    (suite.path / "test_capitals.py").write_text(CASES.replace("USER", "Persona()"), encoding="utf-8")
    suite.model = ("--model=function:app:agent",)
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*a Persona is played by a model*evalsuite_user_model*"])


SOLD_OUT = "world=World(Shop).fails('book', message='sold out')"


def test_a_user_of_a_server_of_its_own_is_counted_apart_and_faults_are_tags(
    suite: Suite, chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(body: dict[str, Any]) -> Reply:
        answered = sum(message["role"] == "assistant" for message in body["messages"])
        return chat_server.say(["I want a ticket.", "To Oslo.", "###END###"][answered])

    chat_server.reply = reply
    monkeypatch.setenv("USER_KEY", "sk-of-the-user-0123456789")
    cases = (
        CASES.replace("USER", "Persona()")
        .replace("world=Shop", SOLD_OUT)
        .replace("from evalsuite", "from evalsuite.tools import World\nfrom evalsuite", 1)
    )
    cases = cases.replace("== 1.0", "== 0.0")
    (suite.path / "app.py").write_text(APP, encoding="utf-8")
    (suite.path / "test_capitals.py").write_text(cases, encoding="utf-8")
    suite.model = ("--model=function:app:agent",)
    options = (
        "--user-model=person",
        f"-oevalsuite_user_base_url={chat_server.url}",
        "-oevalsuite_user_key_env=USER_KEY",
    )
    gates = ("--gate=shop[faults=book fails at call 1].state <= 0", "--gate=shop.simulator_calls <= 3")
    suite.run("--run=first", *options, *gates).assert_outcomes(passed=1)
    assert [sent["Authorization"] for sent in chat_server.headers] == ["Bearer sk-of-the-user-0123456789"] * 3
    (record,) = suite.records("first")
    assert record["tags"] == {"faults": "book fails at call 1"}
    assert record["facts"]["injected"] == ["book fails at call 1"]
    assert (record["usage"]["calls"], record["simulator_usage"]["calls"]) == (6, 3)
    assert 0 < record["solving_seconds"] <= record["seconds"]
    assert len(record["fingerprints"]["user"]) == 16
    report = (suite.path / "reports" / "first" / "report.md").read_text(encoding="utf-8")
    assert "book fails at call 1" in report
    assert "| person at " in report
    # Another player of users is another question, so nothing of the old run counts.
    suite.run("--resume=first", *options[1:], "--user-model=other").assert_outcomes(passed=1)
    assert {body["model"] for body in chat_server.bodies} == {"person", "other"}


KILLED = """
import os, pathlib, signal

def agent(messages):
    said = [message["content"] for message in messages if message["role"] == "user"]
    with pathlib.Path("asked").open("a") as log:
        print(len(messages), file=log)
    if len(said) == 2 and not pathlib.Path("killed").exists():
        pathlib.Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "I heard " + " and ".join(said)
"""
GREETINGS = """
from evalsuite import Sample, benchmark
from evalsuite.solvers import conversation
from evalsuite.tools import Scripted

SAMPLES = [Sample(id="one", input="one", metadata={"user": ["two", "three"]})]

@benchmark("greetings", SAMPLES, solver=conversation(user=Scripted()))
def test_greetings(transcript):
    assert transcript.answer == "I heard one and two and three"
"""


def test_a_conversation_that_was_killed_goes_on_where_it_was(suite: Suite) -> None:
    (suite.path / "test_capitals.py").write_text(GREETINGS, encoding="utf-8")
    (suite.path / "app.py").write_text(KILLED, encoding="utf-8")
    suite.model = ("--model=function:app:agent",)
    assert suite.run("--run=first", fresh=True).ret != 0
    suite.run("--resume=first", fresh=True).assert_outcomes(passed=1)
    asked = (suite.path / "asked").read_text(encoding="utf-8").split()
    # Only the call that was being answered is made again.
    assert asked == ["1", "3", "3", "5"]
