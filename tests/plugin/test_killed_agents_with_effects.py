"""Sessions killed at random moments: no effect whose result an agent or a user got happens again."""

from __future__ import annotations

import random
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

APP = """
import json
import os
import random
import signal
import threading
from pathlib import Path

lines = int(Path("lines").read_text())


def log(line):
    global lines
    with open("world.log", "ab", buffering=0) as file:
        file.write(f"{line}\\n".encode())
    lines -= 1
    if lines == 0:
        # The kill comes at once or while the journal is written.
        threading.Timer(random.choice([0, random.random() / 200]), os.kill, (os.getpid(), signal.SIGKILL)).start()


def call(name, number):
    given = {"name": name, "arguments": json.dumps({"number": number})}
    return {"content": "", "tool_calls": [{"id": f"{name}{number}", "type": "function", "function": given}]}


def play(messages, tools=()):
    '''The agent buys, the customer pays; each by a tool of its own.'''
    last = messages[-1]
    if last["role"] == "tool":
        log("seen " + last["content"])
        return f"Done {last['content']}."
    turn = sum(message["role"] == "user" for message in messages)
    names = [tool["function"]["name"] for tool in tools]
    if turn > 4 and "pay" in names:
        return "###END###"
    return call("pay" if "pay" in names else "buy", turn)
"""

CASES = """
import asyncio

from app import log
from evalsuite import Sample, benchmark
from evalsuite.applications import effect
from evalsuite.solvers import conversation
from evalsuite.tools import Persona, World, tool


def act(name):
    log("begin " + name)
    log("end " + name)
    return name


@effect
def mail(case, number):
    return act(f"mail-{case}-{number}")


@effect
async def book(case, number):
    await asyncio.sleep(0)
    return act(f"book-{case}-{number}")


class Shop:
    def __init__(self, sample):
        self.case, self.done = sample.id, []

    @tool
    async def buy(self, number: int) -> str:
        '''Buys.'''
        sent = await asyncio.to_thread(mail, self.case, number)
        log("seen " + sent)
        booked = await book(self.case, number)
        log("seen " + booked)
        self.done.append(number)
        return act(f"buy-{self.case}-{number}") if OUTSIDE else booked

    @tool
    def pay(self, number: int) -> str:
        '''Pays.'''
        self.done.append(number)
        paid = mail(self.case, f"pay {number}") if number % 2 else f"paid {number}"
        return act(f"pay-{self.case}-{number}") if OUTSIDE else paid

    def state(self):
        return {"done": self.done}

RESTORE


SAMPLES = [Sample(id=str(n), input="Buy four things.") for n in range(3)]
SOLVER = conversation(world=World(Shop, outside=OUTSIDE), user=Persona(tools=["pay"]))


@benchmark("shop", SAMPLES, solver=SOLVER)
def test_shop(transcript):
    assert transcript.facts["ended"] == "user"
    assert len(transcript.facts["state"]["done"]) == 8
"""

RESTORE = """
    def restore(self, calls):
        self.done = [given["number"] for _, given in calls]
"""


@pytest.mark.parametrize("outside", ["True", "False"])
def test_an_effect_that_was_seen_never_happens_again(suite: Suite, outside: str) -> None:
    cases = CASES.replace("RESTORE", RESTORE if outside == "True" else "").replace("OUTSIDE", outside)
    (suite.path / "test_capitals.py").write_text(cases, encoding="utf-8")
    (suite.path / "app.py").write_text(APP, encoding="utf-8")
    suite.model = ("--model=function:app:play", "--user-model=function:app:play")
    endings: list[int] = []
    for kill_at in (*(random.randint(1, 25) for _ in range(3)), 0):
        (suite.path / "lines").write_text(str(kill_at), encoding="utf-8")
        session = suite.run("--resume=first" if endings else "--run=first", fresh=True)
        endings.append(int(session.ret))
    assert endings[0] == -signal.SIGKILL
    session.assert_outcomes(passed=3)
    log = (suite.path / "world.log").read_text(encoding="utf-8")
    suite.run("--replay=first", "--run=again", model=False).assert_outcomes(passed=3)
    assert (suite.path / "world.log").read_text(encoding="utf-8").replace("seen", "") == log.replace("seen", "")
    seen: set[str] = set()
    for word, _, name in (line.partition(" ") for line in log.splitlines()):
        assert word != "begin" or name not in seen, (name, log)
        seen |= {name} if word == "seen" else set()
    done = Counter(line for line in log.splitlines() if line.startswith("end "))
    # Each session's kill may come between an effect and its entry in the journal, in each of three cases.
    assert sum(done.values()) - len(done) <= 3 * 3
    assert {f"end {kind}-{case}-{n}" for kind in ("mail", "book") for case in range(3) for n in range(1, 5)} <= set(
        done
    )
