"""Each kind of good and bad turn of the text protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.core.errors import SettingsError
from evalsuite.solvers.episode import Call
from evalsuite.solvers.tool_protocols import parse_turn, react, tool_loop

GOOD = 'Thought: I look it up.\nAction: look_up\nAction Input: {"word": "tern"}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n{GOOD}\n\n  ",
        GOOD.replace("\n", " "),
        GOOD.replace('"', "'"),
        f"Well then.\n{GOOD}",
        GOOD.replace(": {", ":\n{\n"),
    ],
)
def test_the_demanded_form_is_read_in_every_way_of_spacing(text: str) -> None:
    turn = parse_turn(text)
    assert (turn.fault, turn.thought) == (None, "I look it up.")
    assert turn.calls == (Call("look_up", {"word": "tern"}),)


def test_a_thought_may_be_empty_and_a_tool_may_take_nothing() -> None:
    turn = parse_turn("Thought:\nAction: today\nAction Input: {}")
    assert (turn.fault, turn.thought, turn.calls) == (None, "", (Call("today", {}),))


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("keywords", ""),
        ("keywords", "The answer is 42."),
        ("keywords", "Thought: x\nAction: look_up"),
        ("keywords", 'Thought: x\nAction Input: {"word": "tern"}'),
        ("keywords", 'Action: look_up\nAction Input: {"word": "tern"}'),
        ("keywords", 'Thought: x\nAction Input: {"word": "tern"}\nAction: look_up'),
        ("keywords", 'Action: look_up\nAction Input: {"word": "tern"}\nThought: x'),
        ("keywords", 'thought: x\naction: look_up\naction input: {"word": "tern"}'),
        ("empty_action", 'Thought: x\nAction:\nAction Input: {"word": "tern"}'),
        ("unparseable", "Thought: x\nAction: look_up\nAction Input:"),
        ("unparseable", "Thought: x\nAction: look_up\nAction Input: tern"),
        ("unparseable", 'Thought: x\nAction: look_up\nAction Input: ["tern"]'),
        ("unparseable", 'Thought: x\nAction: look_up\nAction Input: {"word": "tern"'),
        ("unparseable", 'Thought: x\nAction: look_up\nAction Input: ```json\n{"word": "tern"}\n```'),
        ("unparseable", "Thought: x\nAction: look_up\nAction Input: {'word': open('/etc/passwd').read()}"),
        ("redundant", f"{GOOD}\nObservation: a bird"),
        ("redundant", f"{GOOD}\n\n{GOOD}"),
        ("redundant", f"{GOOD}}}"),
    ],
)
def test_each_fault_of_form_is_told_apart_and_runs_nothing(fault: str, text: str) -> None:
    turn = parse_turn(text)
    assert (turn.fault, tuple(turn.calls)) == (fault, ())
    assert turn.words


def test_the_thought_of_a_malformed_turn_is_kept_where_it_can_be_told() -> None:
    assert parse_turn(f"{GOOD} and more").thought == "I look it up."


@given(st.text(max_size=200))
def test_any_text_is_a_turn(text: str) -> None:
    turn = parse_turn(text)
    assert (turn.fault is None) == bool(turn.calls)


ARGUMENTS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    max_size=4,
)


@given(arguments=ARGUMENTS, convert_to_json=st.booleans())
def test_whatever_arguments_are_written_are_read_again(arguments: dict[str, Any], *, convert_to_json: bool) -> None:
    written = json.dumps(arguments) if convert_to_json else repr(arguments)
    turn = parse_turn(f"Thought: t\nAction: a\nAction Input: {written}")
    assert [dict(call.arguments) for call in turn.calls] == [arguments]


@pytest.mark.parametrize("make", [react, tool_loop])
@pytest.mark.parametrize("tools", ["search", ["search"], [None], [{"name": "search"}], 3, tool_loop, iter([])])
def test_what_is_no_tool_is_refused_where_it_is_written(make: Any, tools: Any) -> None:
    with pytest.raises(SettingsError, match=r"(among|as) its tools; tools are a list of @tool functions"):
        make(tools)
