from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from evalsuite.core.errors import escape_for_terminal
from evalsuite.core.json_codec import encode_message
from evalsuite.core.types import Message, Sample, Score, ToolCall, Transcript

if TYPE_CHECKING:
    from collections.abc import Callable

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def test_an_id_may_be_an_integer() -> None:
    assert Sample(id=7, input="x").id == "7"


def test_tags_become_text() -> None:
    assert Sample(id="a", input="x", tags={"grade": 3, "eu": True}).tags == {"grade": "3", "eu": "True"}


def test_messages_of_a_sample_may_be_in_the_openai_format() -> None:
    sample = Sample(id="a", input=[{"role": "system", "content": "Be brief."}, Message("user", "Hello")])
    assert sample.input == (Message("system", "Be brief."), Message("user", "Hello"))


def test_text_parts_and_pictures_are_kept_in_order_and_the_text_is_the_content() -> None:
    message = Message("user", parts=["What is this?", PICTURE, "And this?"])
    assert message.content == "What is this?\nAnd this?"
    assert encode_message(message)["content"] == [
        {"type": "text", "text": "What is this?"},
        PICTURE,
        {"type": "text", "text": "And this?"},
    ]


@pytest.mark.parametrize(
    "plain",
    [
        {"role": "user", "content": "Hello", "name": "ann"},
        {"role": "user", "content": [{"type": "text", "text": "Look"}, PICTURE]},
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
    ],
)
def test_a_message_in_the_openai_format_comes_back_as_it_was(plain: dict[str, Any]) -> None:
    assert encode_message(Message.from_openai(plain)) == plain


def test_arguments_that_came_as_an_object_are_written_as_json() -> None:
    call = ToolCall.from_openai({"id": "1", "function": {"name": "f", "arguments": {"b": 1, "a": "ü"}}})
    assert call.arguments == '{"a":"ü","b":1}'


WRONG: Any = 3


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Transcript(WRONG), "Transcript: answer"),
        (lambda: Transcript("x", messages=({"role": "user"},)), "Transcript: messages"),  # type: ignore[arg-type]
        (lambda: Transcript("x", reasoning=WRONG), "Transcript: reasoning"),
        (lambda: Transcript("x", events=(WRONG,)), "Transcript: events"),
        (lambda: Transcript("x", facts=WRONG), "Transcript: facts"),
        (lambda: Score(1.0, note=WRONG), "Score: note"),
        (lambda: Score(1.0, facts=WRONG), "Score: facts"),
        (lambda: Score(1.0, log="abc"), "Score: log"),  # type: ignore[arg-type]
        (lambda: Score(1.0, signature=WRONG), "Score: signature"),
        (lambda: Message(WRONG), "Message: role"),
        (lambda: Message("user", WRONG), "Message: content"),
        (lambda: Message("user", parts=[WRONG]), "Message: parts"),
        (lambda: Message("assistant", tool_calls=({"id": "1"},)), "Message: tool_calls"),  # type: ignore[arg-type]
        (lambda: Sample(id=1, input=[{"content": "Hello"}]), "not a message in the OpenAI chat format"),
    ],
)
def test_a_value_with_which_no_record_could_be_read_again_is_refused_where_it_is_made(
    make: Callable[[], object], field: str
) -> None:
    with pytest.raises(TypeError, match=field):
        make()


@pytest.mark.parametrize("wrong", [2, None, {"role": "user"}, b"text"])
def test_an_input_that_is_neither_text_nor_messages_is_named(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"input is .*; it must be text or messages"):
        Sample(id=1, input=wrong)


@pytest.mark.parametrize(
    "wrong", [True, float("nan"), float("inf"), {"a": 1}, [["a"]], [True], [float("nan")], b"a", {1, None}]
)
def test_a_target_that_no_record_can_hold_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"sample '7': target is .*; it must be text, a finite number or a list"):
        Sample(id=7, input="a", target=wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        *(pd.NA, pd.NaT, np.datetime64("NaT", "D"), Decimal("nan"), np.float32("nan")),
        *(np.bool_(True), np.array([True]), pd.DataFrame({"a": [1]})),
    ],
)
def test_a_missing_value_or_truth_value_of_a_table_is_not_a_target(wrong: Any) -> None:
    with pytest.raises(TypeError, match="it must be text, a finite number or a list"):
        Sample(id=7, input="a", target=wrong)


@pytest.mark.parametrize("targets", [{"b", "a"}, np.array(["a", "b"]), pd.Series(["a", "b"]), pd.Index(["a", "b"])])
def test_several_targets_may_be_any_collection(targets: Any) -> None:
    assert Sample(id=7, input="a", target=targets).target == ["a", "b"]


@pytest.mark.parametrize("target", [None, "", "a", 3, 0.5, 10**30, [], ["a", "b"], ("a",)])
def test_a_target_is_kept(target: Any) -> None:
    assert Sample(id=7, input="a", target=target).target == target


def test_numbers_among_several_targets_become_text() -> None:
    assert Sample(id=7, input="a", target=["1", 42, 0.5]).target == ["1", "42", "0.5"]  # type: ignore[list-item] # from a file


def test_half_of_a_surrogate_pair_in_an_id_becomes_a_question_mark() -> None:
    assert Sample(id="a\ud800ü", input="a").id == "a?ü"


@pytest.mark.parametrize("mark", "\u202a\u202e\u2066\u2069\x1b\x07")
def test_words_for_a_terminal_neither_steer_it_nor_turn_the_order_of_others(mark: str) -> None:
    assert escape_for_terminal(f"a{mark}b") == "ab"
