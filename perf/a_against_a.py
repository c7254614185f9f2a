"""The same model against its own baseline: how often is a session red that should not be?

    nice python perf/a_against_a.py                # 201 sessions of pytest, some minutes
    python perf/a_against_a.py --sessions 20

Each session asks 80 questions of a scripted model that answers each with a probability of its own, the same in every
session, and takes the session before it for its baseline. Promised: "worse" (status 11) at most 2.5% of the time.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

SUITE = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=f"{n:03}", input=str(n), target="yes") for n in range(80)]

@benchmark("answers", SAMPLES, solver=generate(), scorers=[exact_match()])
def test_answers(scores):
    assert scores["exact_match"] == 1.0
"""
MODEL = """
import os, random

def answer(messages):
    question = messages[-1]["content"]
    often = random.Random(question).uniform(0.5, 1.0)
    return "yes" if random.Random(f"{question} {os.environ['SESSION']}").random() < often else "no"
"""


def session(folder: Path, number: int) -> int:
    """One session, against the one before it; its exit status."""
    os.environ["SESSION"] = str(number)
    against = [f"--baseline=run{number - 1}"] if number else []
    options = ["-q", f"--rootdir={folder}", "-pno:cacheprovider", "-pno:xdist", "--model=function:scripted:answer"]
    gate = ["--gate=answers.exact_match >= 0.1", f"--run=run{number}", *against]
    with contextlib.redirect_stdout(io.StringIO()):
        return int(pytest.main([*options, *gate, str(folder / "test_answers.py")]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=200)
    number = parser.parse_args().sessions
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "conftest.py").write_text('pytest_plugins = ["evalsuite.plugin"]\n')
        (folder / "test_answers.py").write_text(SUITE)
        (folder / "scripted.py").write_text(MODEL)
        sys.path.insert(0, name)
        os.chdir(name)
        statuses = Counter(session(folder, each) for each in range(number + 1))
    worse = statuses[11]
    reach = 2 * math.sqrt(0.025 * 0.975 / number)
    print(
        f"{number} comparisons: {worse} worse, {worse / number:.1%} (promised: at most 2.5%, chance up to {reach:.1%})"
    )
    print("exit statuses:", dict(statuses))
    sys.exit(worse / number > 0.025 + reach or set(statuses) - {0, 11} != set())


if __name__ == "__main__":
    main()
