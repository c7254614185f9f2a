"""Differences of large states: every change is found, kept small, and applied again."""

from __future__ import annotations

import copy
import json
import secrets
from random import Random
from typing import Any

import pytest

from evalsuite.tools.worlds import apply_changes, compress_state, decompress_state, list_changes

SEED = secrets.randbits(32)


def make(random: Random, depth: int = 4) -> Any:
    kind = random.randrange(4 if depth else 2)
    if kind == 2:
        return [make(random, depth - 1) for _ in range(random.randrange(5))]
    if kind == 3:
        return {random.choice("abcdefgh"): make(random, depth - 1) for _ in range(random.randrange(5))}
    return random.choice([None, True, False, 0, 1, 1.0, "", "é\ud800", random.random()])


def change(random: Random, value: Any) -> Any:
    """Change a value somewhere."""
    if isinstance(value, list) and value and random.random() < 0.8:
        at = random.randrange(len(value))
        inserted = [make(random, 2) for _ in range(random.randrange(3))]
        kept = [] if random.random() < 0.3 else [change(random, value[at])]
        return [*value[:at], *inserted, *kept, *value[at + 1 :]]
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(list(value))
        rest = {name: inner for name, inner in value.items() if name != key or random.random() < 0.7}
        return (
            {**rest, random.choice("abcdefgh"): make(random, 2)}
            if random.random() < 0.5
            else {name: change(random, inner) if name == key else inner for name, inner in rest.items()}
        )
    return make(random, 2)


def test_changes_lead_from_one_state_to_the_other() -> None:
    random = Random(SEED)
    for _ in range(500):
        before = make(random)
        after = change(random, copy.deepcopy(before)) if random.random() < 0.7 else make(random)
        first = copy.deepcopy(before)
        changes = json.loads(json.dumps(list(list_changes(before, after))))
        made = apply_changes(decompress_state(compress_state(before)), changes)
        # JSON's text tells 1 from true, and from 1.0.
        assert json.dumps(made, sort_keys=True) == json.dumps(after, sort_keys=True), SEED
        assert before == first


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, [{"at": ["a", "b", 1], "from": 2, "to": 3}]),
        ([1, 2, 3, 4], [1, "x", 4], [{"at": [], "index": 1, "from": [2, 3], "to": ["x"]}]),
        ([*range(9)], [*range(5), "x", *range(5, 9)], [{"at": [], "index": 5, "from": [], "to": ["x"]}]),
        ({"a": 1}, {"b": 1}, [{"at": ["a"], "from": 1}, {"at": ["b"], "to": 1}]),
        (0, False, [{"at": [], "from": 0, "to": False}]),
    ],
)  # fmt: skip
def test_a_change_is_written_for_people(before: Any, after: Any, expected: list[Any]) -> None:
    assert list(list_changes(before, after)) == expected
