"""Tool calls happen once: a replayed or resumed run reads them and never touches the world."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

APP = """
import json

def call(name, **arguments):
    return {"id": name, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}

def agent(messages, tools=()):
    said = [message["content"] for message in messages if message["role"] == "tool"]
    if not said:
        return {"content": "", "tool_calls": [call("send", to=messages[-1]["content"])]}
    if len(said) == 1:
        return {"content": "", "tool_calls": [call("leave")]}
    return "Sent: " + said[0]
"""

CASES = """
from pathlib import Path
from evalsuite import Sample, benchmark, contains
from evalsuite.solvers import tool_loop
from evalsuite.tools import tool

class Mail:
    def __init__(self, sample):
        log("open")
        self.sent = []

    @tool
    def send(self, to: str) -> str:
        \"\"\"Sends a mail.\"\"\"
        log("send " + to)
        self.sent.append(to)
        return "no. 1"

    @tool
    def leave(self) -> None:
        \"\"\"Tries to end the process.\"\"\"
        raise SystemExit(3)

    def state(self):
        return {"sent": self.sent}

def log(words):
    with Path("world.log").open("a") as file:
        file.write(words + "\\n")

SAMPLES = [Sample(id=name, input=name, target="no. 1") for name in ("ada", "bob")]

@benchmark("mail", SAMPLES, solver=tool_loop([Mail], ending="text"), scorers=[contains()])
def test_mail(scores, transcript, sample):
    assert scores["contains"] == 1.0
    assert transcript.facts["state"] == {"sent": [sample.input]}
"""


@pytest.fixture
def mail(suite: Suite) -> Suite:
    (suite.path / "app.py").write_text(APP, encoding="utf-8")
    (suite.path / "test_capitals.py").write_text(CASES, encoding="utf-8")
    suite.model = ("--model=function:app:agent",)
    return suite


def log(suite: Suite) -> list[str]:
    return sorted((suite.path / "world.log").read_text(encoding="utf-8").split("\n")[:-1])


ONCE = ["open", "open", "send ada", "send bob"]


def test_a_replay_and_a_resumed_run_never_touch_the_world(mail: Suite, workers: tuple[str, ...]) -> None:
    mail.run(*workers, "--run=first").assert_outcomes(passed=2)
    assert log(mail) == ONCE
    shutil.copytree(mail.path / "reports" / "first", mail.path / "elsewhere" / "first")
    mail.run(*workers, "--replay=elsewhere/first", "--run=again", model=False).assert_outcomes(passed=2)
    mail.run(*workers, "--resume=first").assert_outcomes(passed=2)
    assert log(mail) == ONCE
    assert mail.records("first")[0]["transcript"] == mail.records("again")[0]["transcript"]


def test_the_journal_holds_each_call_with_its_result(mail: Suite) -> None:
    mail.run("--run=first", "-k", "ada").assert_outcomes(passed=1)
    with closing(sqlite3.connect(mail.path / "reports" / "first" / "journal.sqlite")) as journal:
        rows = journal.execute(
            'SELECT "case", epoch, number, name, arguments, result FROM tool_calls ORDER BY number'
        ).fetchall()
    case, calls = "test_capitals.py::test_mail[ada]", [(*row[:5], row[5].split(", ")[0]) for row in rows]
    assert calls == [
        (case, 1, 1, "send", '{"to": "ada"}', '{"text": "no. 1"'),
        (case, 1, 2, "leave", "{}", '{"text": "Error: SystemExit: 3"'),
        (case, 1, 3, "state of the world", "{}", '{"state": {"sent": ["ada"]}}'),
    ]


def test_a_replay_that_calls_otherwise_is_an_error_and_not_a_call(mail: Suite) -> None:
    mail.run("--run=first").assert_outcomes(passed=2)
    with closing(sqlite3.connect(mail.path / "reports" / "first" / "journal.sqlite")) as journal, journal:
        journal.execute("DELETE FROM tool_calls WHERE number = 2")
    result = mail.run("--replay=first", "--run=again", model=False)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*makes its tool call 2, leave*a replay never runs a tool*"])
    assert log(mail) == ONCE


def test_a_world_that_cannot_catch_up_with_an_interrupted_episode_is_not_touched(mail: Suite) -> None:
    mail.run("--run=first").assert_outcomes(passed=2)
    with closing(sqlite3.connect(mail.path / "reports" / "first" / "journal.sqlite")) as journal, journal:
        journal.execute("DELETE FROM tool_calls WHERE number >= 2")
    result = mail.run("--resume=first")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*interrupted after 1 call*restore(calls)*outside=False*"])
    assert [line for line in log(mail) if line != "open"] == ["send ada", "send bob"]


def test_a_large_state_is_kept_once_with_the_changes_of_each_case(mail: Suite) -> None:
    hidden = "[str(n ** 7) for n in range(8000)]"
    large = CASES.replace('{"sent": self.sent}', f'{{"sent": self.sent, "users": {hidden}}}').replace(
        '{"sent": [sample.input]}', f'{{"sent": [sample.input], "users": {hidden}}}'
    )
    (mail.path / "test_capitals.py").write_text(large, encoding="utf-8")
    mail.run("--run=first").assert_outcomes(passed=2)
    with closing(sqlite3.connect(mail.path / "reports" / "first" / "journal.sqlite")) as journal:
        results = journal.execute("SELECT result FROM tool_calls WHERE name = 'state of the world'").fetchall()
        assert [len(row[0]) < 300 for row in results] == [True, True]
        assert journal.execute("SELECT count(*), min(length(content)) > 10000 FROM parts").fetchone() == (1, 1)
    changes = [record["facts"]["state_changes"] for record in mail.records("first")]
    assert changes == [[{"at": ["sent"], "index": 0, "from": [], "to": [name]}] for name in ("ada", "bob")]
    assert (mail.path / "reports" / "first" / "records.jsonl").stat().st_size < 10_000
    mail.run("--replay=first", "--run=again", model=False).assert_outcomes(passed=2)
    mail.run("--resume=first").assert_outcomes(passed=2)
    assert log(mail) == ONCE
    assert mail.records("first")[0]["transcript"] == mail.records("again")[0]["transcript"]


PLAYED = """
from evalsuite import Sample, benchmark, contains
from evalsuite.solvers import tool_loop
from evalsuite.tools import ToolDocument
from evalsuite.tools.execution import Tool
from evalsuite.tools.simulated import SimulatingModel

SEND = ToolDocument("send", "Sends.", {"type": "object", "properties": {"to": {"type": "string"}}})
LEAVE = ToolDocument("leave", "Leaves.", {"type": "object", "properties": {}})

def tools(sample):
    played = SimulatingModel("function:app:player")
    return [Tool(SEND, played), Tool(LEAVE, played)]

SAMPLES = [Sample(id=name, input=name, target="no. 1") for name in ("ada", "bob")]

@benchmark("mail", SAMPLES, solver=tool_loop([tools], ending="text"), scorers=[contains()])
def test_mail(scores):
    assert scores["contains"] == 1.0
"""


def test_a_replay_counts_the_calls_of_the_model_that_plays_the_tools(mail: Suite) -> None:
    with (mail.path / "app.py").open("a", encoding="utf-8") as file:
        file.write("\ndef player(messages):\n    return 'no. 1'\n")
    (mail.path / "test_capitals.py").write_text(PLAYED, encoding="utf-8")
    mail.run("--run=first").assert_outcomes(passed=2)
    mail.run("--replay=first", "--run=again", model=False).assert_outcomes(passed=2)
    first, again = (
        [{name: value for name, value in record.items() if "seconds" not in name} for record in mail.records(run)]
        for run in ("first", "again")
    )
    assert first[0]["simulator_usage"]["calls"] == 2
    for record in (*first, *again):
        for event in record["transcript"]["events"]:
            event.pop("seconds", None)
    assert again == first
