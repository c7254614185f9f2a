"""Anthropic's Messages API of the endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from evalsuite.applications.chat_api import BadRequest
from evalsuite.applications.messages_api import convert_request, make_message_events, make_message_object
from evalsuite.core.types import Completion, Message, ToolCall, Usage

HELLO = [{"role": "user", "content": "Hi"}]
CALL = ToolCall("c1", "weather", '{"city": "Oslo"}')


def test_blocks_become_the_conversation_that_they_tell() -> None:
    items: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "Oslo?", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "sunny"}]},
                {"type": "text", "text": "And now?"},
            ],
        },
    ]
    asked = convert_request({"messages": items, "system": [{"type": "text", "text": "Be brief."}]})
    assert asked.messages == (
        Message("system", "Be brief."),
        Message("user", "Oslo?"),
        Message("assistant", "I look.", (CALL,)),
        Message("tool", "sunny", tool_call_id="c1"),
        Message("user", "And now?"),
    )


def test_pictures_are_sent_on() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]
    (message,) = convert_request({"messages": [{"role": "user", "content": content}]}).messages
    assert message.parts[0] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert message.content == "What is it?"


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "auto", "disable_parallel_tool_use": True}, {"tool_choice": "auto", "parallel_tool_calls": False}),
        ({"type": "tool", "name": "look"}, {"tool_choice": {"type": "function", "function": {"name": "look"}}}),
    ],
)
def test_parameters_and_tools_have_their_names_in_chat_completions(choice: Any, sent: dict[str, Any]) -> None:
    tool = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
    asked = convert_request(
        {"messages": HELLO, "max_tokens": 9, "stop_sequences": ["."], "tools": [tool], "tool_choice": choice}
    )
    function = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    assert asked.tools == ({"type": "function", "function": function},)
    assert asked.params == {"max_tokens": 9, "stop": ["."], **sent}


def test_fields_about_the_servers_own_work_are_left_out_and_named() -> None:
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    form = {"type": "json_schema", "schema": {"type": "object"}}
    config = {"effort": "high", "format": form}
    asked = convert_request(
        {"messages": HELLO, "thinking": {"type": "adaptive"}, "context_management": edits, "output_config": config}
    )
    assert asked.left_out == ("context_management", "thinking", "output_config.effort")
    schema = {"name": "answer", "schema": {"type": "object"}}
    assert asked.params == {"response_format": {"type": "json_schema", "json_schema": schema}}


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"container": "c"}, "^container: 'c' cannot be sent"),
        ({"output_config": {"effort": "high", "task_budget": 9}}, "^output_config: .*task_budget"),
        ({"output_config": {"format": {"type": "grammar", "schema": {}}}}, "^output_config.format: "),
        ({"tools": [{"type": "web_search_20250305", "name": "web"}]}, "^tools: 'web_search_20250305' runs on"),
        ({"tool_choice": {"type": "some"}}, "^tool_choice: "),
        ({"messages": []}, "at least one message"),
        ({"messages": ["Hi"]}, "not in the format of the Messages API"),
        ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "the type 'document' cannot"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "the role 'tool' is unknown"),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "image", "source": {"url": "http://a"}}]}]},
            "text and tool calls alone",
        ),
    ],
)
def test_what_a_chat_model_cannot_be_sent_is_refused_by_name(field: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        convert_request({"messages": HELLO, **field})


def test_an_answer_counts_cached_tokens_apart_and_is_streamed_in_blocks() -> None:
    usage = Usage(prompt_tokens=10, cached_tokens=4, completion_tokens=3)
    message = make_message_object(Completion("Let me look.", tool_calls=(CALL,), usage=usage), "claude", 1)
    assert (message["stop_reason"], message["usage"]["input_tokens"]) == ("tool_use", 6)
    kinds = [event["type"] for event in make_message_events(message)]
    text = ["content_block_start", *["content_block_delta"] * 3, "content_block_stop"]
    call = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert kinds == ["message_start", *text, *call, "message_delta", "message_stop"]


def test_arguments_that_are_not_an_object_are_told() -> None:
    with pytest.raises(BadRequest, match="which is not a JSON object"):
        make_message_object(Completion("", tool_calls=(ToolCall("c1", "look", "[1"),)), "claude", 1)
