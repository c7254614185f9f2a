"""Conversations between an agent with tools and a user, scripted or played by a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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
from evalsuite import Persona, Sample, Scripted, benchmark, conversation, expect_state, tool

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
def test_the_agent_acts_in_its_world_until_the_user_ends_it(
    suite: Suite, user: str, options: tuple[str, ...]
) -> None:
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
    result.stdout.fnmatch_lines(["*a Persona is played by a model*--user-model*"])
