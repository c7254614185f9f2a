"""`denotation` beside the rules of WikiTableQuestions' evaluator, which perf/wtq_agreement.py states anew."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "perf/wtq_agreement.py"


@pytest.fixture(scope="module")
def oracle() -> Any:
    spec = importlib.util.spec_from_file_location("wtq_agreement", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [20261124, 1, 2])
def test_whatever_the_evaluator_accepts_is_accepted_and_little_else(oracle: Any, seed: int) -> None:
    groups = oracle.compare(seed)
    sizes = {key: len(pairs) for key, pairs in groups.items()}
    assert sum(sizes.values()) == 1000
    assert [pairs for (_, theirs, ours), pairs in groups.items() if theirs and not ours] == []
    only_ours = [(way, target) for (way, theirs, ours), pairs in groups.items() if ours > theirs for target, _ in pairs]
    for way, target in only_ours:
        # `12x` is 12 with an unknown unit. The evaluator counts "two" and "2" as two values of an answer.
        assert way == "other" or len({item.canon for item in target}) < len(target)
    assert len(only_ours) <= 10
    assert sum(size for (_, theirs, _), size in sizes.items() if theirs) in range(600, 850)


@pytest.mark.parametrize(
    ("raw", "canon", "given", "accepted"),
    [
        ("Québec", "", "quebec", True),
        ("Oslo (Norway) [3]", "", '"Oslo"', True),
        ("1,234 km", "1234.0", "1234.0000001", True),
        ("1,234 km", "1234.0", "1,234", False),
        ("May 5", "xx-05-05", "xxxx-5-5", True),
        ("May 5", "xx-05-05", "1990-05-05", False),
        ("2011", "2011.0", "2011-xx-xx", True),
        ("May 2011", "2011-05-xx", "2011-13-xx", False),
        ("a", "", "xx-xx-xx", False),
        ("a", "", "inf", False),
    ],
)
def test_the_rules_of_the_evaluator_are_those_of_its_documentation(
    oracle: Any, raw: str, canon: str, given: str, *, accepted: bool
) -> None:
    assert oracle.accepts([oracle.Item(raw, canon)], [given]) == accepted
