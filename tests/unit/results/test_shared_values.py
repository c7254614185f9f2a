"""Rows that share what is equal: they are the rows that they were, and smaller."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from evalsuite.results.shared_values import MOST, SharedValues
from evalsuite.results.tally import Row
from evalsuite.types import Usage

VALUES = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | st.text(max_size=3)
FACTS = st.dictionaries(st.text(max_size=3), VALUES | st.lists(VALUES, max_size=2), max_size=3)


@given(st.lists(FACTS, max_size=8))
def test_sharing_changes_no_value_and_no_type(facts: list[dict[str, object]]) -> None:
    shared = SharedValues()
    for number, one in enumerate(facts):
        row = Row(str(number), "s", 1, "passed", {"a": "b"}, {"m": 1.0}, one, Usage(1, number, 2))
        again = shared.of(row)
        assert again == row
        # Of equal values of several types, and of both zeros, each stays what it was.
        assert json.dumps(again.facts) == json.dumps(one)


def test_equal_values_are_one_object() -> None:
    shared = SharedValues()
    rows = [
        shared.of(Row(f"c{n}", "s", 1, "passed", {"a": "b"}, {"m": 1.0}, usage=Usage(1, 2, 3)))
        for n in (1, 2)
    ]
    assert rows[0].tags is rows[1].tags
    assert rows[0].scores is rows[1].scores
    assert rows[0].usage is rows[1].usage


def test_one_and_true_are_not_shared() -> None:
    shared = SharedValues()
    facts = [
        shared.of(Row("c", "s", 1, "passed", {}, {}, {"x": value})).facts["x"]
        for value in (1, True, 1.0, -0.0)
    ]
    assert [type(fact) for fact in facts] == [int, bool, float, float]
    assert math.copysign(1.0, facts[3]) == -1.0


def test_scores_that_are_all_different_do_not_fill_the_memory() -> None:
    shared = SharedValues()
    for number in range(MOST + 10):
        shared.of(Row("c", "s", 1, "passed", {}, {"m": float(number)}))
    assert len(shared._mappings) == MOST
