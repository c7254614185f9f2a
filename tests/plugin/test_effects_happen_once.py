"""An application's own effects happen once: a replayed or resumed run reads their results."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

CASES = """
import asyncio
from pathlib import Path
from evalsuite import Sample, benchmark, exact_match
from evalsuite.applications import effect

def log(words):
    with Path("world.log").open("a") as file:
        file.write(words + "\\n")

@effect
def send(to, copies=()):
    log(f"send {to}")
    return {"to": to, "copies": copies}

@effect
async def book(model, seat):
    log(f"book {seat}")
    return seat

@effect
async def ask(text):
    return (await MODEL.chat(text)).text

def plain(sample, model):
    sent = send(sample.input, copies=("x",))
    # On another event loop, in this function's own thread.
    seat = asyncio.run(book("a", 4))
    return {"answer": model.chat("hello").text, "sent": sent, "seat": seat}

async def asynchronous(sample, model):
    global MODEL
    MODEL = model
    sent = await asyncio.to_thread(send, sample.input, copies=("x",))
    answers = [await ask("hello"), (await model.chat("hello")).text]
    return {"answer": answers[1], "sent": sent, "seat": await book("a", 4), "answers": answers}

SAMPLES = [Sample(id="ada", input="ada", target="hello")]

@benchmark("mails", SAMPLES, solver=SOLVER, scorers=[exact_match()])
def test_mails(scores, transcript):
    assert scores["exact_match"] == 1.0
    assert transcript.facts["sent"] == {"to": "ada", "copies": ["x"]}
"""


@pytest.fixture(params=["plain", "asynchronous"])
def mails(suite: Suite, request: pytest.FixtureRequest) -> Suite:
    (suite.path / "test_capitals.py").write_text(CASES.replace("SOLVER", request.param), encoding="utf-8")
    return suite


def log(suite: Suite) -> list[str]:
    return (suite.path / "world.log").read_text(encoding="utf-8").split("\n")[:-1]


def test_a_replay_and_a_resumed_run_repeat_no_effect(mails: Suite, workers: tuple[str, ...]) -> None:
    mails.run(*workers, "--run=first").assert_outcomes(passed=1)
    replayed = mails.run(*workers, "--replay=first", "--run=again")
    replayed.assert_outcomes(passed=1)
    replayed.stdout.fnmatch_lines(["*happens again, unless evalsuite.applications.effect marks it"])
    mails.run(*workers, "--resume=first").assert_outcomes(passed=1)
    assert log(mails) == ["send ada", "book 4"]
    first, again = (mails.records(run)[0] for run in ("first", "again"))
    assert (first["facts"], first["usage"], first["fingerprints"]) == (
        again["facts"],
        again["usage"],
        again["fingerprints"],
    )


def test_a_replay_with_another_effect_is_an_error_and_not_an_effect(mails: Suite) -> None:
    mails.run("--run=first").assert_outcomes(passed=1)
    with closing(sqlite3.connect(mails.path / "reports" / "first" / "journal.sqlite")) as journal, journal:
        journal.execute("DELETE FROM tool_calls WHERE number = 1")
    result = mails.run("--replay=first", "--run=again")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*makes its tool call 1, test_capitals.send*a replay never runs a tool*"])
    assert log(mails) == ["send ada", "book 4"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("send(sample)", "*send: an argument is not JSON data*"),
        ("give()", "*give: its result is not JSON data*"),
        ("now(), 1", "*now: this plain function with @effect was called in an async solver*asyncio.to_thread*"),
    ],
)
def test_a_wrong_effect_is_one_message(suite: Suite, call: str, words: str) -> None:
    kind = "async def" if "now" in call else "def"
    cases = CASES.replace("SOLVER", "wrong").replace(
        "SAMPLES =",
        f"""
@effect
def give():
    return object()

@effect
def now():
    return 1

{kind} wrong(sample, model):
    {call}
    return "hello"

SAMPLES =""",
    )
    (suite.path / "test_capitals.py").write_text(cases, encoding="utf-8")
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([words])


def test_outside_of_a_case_an_effect_runs_as_always(suite: Suite) -> None:
    (suite.path / "test_capitals.py").write_text(
        CASES.partition("def plain")[0]
        + "\ndef test_it():\n    assert send('a') == {'to': 'a', 'copies': ()}\n"
        + "    assert asyncio.run(book('a', 4)) == 4\n",
        encoding="utf-8",
    )
    suite.run().assert_outcomes(passed=1)
    assert log(suite) == ["send a", "book 4"]
