from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.applications.call_log import CallLog
from evalsuite.applications.case_api import CaseApi
from evalsuite.applications.chat_api import BadRequest
from evalsuite.applications.responses_api import (
    convert_request,
    make_forwarded_request,
    make_response_events,
    make_response_object,
)
from evalsuite.core.types import Completion, Message, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CALL = ToolCall("c1", "weather", '{"city":"Oslo"}')


def test_items_become_the_conversation_that_they_tell() -> None:
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "Oslo?"}]},
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Oslo"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
    ]
    asked = convert_request({"input": items, "instructions": "Be brief."})
    assert asked.messages == (
        Message("system", "Be brief."),
        Message("user", "Oslo?"),
        Message("assistant", "I look.", (CALL,)),
        Message("tool", "sunny", tool_call_id="c1"),
    )


def test_pictures_are_sent_on() -> None:
    part = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    (message,) = convert_request({"input": [{"role": "user", "content": [part]}]}).messages
    url = {"url": "data:image/png;base64,AAAA", "detail": "auto"}
    assert message.parts == ({"type": "image_url", "image_url": url},)


def test_a_list_of_instructions_precedes_the_conversation() -> None:
    items = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hello."}]
    asked = convert_request({"input": "Oslo?", "instructions": items})
    assert asked.messages == (Message("developer", "Be brief."), Message("user", "Hello."), Message("user", "Oslo?"))


def test_the_model_s_own_refusal_stays_in_the_conversation() -> None:
    part = {"type": "refusal", "refusal": "I cannot."}
    (message,) = convert_request({"input": [{"role": "assistant", "content": [part]}]}).messages
    assert message == Message("assistant", "I cannot.")


def test_a_picture_in_a_tools_output_is_sent_on() -> None:
    part = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
    item = {"type": "function_call_output", "call_id": "c1", "output": [part]}
    (message,) = convert_request({"input": [item]}).messages
    url = {"url": "data:image/png;base64,AAAA", "detail": "low"}
    assert message.tool_call_id == "c1"
    assert message.parts == ({"type": "image_url", "image_url": url},)


def test_no_parameter_is_lost() -> None:
    body = {
        "input": "x",
        "text": {"verbosity": "low"},
        "service_tier": "flex",
        "include": ["message.output_text.logprobs"],
        "top_k": 3,
        "truncation": "disabled",
        "background": False,
    }
    expected = {"verbosity": "low", "service_tier": "flex", "logprobs": True, "top_k": 3}
    assert convert_request(body).params == expected


def test_a_choice_of_allowed_tools_keeps_them() -> None:
    tools = [{"type": "function", "name": "weather"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": tools}
    assert convert_request({"input": "x", "tool_choice": choice}).params["tool_choice"] == {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "weather"}}]},
    }


def test_parameters_get_the_names_of_chat_completions() -> None:
    body = {
        "input": "x",
        "temperature": 0,
        "max_output_tokens": 7,
        "reasoning": {"effort": "low"},
        "store": True,
        "text": {"format": {"type": "json_schema", "name": "city", "schema": {}, "strict": True}},
        "tool_choice": {"type": "function", "name": "weather"},
        "tools": [{"type": "function", "name": "weather", "parameters": {}, "strict": None}],
    }
    asked = convert_request(body)
    assert asked.params == {
        "temperature": 0,
        "max_completion_tokens": 7,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": {}, "strict": True}},
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
    }
    assert asked.tools == ({"type": "function", "function": {"name": "weather", "parameters": {}}},)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"input": "x", "tools": [{"type": "web_search"}]}, "web_search: tools that the server runs"),
        ({"input": 7}, "expected text or a list of items"),
        ({"input": "x", "instructions": {"a": 1}}, "instructions: expected text or a list of items"),
        ({"input": "x", "reasoning": -1}, "reasoning: expected an object"),
        ({"input": "x", "instructions": [{"role": "user"}]}, "instructions: .*lacks 'content'"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": {"city": "Oslo"}}]},
            "input: output: expected text or a list of parts, found an object",
        ),
        (
            {"input": [{"role": "user", "content": {"type": "input_text", "text": "x"}}]},
            "input: content: expected text or a list of parts",
        ),
        (
            {"input": [{"role": "assistant", "content": [{"type": "picture"}]}]},
            "input: content: a part of the type 'picture'",
        ),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "'item_reference' cannot be sent"),
        ({"input": [{"role": "user"}]}, "lacks 'content'"),
        ({"input": ["x"]}, "cannot be sent"),
        ({"input": "x", "conversation": "c"}, "conversation: 'c' cannot be sent"),
        ({"input": "x", "prompt": {"id": "p"}}, "prompt: .*cannot be sent"),
        ({"input": "x", "background": True}, "background: 'True' cannot be sent"),
        ({"input": "x", "truncation": "auto"}, "truncation: 'auto' cannot be sent"),
        ({"input": "x", "max_tool_calls": 2}, "max_tool_calls: '2' cannot be sent"),
        ({"input": "x", "include": ["file_search_call.results"]}, "include: .*cannot be sent"),
        ({"input": "x", "reasoning": {"depth": 3}}, "reasoning.depth: '3' cannot be sent"),
        ({"input": "x", "text": {"format": {"type": "grammar"}}}, "text.format: 'grammar' cannot be sent"),
        ({"input": "x", "tool_choice": {"type": "web_search"}}, "tool_choice: .*cannot be sent"),
        ({"input": [{"type": "reasoning", "encrypted_content": "x"}]}, "'reasoning' cannot be sent"),
    ],
)
def test_what_a_chat_model_cannot_be_asked_is_refused(body: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        convert_request(body)


def test_the_openai_package_reads_the_answer_whole_and_streamed() -> None:
    from openai.types.responses import Response

    completion = Completion("sunny", tool_calls=(CALL,), usage=Usage(1, 10, 5))
    plain = make_response_object({"input": "x"}, completion, "m", 1)
    response = Response.model_validate(plain)
    assert (response.output_text, response.output[1].type) == ("sunny", "function_call")
    assert response.usage is not None
    assert response.usage.total_tokens == 15
    kinds = [event["type"].removeprefix("response.") for event in make_response_events(plain)]
    assert kinds[:3] == ["created", "in_progress", "output_item.added"]
    assert kinds[-2:] == ["output_item.done", "completed"]


def test_an_answer_that_was_cut_off_is_incomplete() -> None:
    plain = make_response_object({"input": "x"}, Completion("sun", finish_reason="length"), "m", 1)
    assert (plain["status"], plain["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_a_server_that_has_the_api_gets_the_request_as_it_is() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    body = {
        "model": "gpt",
        "stream": True,
        "temperature": 1,
        "instructions": [{"role": "developer", "content": "Be brief."}],
        "prompt": {"id": "pmpt_1"},
        "input": [{"role": "user", "content": "Hi"}, thought, search, {"type": "item_reference", "id": "m"}, 3],
        "tools": [{"type": "web_search"}],
        "truncation": "auto",
        "conversation": "conv_1",
    }
    asked = make_forwarded_request(body, (Message("user", "Earlier"),), {"api": "responses", "temperature": 0})
    sent = {name: value for name, value in body.items() if name not in {"model", "stream", "temperature"}}
    assert asked.params == {"extra_body": {"store": True, **sent}}
    assert [(message.role, message.content) for message in asked.messages] == [
        ("developer", "Be brief."),
        ("assistant", '{"id":"pmpt_1"}'),
        ("user", "Earlier"),
        ("user", "Hi"),
        ("assistant", '{"id":"ws_1","status":"completed","type":"web_search_call"}'),
        ("assistant", '{"id":"m","type":"item_reference"}'),
        ("user", "3"),
    ]


def test_an_answer_in_the_background_is_refused_everywhere() -> None:
    with pytest.raises(BadRequest, match=r"^background: .True. cannot"):
        make_forwarded_request({"input": "Hi", "background": True}, (), {})


def test_the_server_s_own_items_come_back_whole_and_streamed() -> None:
    parts: list[Any] = [
        {"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in ("One ", "two")
    ]
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": parts},
    ]
    kept = {"id": "resp_server", "status": "completed", "output": items}
    response = make_response_object({}, Completion("One two", response=kept), "gpt", 1)
    assert (response["id"], response["output"]) == ("resp_server", items)
    events = list(make_response_events(response))
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == items
    assert [event["delta"] for event in events if event["type"] == "response.output_text.delta"] == ["One ", "two"]


def test_fields_about_the_servers_own_work_are_left_out_and_named() -> None:
    asked = convert_request(
        {
            "input": "x",
            "reasoning": {"effort": "low", "summary": "auto"},
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "another in each session",
            "client_metadata": {"turn": "1"},
        }
    )
    assert asked.params == {"reasoning_effort": "low"}
    assert asked.left_out == (
        *("client_metadata", "prompt_cache_key", "reasoning.summary"),
        "include: reasoning.encrypted_content",
    )


class Echo:
    """Answers with the number of messages."""

    name = "m"
    overrides: Mapping[str, Any] = {}
    log = CallLog()

    def find_model(self, _: str) -> Echo:
        return self

    async def chat(self, prompt: Sequence[Message], **_: Any) -> Completion:
        return Completion(str(len(prompt)))


@pytest.mark.parametrize(
    ("first", "stores", "status"),
    [({}, True, 200), ({"store": True}, True, 200), ({"store": False}, True, 400), ({}, False, 400)],
)
def test_a_later_request_may_name_a_stored_response(first: dict[str, Any], stores: bool, status: int) -> None:  # noqa: FBT001
    async def main() -> None:
        model: Any = Echo()
        api = CaseApi(model, stores=stores)

        async def respond(**body: Any) -> tuple[int, dict[str, Any]]:
            answer = await api.answer_request("POST", "/responses", json.dumps({"input": "x", **body}).encode())
            return answer.status, json.loads(answer.body)

        first_status, response = await respond(metadata={"run": "1"}, **first)
        assert first_status == 200
        assert (response["metadata"], response["store"]) == ({"run": "1"}, first.get("store", True))
        second_status, second = await respond(previous_response_id=response["id"])
        assert second_status == status
        if status == 200:
            assert second["output"][0]["content"][0]["text"] == "3"
        else:
            assert "previous_response_id" in second["error"]["message"]

    asyncio.run(main())
