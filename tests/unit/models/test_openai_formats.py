"""The OpenAI chat format: bodies of requests, and what answers mean."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.applications.chat_api import format_usage
from evalsuite.core.errors import RequestRefused
from evalsuite.core.json_codec import decode_completion, decode_usage, encode_completion, encode_usage
from evalsuite.core.types import Completion, Message, Request, TokenLogprob, ToolCall, Usage
from evalsuite.models.openai_formats import (
    build_chat_body,
    join_stream,
    parse_chat_answer,
    parse_embeddings,
    read_usage,
    split_reasoning,
)
from evalsuite.models.protocol import LostAnswer, Transient


def answer(message: Any = None, **choice: Any) -> dict[str, Any]:
    given = {"role": "assistant", "content": "hi"} | (message or {})
    return {
        "choices": [{"message": given, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }


def test_a_request_becomes_model_messages_and_parameters() -> None:
    request = Request("m", (Message("system", "s"), Message("user", "u")), {"max_tokens": 5, "stop": ["x"]})
    assert build_chat_body(request, "name") == {
        "model": "name",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
        "max_tokens": 5,
        "stop": ["x"],
    }


def test_a_parameter_that_is_none_is_left_to_the_server() -> None:
    assert "temperature" not in build_chat_body(Request("m", (), {"temperature": None}), "m")


def test_tools_are_wrapped_unless_they_are_already() -> None:
    wrapped = {"type": "function", "function": {"name": "g"}}
    body = build_chat_body(Request("m", (), tools=({"name": "f", "parameters": {}}, wrapped)), "m")
    assert body["tools"] == [{"type": "function", "function": {"name": "f", "parameters": {}}}, wrapped]


def test_calls_of_tools_and_their_answers_are_sent_back_as_they_came() -> None:
    messages = (Message("assistant", "", (ToolCall("c1", "f", '{"x": 1}'),)), Message("tool", "2", tool_call_id="c1"))
    assert build_chat_body(Request("m", messages), "m")["messages"] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}],
        },
        {"role": "tool", "content": "2", "tool_call_id": "c1"},
    ]


def test_an_answer_is_read_with_its_usage() -> None:
    assert parse_chat_answer(answer()) == Completion("hi", usage=Usage(1, 3, 2))


def test_an_answer_without_usage_took_an_unknown_number_of_tokens() -> None:
    assert parse_chat_answer({"choices": [{"message": {"content": "hi"}}]}) == Completion("hi", usage=Usage(1, 0, 0))


@pytest.mark.parametrize("content", [None, "", []])
def test_an_answer_without_words_is_empty(content: Any) -> None:
    assert parse_chat_answer(answer({"content": content})).text == ""


def test_content_in_parts_is_put_together() -> None:
    parts = [{"text": "a"}, {"type": "image"}, {"text": None}, {"type": "text", "text": "b"}]
    assert parse_chat_answer(answer({"content": parts})).text == "ab"


def test_calls_of_tools_are_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    read = parse_chat_answer(answer({"content": None, "tool_calls": [call]}, finish_reason="tool_calls"))
    assert read.tool_calls == (ToolCall("c1", "f", '{"x": 1}'),)
    assert read.finish_reason == "tool_calls"


def test_geminis_signature_of_a_call_is_sent_back_with_the_call() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    signed = {**call, "extra_content": {"google": {"thought_signature": "Ej=="}}}
    parts = [signed, {"function": {"arguments": ""}}]
    for completion in (parse_chat_answer(answer({"tool_calls": [signed]})), stream({"delta": {"tool_calls": parts}})):
        stored = decode_completion(encode_completion(completion))
        message = Message("assistant", tool_calls=stored.tool_calls)
        assert build_chat_body(Request("m", (message,)), "m")["messages"][0]["tool_calls"] == [signed]


def test_logprobs_are_read_with_their_alternatives() -> None:
    top = [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -2}]
    given = {"content": [{**top[0], "top_logprobs": top}, {"token": "!", "logprob": 0}]}
    assert parse_chat_answer(answer(logprobs=given)).logprobs == (
        TokenLogprob("A", -0.1, (("A", -0.1), ("B", -2.0))),
        TokenLogprob("!", 0.0, ()),
    )
    assert parse_chat_answer(answer(logprobs=None)).logprobs is None
    assert parse_chat_answer(answer(logprobs={"content": None})).logprobs is None


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_that_the_server_keeps_apart_stays_apart(field: str) -> None:
    read = parse_chat_answer(answer({field: "let me see", "content": "42"}))
    assert (read.reasoning, read.text) == ("let me see", "42")


def test_reasoning_of_a_strange_kind_does_not_cost_the_answer() -> None:
    assert parse_chat_answer(answer({"reasoning": {"summary": "x"}})) == parse_chat_answer(answer())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("42", ("42", "")),
        ("<think>let me\nsee</think>\n\n42", ("42", "let me\nsee")),
        ("let me see</think>42", ("42", "let me see")),
        ("  <think></think>42", ("42", "")),
        ("<think>cut off", ("", "cut off")),
        ("I write <think> in the middle", ("I write <think> in the middle", "")),
        ("", ("", "")),
    ],
)
def test_reasoning_in_tags_is_taken_out_of_the_answer(text: str, expected: tuple[str, str]) -> None:
    assert split_reasoning(text) == expected


@given(st.text(max_size=40).filter(lambda text: "think>" not in text))
@settings(max_examples=40, deadline=None)
def test_text_without_tags_is_the_answer_and_with_tags_it_is_one_of_both(text: str) -> None:
    assert split_reasoning(text) == (text, "")
    assert split_reasoning(f"<think>{text}</think>\n42") == ("42", text.strip())


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        "text",
        {},
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        {"error": {"message": "overloaded", "code": 503}},
        answer({"content": 5}),
        answer({"content": {"text": "hi"}}),
        answer({"tool_calls": [{"id": "1"}]}),
        answer(logprobs={"content": [{"token": "A"}]}),
        answer(logprobs={"content": [{"token": "A", "logprob": "much"}]}),
    ],
)
def test_what_is_no_chat_completion_may_pass_and_is_shown(given: Any) -> None:
    with pytest.raises(Transient, match="the server's answer is not a chat completion: "):
        parse_chat_answer(given)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {"prompt_tokens": "many", "completion_tokens": 2},
        {"prompt_tokens": math.inf, "completion_tokens": 2},
        {"prompt_tokens": math.nan, "completion_tokens": 2},
        {"prompt_tokens": -5, "completion_tokens": 2},
        {"prompt_tokens": 5, "completion_tokens": -2},
        {"prompt_tokens": 5},
        {"prompt_tokens": True, "completion_tokens": 2},
    ],
)
def test_usage_that_is_missing_or_nonsense_does_not_cost_the_answer_and_counts_as_unknown(usage: Any) -> None:
    assert parse_chat_answer(answer() | {"usage": usage}) == Completion("hi", usage=Usage(1, 0, 0))


@pytest.mark.parametrize(
    "failed",
    [
        answer(finish_reason="error"),
        answer(error={"message": "upstream died", "code": 502}),
        answer({"content": ""}, finish_reason="error"),
    ],
)
def test_a_router_whose_server_died_gave_no_answer_whatever_text_there_is(failed: Any) -> None:
    with pytest.raises(Transient, match="the server failed while it answered"):
        parse_chat_answer(failed)


def test_what_a_filter_withheld_or_the_model_refused_is_no_answer() -> None:
    with pytest.raises(RequestRefused, match="a content filter withheld the whole answer"):
        parse_chat_answer(answer({"content": None}, finish_reason="content_filter"))
    with pytest.raises(RequestRefused, match="the model refused: I cannot help"):
        parse_chat_answer(answer({"content": None, "refusal": "I cannot help"}))


@pytest.mark.parametrize(
    "choice",
    [
        {"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"},
        {"message": None, "finish_reason": "content_filter: OTHER"},
        {"message": {"role": "assistant", "content": ""}, "finish_reason": "SAFETY"},
    ],
)
def test_what_geminis_filters_withheld_is_no_answer(choice: Any) -> None:
    with pytest.raises(RequestRefused, match="a content filter withheld the whole answer"):
        parse_chat_answer({"choices": [choice], "usage": {"prompt_tokens": 10, "total_tokens": 10}})


def test_an_answer_that_a_filter_cut_short_says_so() -> None:
    cut = parse_chat_answer(answer(finish_reason="content_filter"))
    assert (cut.text, cut.finish_reason) == ("hi", "content_filter")


def stream(*choices: dict[str, Any]) -> Completion:
    """Read a stream with one event for each of these choices."""
    events = [json.dumps({"choices": [choice]}) for choice in choices]
    return parse_chat_answer(join_stream("".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()))


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_streamed_calls_that_a_server_does_not_number_are_told_apart_by_their_ids(index: dict[str, int]) -> None:
    parts = [
        {**index, "id": "a", "function": {"name": "find", "arguments": '{"n":'}},
        {**index, "id": "a", "function": {"arguments": "1}"}},
        {**index, "id": "b", "function": {"name": "find", "arguments": '{"n":2}'}},
    ]
    calls = (ToolCall("a", "find", '{"n":1}'), ToolCall("b", "find", '{"n":2}'))
    assert stream(*({"delta": {"tool_calls": [part]}} for part in parts)).tool_calls == calls
    assert stream({"delta": {"tool_calls": parts}}).tool_calls == calls


def test_streamed_calls_that_a_server_numbers_may_be_interleaved() -> None:
    parts = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}},
        {"index": 0, "function": {"arguments": "}"}},
        {"index": 1, "function": {"arguments": "}"}},
    ]
    assert stream({"delta": {"tool_calls": parts}}).tool_calls == (ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}"))


def test_a_stream_that_fails_after_its_first_words_is_a_lost_answer_because_it_may_be_billed() -> None:
    error = {"error": {"message": "overloaded", "code": 529}}
    events = [{"choices": [{"delta": {"role": "assistant", "content": text}}]} for text in ("", "Par")]
    streams = ["".join(f"data: {json.dumps(event)}\n\n" for event in [*events[:n], error]) for n in range(3)]
    assert [join_stream(text.encode()) for text in streams[:2]] == [error, error]
    with pytest.raises(LostAnswer, match=r"the server failed while it answered: .*overloaded"):
        join_stream(streams[2].encode())


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": 429, "message": "slow down"},
        {"type": "error", "error": None, "code": 429},
        {"type": "error", "error": {"type": "overloaded", "code": 429}},
    ],
)
def test_the_code_of_a_streams_error_is_found_in_the_event_or_in_its_error(event: dict[str, Any]) -> None:
    assert join_stream(f"data: {json.dumps(event)}\n\n".encode())["error"]["code"] == 429


def test_a_stream_of_content_in_parts_is_read() -> None:
    assert (
        stream({"delta": {"content": [{"type": "text", "text": "Par"}]}}, {"delta": {"content": "is"}}).text == "Paris"
    )


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    plain
    | st.fixed_dictionaries(
        {
            "choices": st.lists(
                st.fixed_dictionaries({"message": st.fixed_dictionaries({"content": plain})}), max_size=1
            )
        },
        optional={"usage": plain},
    )
)
@settings(max_examples=150, deadline=None)
def test_any_json_is_a_completion_or_may_pass(given: Any) -> None:
    try:
        read = parse_chat_answer(json.loads(json.dumps(given)))
    except (Transient, RequestRefused):
        return
    assert isinstance(read.text, str)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_creation_tokens": 10},
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(1, 100, 50, cached_tokens=60, cache_write_tokens=10, reasoning_tokens=30),
        ),
        (
            {
                "input_tokens": 100,
                "output_tokens": 50,
                "input_tokens_details": {"cached_tokens": 60},
                "output_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(1, 100, 50, cached_tokens=60, reasoning_tokens=30),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}, Usage(1, 9, 1, cached_tokens=4)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 90}, Usage(1, 9, 1, cached_tokens=9)),
        (
            {"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20},
            Usage(1, 129, 1, cached_tokens=100, cache_write_tokens=20),
        ),
        (
            {"prompt_tokens": 129, "completion_tokens": 1, "cache_read_input_tokens": 100},
            Usage(1, 129, 1, cached_tokens=100),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": None}, Usage(1, 9, 1)),
        ({"prompt_tokens": 9}, Usage(1, 0, 0)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 30}, Usage(1, 9, 21, reasoning_tokens=20)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 1,
                "total_tokens": 30,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(1, 9, 21, reasoning_tokens=20),
        ),
    ],
)
def test_cached_and_reasoning_tokens_are_read_from_where_servers_state_them(
    stated: dict[str, Any], expected: Usage
) -> None:
    assert read_usage(stated) == expected
    assert decode_usage(encode_usage(expected)) == expected
    # A client of the endpoint reads the same numbers.
    assert read_usage(format_usage(expected)) == expected


def test_an_answer_without_embeddings_is_lost_because_it_may_be_billed() -> None:
    with pytest.raises(LostAnswer, match="holds no embeddings"):
        parse_embeddings({"data": [{"embedding": "AA=="}]})
