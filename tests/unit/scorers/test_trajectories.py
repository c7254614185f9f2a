from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.types import Sample, Transcript
from evalsuite.scorers.trajectories import (
    ToolUse,
    any_of,
    are_calls_accepted,
    call,
    expect_state,
    format_difference,
    match_calls,
    read_call,
    tool_calls,
    tool_uses,
)
from evalsuite.tools.execution import convert_to_json

SAMPLE = Sample(id="s", input="q")
A, B, C = (ToolUse(name, {}) for name in "abc")


def transcript(*made: tuple[str, dict[str, Any]], executor: str = "episode") -> Transcript:
    events = ({"kind": "call", "tool": tool, "arguments": given, "executor": executor} for tool, given in made)
    return Transcript("x", events=({"kind": "turn"}, *events))


def scored(order: Any, expected: Any, *made: tuple[str, dict[str, Any]], **more: Any) -> dict[str, float]:
    sample = Sample(id="s", input="q", metadata={"calls": expected})
    scores = tool_calls(order, **more)(sample, transcript(*made))
    return {name: score.value for name, score in scores.items()}


@pytest.mark.parametrize(
    ("made", "orders"),
    [
        ([A, B], {"exact", "in_order", "any_order", "subset", "superset"}),
        ([B, A], {"any_order", "subset", "superset"}),
        ([A, C, B], {"in_order", "superset"}),
        ([B, C, A], {"superset"}),
        ([A], {"subset"}),
        ([A, A, B], {"in_order", "superset"}),
        ([], {"subset"}),
        ([C], set()),
    ],
)
def test_each_order_holds_where_it_should(made: list[ToolUse], orders: set[str]) -> None:
    every: Any = ("exact", "in_order", "any_order", "subset", "superset")
    assert {order for order in every if are_calls_accepted(order, [A, B], made)} == orders


@pytest.mark.parametrize(
    ("wanted", "arguments", "right"),
    [
        (call("f", n=1), {"n": 1.0}, True),
        (call("f", n=1), {"n": True}, False),
        (call("f", n=1), {"n": 1, "m": 2}, False),
        (call("f", n=1), {}, False),
        (call("f", n=(1, 2)), {"n": [1, 2]}, True),
        (call("f", n=any_of(1, 2)), {"n": 2}, True),
        (call("f", n=any_of(1, 2)), {}, False),
        (call("f", n=any_of(1, "")), {}, True),
        (call("f", n=lambda value: value > 3), {"n": 4}, True),
        (call("f", n=lambda value: value > 3), {"n": 2}, False),
        (ToolUse("f", {"n": 1}, partial=True), {"n": 1, "m": 2}, True),
        (ToolUse("f", lambda arguments: len(arguments) == 2), {"n": 1, "m": 2}, True),
        (ToolUse("f"), {"anything": "goes"}, True),
    ],
)
def test_arguments_are_compared_by_value_alternative_and_predicate(
    wanted: ToolUse, arguments: dict[str, Any], *, right: bool
) -> None:
    assert wanted.accepts(ToolUse("f", arguments)) is right
    assert not wanted.accepts(ToolUse("g", arguments))


def test_bfcls_ground_truth_is_read_as_published() -> None:
    wanted = read_call({"area.triangle": {"base": [10], "height": [5], "unit": ["units", ""]}})
    assert wanted.accepts(ToolUse("area.triangle", {"base": 10, "height": 5}))
    assert wanted.accepts(ToolUse("area.triangle", {"base": 10, "height": 5, "unit": "units"}))
    assert not wanted.accepts(ToolUse("area.triangle", {"base": 10, "height": 5, "unit": "feet"}))


def test_precision_and_recall_count_each_call_once() -> None:
    assert scored("any_order", ["a", "b"], ("a", {}), ("a", {}), ("c", {})) == {
        "calls": 0,
        "calls_precision": 1 / 3,
        "calls_recall": 0.5,
    }


def test_repeats_can_be_passed_over() -> None:
    made = ("a", {"n": 1}), ("a", {"n": 1}), ("a", {"n": 2})
    assert scored("exact", [call("a", n=1), call("a", n=2)], *made)["calls"] == 0
    assert scored("exact", [call("a", n=1), call("a", n=2)], *made, repeats=False)["calls"] == 1


def test_no_call_may_be_expected() -> None:
    assert scored("any_order", []) == {"calls": 1, "calls_precision": 1, "calls_recall": 1}
    assert scored("any_order", [], ("a", {})) == {"calls": 0, "calls_precision": 0, "calls_recall": 0}


def test_ending_an_episode_is_no_call_unless_it_is_expected() -> None:
    assert scored("exact", ["a"], ("a", {}), ("finish", {}))["calls"] == 1
    assert scored("exact", ["a", "finish"], ("a", {}), ("finish", {}))["calls"] == 1


@pytest.mark.parametrize("executor", ["application", "python", None])
def test_a_tool_of_the_application_called_finish_is_a_call(executor: str | None) -> None:
    event = {"kind": "call", "tool": "finish", "arguments": {}}
    if executor:
        event["executor"] = executor
    sample = Sample(id="s", input="q", metadata={"calls": []})
    assert tool_calls("exact")(sample, Transcript("x", events=(event,)))["calls"].value == 0
    assert tool_uses(Transcript("x", events=(event,))) == [ToolUse("finish", {})]


@pytest.mark.parametrize("executor", ["episode", "model user", ""])
def test_a_control_of_an_episode_is_not_a_call_even_if_it_is_malformed(executor: str) -> None:
    assert tool_uses(transcript(("ask_to_user", {}), executor=executor)) == []


def test_a_choosy_call_is_not_left_without_because_another_came_first() -> None:
    assert match_calls([ToolUse("f"), call("f", n=1)], [ToolUse("f", {"n": 1}), ToolUse("f", {"n": 2})]) == [1, 0]


def test_a_difference_shows_what_is_missing_and_what_is_too_much() -> None:
    expected = [call("find", city=any_of("Oslo", "OSL")), call("book", seats=2)]
    lines = format_difference(expected, [ToolUse("find", {"city": "OSL"}), ToolUse("book", {"seats": 3})])
    assert lines == ['  find(city="Oslo" | "OSL")', "- book(seats=2)", "+ book(seats=3)"]


def test_what_is_no_expected_call_is_an_error_that_shows_the_forms() -> None:
    with pytest.raises(ScoringError, match=r"write call\('tool'"):
        read_call({"a": 1, "b": 2})
    with pytest.raises(ScoringError, match="nothing says which calls"):
        tool_calls()(Sample(id="s", input="q"), transcript())


@pytest.mark.parametrize(
    ("expected", "final", "score"),
    [
        ({"booked": ("Oslo", "Rome")}, {"booked": ["Oslo", "Rome"], "left": 3}, 1.0),
        ({"seats": {7: dt.date(2026, 5, 1)}}, {"seats": {7: dt.date(2026, 5, 1), 8: None}}, 1.0),
        ({"seen": {"b", "a", "c"}}, {"seen": {"c", "b", "a"}}, 1.0),
        ({"orders": [{"id": 1}, {"id": 2}]}, {"orders": [{"id": 1, "sum": 5}, {"id": 2, "sum": 0}]}, 1.0),
        ({"orders": [{"id": 1}]}, {"orders": [{"id": 1}, {"id": 2}]}, 0.0),
        ({"orders": [{"id": 1}]}, {"orders": [{"id": 2}]}, 0.0),
        ({"paid": 1.0}, {"paid": 1}, 1.0),
        ({"paid": True}, {"paid": 1}, 0.0),
        ({"paid": [0]}, {"paid": [False]}, 0.0),
    ],
)
def test_an_expected_state_is_compared_as_the_json_data_that_the_state_becomes(
    expected: Any, final: Any, score: float
) -> None:
    reached = Transcript("x", facts={"state": convert_to_json(final)})
    assert expect_state(expected)(SAMPLE, reached) == {"state": score}


def test_an_expected_state_that_is_not_plain_data_is_named_as_the_fault() -> None:
    with pytest.raises(SettingsError, match=r"expect_state: the expected state: .* a object is not plain data"):
        expect_state({"a": object()})(SAMPLE, Transcript("x", facts={"state": {}}))


names = st.lists(st.sampled_from("abc").map(ToolUse), max_size=6)


@given(names, names)
def test_orders_imply_each_other(expected: list[ToolUse], made: list[ToolUse]) -> None:
    holds: dict[Any, bool] = {
        order: are_calls_accepted(order, expected, made)
        for order in ("exact", "in_order", "any_order", "subset", "superset")
    }
    assert not holds["exact"] or all(holds.values())
    assert holds["any_order"] == (holds["subset"] and holds["superset"])
    assert not holds["in_order"] or holds["superset"]
