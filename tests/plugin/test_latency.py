"""The latency of a case is the time between sending and answer, without the time in which calls waited."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

SLOW = """
import asyncio

async def echo(messages):
    await asyncio.sleep(0.1)
    return messages[-1]["content"]
"""

MANY = """
import asyncio
from evalsuite import Sample, benchmark, exact_match

async def ask_twice(sample, model):
    first, _ = await asyncio.gather(model.chat(sample.input), model.chat("again"))
    return first.text

@benchmark("many", [Sample(id=f"s{n}", input=str(n), target=str(n)) for n in range(20)], solver=ask_twice,
           scorers=[exact_match()])
def test_many(scores):
    assert scores["exact_match"] == 1.0
"""


def test_cases_that_take_turns_at_one_connection_take_no_longer_than_the_run(
    suite: Suite, parallel: tuple[str, ...]
) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(app=SLOW, test_many=MANY)
    suite.run(*parallel, "--max-connections=1", "--run=r")
    records = suite.records("r")
    taken = [record["solving_seconds"] for record in records]
    info = json.loads((suite.path / "reports" / "r" / "run.json").read_text("utf-8"))
    assert len(taken) == 20
    assert min(taken) >= 0.09
    # Two calls of two cases never overlap, so the cases' times add up to at most the session's time.
    assert sum(taken) <= info["seconds"]
    # A replay, which asks nobody, has the latencies of the calls that were made.
    suite.run(*parallel, "--replay=r", "--run=again")
    assert min(record["solving_seconds"] for record in suite.records("again")) >= 0.09
