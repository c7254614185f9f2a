"""A shard does not build the items of the others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.plugin.conftest import Suite

TWO = """
from evalsuite import Sample, benchmark, exact_match, generate

def samples(count):
    return [Sample(id=f"s{number}", input=str(number), target=str(number)) for number in range(count)]

@benchmark("many", samples(6), solver=generate(), scorers=[exact_match()], epochs=2)
def test_many(scores):
    assert scores["exact_match"] == 1.0

@benchmark("single", samples(1), solver=generate(), scorers=[exact_match()])
def test_single(scores):
    assert scores["exact_match"] == 1.0

def test_plain():
    pass
"""


def _collected(result: pytest.RunResult) -> set[str]:
    return set(re.findall(r"^test_two\.py::(\S+)", result.stdout.str(), re.MULTILINE))


def test_each_sample_is_in_one_shard_with_its_epochs_and_others_are_not_made(suite: Suite) -> None:
    suite.pytester.makepyfile(test_two=TWO)
    parts = [suite.run("--collect-only", "-q", f"--shard={part}/3", "test_two.py") for part in (1, 2, 3)]
    cases = [_collected(part) for part in parts]
    epochs = {f"test_many[s{number}-e{epoch}]" for number in range(6) for epoch in (1, 2)}
    assert cases[0] == {"test_plain", "test_single[s0]"} | {f"test_many[s{n}-e{e}]" for n in (0, 3) for e in (1, 2)}
    assert set.union(*cases) == epochs | {"test_single[s0]", "test_plain"}
    assert sum(map(len, cases)) == len(epochs) + 1 + 3
    # Only where a function has no case here, one was made and left out.
    outcomes = [part.parseoutcomes().get("deselected", 0) for part in parts]
    assert outcomes == [0, 1, 1]


def test_what_is_left_out_by_name_changes_no_shard(suite: Suite) -> None:
    suite.pytester.makepyfile(test_two=TWO)
    options = ("--collect-only", "-q", "-k", "s1 or s4", "test_two.py")
    both = [_collected(suite.run(*options, f"--shard={part}/3")) for part in (1, 2)]
    assert both == [set(), {f"test_many[s{number}-e{epoch}]" for number in (1, 4) for epoch in (1, 2)}]
