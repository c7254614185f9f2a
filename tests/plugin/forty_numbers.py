"""Forty numbers, which models say after us more or less well: the suite of tests about releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

CASES = 40


NUMBERS = """
import os
from evalsuite import Sample, benchmark, exact_match, generate

FIRST, LAST = int(os.environ.get("FIRST", 0)), int(os.environ.get("LAST", 40))
SAMPLES = [
    Sample(id=f"{n:03}", input=str(n), target=str(n), tags={"half": "low" if n < 20 else "high"})
    for n in range(FIRST, LAST)
]

@benchmark("numbers", SAMPLES, solver=generate(), scorers=[exact_match()])
def test_numbers(scores):
    assert scores["exact_match"] == 1.0
"""


MODELS = """
from collections import Counter

asked = Counter()

def answer(messages):
    return messages[-1]["content"]

def wrong_below(limit):
    return lambda messages: "no" if int(answer(messages)) < limit else answer(messages)

def wrong_at_first(times):
    def model(messages):
        text = answer(messages)
        asked[text] += 1
        return "no" if asked[text] <= times and int(text) % 2 else text
    return model

good, two_wrong, ten_wrong, all_wrong = map(wrong_below, (0, 2, 10, 1000))
one_slip, two_slips = map(wrong_at_first, (1, 2))
"""


REPEATED = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=f"s{n}", input=str(n), target=str(n)) for n in range(100, 104)]

@benchmark("repeated", SAMPLES, solver=generate(), scorers=[exact_match()], epochs=5, at_least=4)
def test_repeated(scores):
    assert scores["exact_match"] == 1.0
"""


GATE = "--gate=numbers.exact_match >= 0.5"


def model(name: str) -> str:
    return f"--model=function:models:{name}"


def first_screen(text: str) -> str:
    return text.split("## This run", maxsplit=1)[0]


@pytest.fixture
def numbers(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Forty numbers, which models say after us more or less well."""
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_numbers=NUMBERS, models=MODELS)
    suite.model = ()
    for name in ("FIRST", "LAST"):
        monkeypatch.delenv(name, raising=False)
    return suite


@pytest.fixture(params=[(), ("-n", "2")], ids=["plain", "n2"])
def parallel(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """In one process, and with two workers."""
    chosen: tuple[str, ...] = request.param
    return chosen


@pytest.fixture
def baseline(numbers: Suite) -> Suite:
    """The same with a run named `base` in which two answers are wrong."""
    assert numbers.run(model("two_wrong"), "--run=base", GATE).ret == 0
    return numbers
