"""Data as JSON and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core import json_codec
from evalsuite.core.types import Completion, Message, Record, Request, TokenLogprob, ToolCall, Transcript, Usage

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=15)
number = st.floats(-1e9, 1e9)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | number | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(text, values, max_size=3)
calls = st.builds(ToolCall, text, text, text.filter(bool))
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    text,
    st.lists(calls, max_size=2).map(tuple),
    st.none() | text,
)
usages = st.builds(Usage, *(st.integers(0, 10**12),) * 3, st.floats(0, 1e6))
requests = st.builds(
    Request,
    text,
    st.lists(messages, max_size=3).map(tuple),
    objects,
    st.lists(objects, max_size=2).map(tuple),
    st.none() | text,
    st.integers(1, 9),
)
logprobs = st.builds(TokenLogprob, text, number, st.lists(st.tuples(text, number), max_size=2).map(tuple))
completions = st.builds(
    Completion,
    text,
    text,
    st.lists(calls, max_size=2).map(tuple),
    text,
    usages,
    st.none() | st.lists(logprobs, max_size=2).map(tuple),
    facts=objects,
)
transcripts = st.builds(
    Transcript, text, st.lists(messages, max_size=3).map(tuple), text, st.lists(objects, max_size=2).map(tuple), objects
)
records = st.builds(
    Record,
    case=text,
    benchmark=text,
    sample=text,
    epoch=st.integers(1, 9),
    model=text,
    outcome=st.sampled_from(["passed", "failed", "error", "skipped"]),
    tags=st.dictionaries(text, text, max_size=2),
    source=text,
    scores=st.dictionaries(text, number, max_size=2),
    error=st.none() | text,
    cause=st.none() | text,
    excused=st.none() | st.sampled_from(["gate", "epochs", "xfail"]),
    notes=st.dictionaries(text, text, max_size=2),
    facts=objects,
    usage=usages,
    seconds=st.floats(0, 1e6),
    input=text,
    target=st.none() | text | st.integers() | number | st.lists(text, max_size=2),
    transcript=st.none() | transcripts,
    logs=st.dictionaries(text, st.lists(objects, max_size=2), max_size=2),
)
modest = settings(max_examples=40, deadline=None)


def through(value: Any) -> Any:
    """As another process would read it."""
    return json.loads(json_codec.dumps(value))


@given(requests)
@modest
def test_a_request_comes_back_equal(request: Request) -> None:
    assert json_codec.decode_request(through(json_codec.encode_request(request))) == request


@given(completions)
@modest
def test_a_completion_comes_back_equal(completion: Completion) -> None:
    assert json_codec.decode_completion(through(json_codec.encode_completion(completion))) == completion


@given(transcripts)
@modest
def test_a_transcript_comes_back_equal(transcript: Transcript) -> None:
    written = json_codec.dumps(json_codec.encode_transcript(transcript))
    assert json_codec.parse_json_as(Transcript, written) == transcript


@given(records)
@modest
def test_a_record_comes_back_equal_and_takes_one_line(record: Record) -> None:
    line = json_codec.write_record(record)
    assert "\n" not in line
    assert json_codec.decode_record(line) == record


@given(records)
@modest
def test_fields_of_a_later_version_are_passed_over(record: Record) -> None:
    assert json_codec.decode_record(json_codec.dumps({**json_codec.encode_record(record), "mood": "good"})) == record


@given(objects)
@modest
def test_equal_data_is_equal_text_whatever_the_order(data: dict[str, Any]) -> None:
    assert json_codec.dumps(dict(reversed(data.items()))) == json_codec.dumps(data)


@pytest.mark.parametrize("missing", ["case", "benchmark", "sample", "epoch", "model", "outcome", "usage"])
def test_a_record_without_a_field_that_every_record_has_cannot_be_read(missing: str) -> None:
    given = json_codec.encode_record(Record("c", "b", "s", 1, "m", "passed"))
    del given[missing]
    with pytest.raises(ValueError, match=missing):
        json_codec.decode_record(json_codec.dumps(given))


@pytest.mark.parametrize("empty", [{}, [], "", 0])
def test_a_record_whose_transcript_is_empty_rather_than_null_cannot_be_read(empty: Any) -> None:
    plain = json_codec.encode_record(Record("c", "b", "s", 1, "m", "passed"))
    plain["transcript"] = empty
    with pytest.raises(ValueError, match="transcript"):
        json_codec.decode_record(json_codec.dumps(plain))


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert through({"a\ud800": "\udfffb", "whole": "\U0001f600"}) == {"a?": "?b", "whole": "\U0001f600"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"b", "a"}, ["a", "b"]),
        (("a", 1), ["a", 1]),
        (frozenset([2, 1]), [1, 2]),
        (1 + 2j, "(1+2j)"),
        (b"x", "b'x'"),
        ({1: "one", "1b": "two"}, {"1": "one", "1b": "two"}),
        ({("a", 1): "pair"}, {"('a', 1)": "pair"}),
        ({None: 1, True: 2, 1.5: 3}, {"None": 1, "True": 2, "1.5": 3}),
        ({"deep": [{2: {3: {"x"}}}]}, {"deep": [{"2": {"3": ["x"]}}]}),
    ],
)
def test_what_is_put_into_facts_without_thinking_of_json_is_kept_in_a_form_that_is(given: Any, expected: Any) -> None:
    assert through({"facts": given}) == {"facts": expected}


def test_numbers_and_arrays_of_numpy_are_kept_as_numbers() -> None:
    import numpy as np

    facts = {"share": np.float32(0.5), "count": np.int64(3), "sure": np.bool_(True), "all": np.arange(3)}
    assert through(facts) == {"share": 0.5, "count": 3, "sure": True, "all": [0, 1, 2]}


def test_data_that_contains_itself_is_cut_rather_than_fatal() -> None:
    endless: dict[str, Any] = {"name": "snake"}
    endless["tail"] = endless
    assert through(endless)["name"] == "snake"


@pytest.mark.parametrize("depth", [150, 3_000, 100_000])
def test_facts_that_are_too_deep_to_be_read_again_are_cut(depth: int) -> None:
    deep: Any = "bottom"
    for _ in range(depth):
        deep = [deep]
    record = Record("c", "b", "s", 1, "m", "passed", facts={"deep": deep, "flat": list(range(200))}, usage=Usage())
    read = json_codec.decode_record(json_codec.write_record(record))
    assert read.facts["flat"] == list(range(200))
    assert "..." in json_codec.dumps(read.facts["deep"])


def test_a_user_writes_messages_as_plain_objects() -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": {"x": 1}}}
    message = Message.from_openai({"role": "assistant", "content": None, "tool_calls": [call]})
    assert message == Message("assistant", "", (ToolCall("1", "f", '{"x":1}'),))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"function": {"name": "f"}}, ToolCall("", "f", "{}")),
        ({"id": None, "function": {"name": "f", "arguments": ""}}, ToolCall("", "f", "{}")),
        ({"id": 7, "function": {"name": "f", "arguments": "not json"}}, ToolCall("7", "f", "not json")),
        ({"id": "1", "function": {"name": "f", "arguments": [1]}}, ToolCall("1", "f", "[1]")),
    ],
)
def test_a_tool_call_is_read_as_servers_write_it(call: dict[str, Any], expected: ToolCall) -> None:
    assert ToolCall.from_openai(call) == expected
