"""Reports that travel from workers as one text come back as they were."""

from __future__ import annotations

from typing import Any

import pytest
from execnet.gateway_base import dumps_internal, loads_internal
from hypothesis import given
from hypothesis import strategies as some

from evalsuite.plugin.marks import RECORD
from evalsuite.plugin.session.packed_reports import PACKED, pack, unpack

INTEGERS = some.integers(min_value=-(2**31))
"""Those that execnet can write."""
SCALARS = some.none() | some.booleans() | INTEGERS | some.floats(allow_nan=False) | some.text()
PAIRS = some.lists(some.tuples(some.text(), SCALARS), max_size=3)
ODD = some.tuples(SCALARS) | some.binary() | some.lists(SCALARS) | some.dictionaries(some.text(), SCALARS)
"""What JSON gives back as something else, or what pytest itself never puts there."""


ORDINARY: dict[str, Any] = {
    "$report_type": "TestReport",
    "nodeid": "test_a.py::test_a",
    "location": ("test_a.py", 3, "test_a"),
    "keywords": {"test_a": 1, "test_a.py": 1},
    "outcome": "passed",
    "longrepr": None,
    "when": "call",
    "user_properties": [("exact_match", 1.0)],
    "sections": [("Captured stdout call", "hello")],
    "duration": 0.25,
    "start": 1795358282.4745507,
    "stop": 1795358282.7245507,
}


@some.composite
def reports(draw: some.DrawFn) -> dict[str, Any]:
    """As `pytest_report_to_serializable` makes them of a test that has nothing to explain."""
    return ORDINARY | {
        "nodeid": draw(some.text()),
        "location": (draw(some.text()), draw(some.none() | INTEGERS), draw(some.text())),
        "keywords": draw(some.dictionaries(some.text(), some.just(1), max_size=4)),
        "user_properties": draw(PAIRS),
        "sections": draw(PAIRS),
        "duration": draw(some.floats(allow_nan=False)),
    }


def sent(data: dict[str, Any]) -> dict[str, Any]:
    """As it arrives: packed, with what xdist adds, written and read by execnet, unpacked."""
    arrived: dict[str, Any] = loads_internal(dumps_internal({**pack(data), "item_index": 3}))
    unpack(arrived)
    assert arrived.pop("item_index") == 3
    return arrived


def same(one: Any, other: Any) -> bool:
    """Equal, and of equal types all the way down: 1 is neither True nor 1.0 here, and a tuple is no list."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(reports())
def test_an_ordinary_report_is_packed_and_comes_back_the_same(report: dict[str, Any]) -> None:
    assert pack(report).keys() == {PACKED}
    assert same(sent(report), report)


@given(reports(), some.sampled_from(["user_properties", "sections", "keywords", "location", "longrepr"]), ODD)
def test_whatever_another_plugin_puts_in_comes_back_the_same(
    report: dict[str, Any], key: str, value: Any
) -> None:
    report[key] = [("name", value)] if key in {"user_properties", "sections"} else value
    assert same(sent(report), report)


def test_what_others_add_travels_beside_the_text() -> None:
    report = ORDINARY | {"rerun": 2, "their": {"own": (1, b"2")}}
    assert pack(report).keys() == {PACKED, "rerun", "their"}
    assert same(sent(report), report)


def test_a_cases_record_is_part_of_the_text() -> None:
    record = ('{"case":"a[1]"}', "facts", 0, "", {"exact": {"range": [0.0, 1.0]}}, "72a3")
    report = ORDINARY | {RECORD: record}
    assert pack(report).keys() == {PACKED}
    assert same(sent(report), report)


@pytest.mark.parametrize("change", [{"longrepr": "text"}, {"$report_type": "CollectReport"}])
def test_reports_of_failures_and_of_collection_travel_as_they_are(change: dict[str, Any]) -> None:
    report = ORDINARY | change
    assert pack(report) is report
