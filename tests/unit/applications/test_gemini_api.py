"""Gemini's generateContent API of the endpoint."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.applications.call_log import CallLog
from evalsuite.applications.case_api import CaseApi
from evalsuite.applications.chat_api import BadRequest
from evalsuite.applications.gemini_api import convert_request, make_content_chunks, make_content_response
from evalsuite.core.types import Completion, Message, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

HELLO = [{"role": "user", "parts": [{"text": "Hi"}]}]
TEXT = {"name": "answer", "schema": {"type": "string"}}
CALL = ToolCall("c1", "weather", '{"city":"Oslo"}')


def test_contents_become_the_conversation_that_they_tell() -> None:
    call = {"name": "weather", "args": {"city": "Oslo"}}
    contents: list[Any] = [
        {"parts": [{"text": "Oslo?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"text": "I look."},
                {"functionCall": {"id": "c1", **call}, "thoughtSignature": "x"},
                {"function_call": call},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "weather", "response": {"result": "sunny"}}},
                {"functionResponse": {"name": "weather", "response": {"output": 3}}},
                {"functionResponse": {"name": "other", "response": {"error": "gone"}}},
                {"text": "And now?"},
            ],
        },
    ]
    asked = convert_request({"contents": contents, "system_instruction": {"parts": [{"text": "Be brief."}]}})
    assert asked.messages == (
        Message("system", "Be brief."),
        Message("user", "Oslo?"),
        Message("assistant", "I look.", (CALL, ToolCall("call_1_1", "weather", CALL.arguments))),
        Message("tool", "sunny", tool_call_id="c1"),
        Message("tool", "3", tool_call_id="call_1_1"),
        Message("tool", '{"error":"gone"}', tool_call_id="other"),
        Message("user", "And now?"),
    )


@pytest.mark.parametrize(
    ("part", "url"),
    [
        ({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, "data:image/png;base64,AAAA"),
        ({"file_data": {"mime_type": "image/png", "file_uri": "https://a.example/b"}}, "https://a.example/b"),
    ],
)
def test_pictures_are_sent_on(part: dict[str, Any], url: str) -> None:
    (message,) = convert_request({"contents": [{"parts": [{"text": "What?"}, part]}]}).messages
    assert message.parts[1] == {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        ({"maxOutputTokens": 9, "stopSequences": ["."], "candidateCount": 1}, {"max_tokens": 9, "stop": ["."]}),
        ({"responseMimeType": "application/json"}, {"response_format": {"type": "json_object"}}),
        (
            {"response_mime_type": "application/json", "response_schema": {"type": "STRING"}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": {"type": "string"}},
                }
            },
        ),
        (
            {"responseJsonSchema": {"type": "string"}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": {"type": "string"}},
                }
            },
        ),
        ({"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": -1}}, {"reasoning_effort": "low"}),
    ],
)
def test_parameters_have_their_names_in_chat_completions(config: dict[str, Any], sent: dict[str, Any]) -> None:
    assert convert_request({"contents": HELLO, "generationConfig": config}).params == sent


def test_declarations_of_functions_have_a_plain_json_schema() -> None:
    field = {"anyOf": [{"type": "STRING"}, {"type": "ARRAY", "items": {"type": "INTEGER"}}]}
    declared = [
        {"name": "look", "parameters": {"type": "OBJECT", "properties": {"type": field}, "required": ["type"]}},
        {"name": "wait", "description": "Waits.", "parametersJsonSchema": {"type": "object"}},
    ]
    choice = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}}
    asked = convert_request(
        {"contents": HELLO, "tools": [{"functionDeclarations": declared}], "toolConfig": choice, "safetySettings": []}
    )
    plain = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}
    schema = {"type": "object", "properties": {"type": plain}, "required": ["type"]}
    assert [tool["function"]["parameters"] for tool in asked.tools] == [schema, {"type": "object"}]
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "look"}}]}
    assert asked.params == {"tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}}
    none = convert_request({"contents": HELLO, "toolConfig": {"functionCallingConfig": {"mode": "NONE"}}})
    assert none.params == {"tool_choice": "none"}


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"cachedContent": "c"}, "^cachedContent: 'c' cannot be sent"),
        ({"generationConfig": {"candidateCount": 2}}, "^candidateCount: "),
        ({"generationConfig": {"responseModalities": ["AUDIO"]}}, "^responseModalities: "),
        ({"generationConfig": {"responseMimeType": "text/x.enum"}}, "^responseMimeType: "),
        ({"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}}, "^functionCallingConfig.mode: "),
        ({"tools": [{"googleSearch": {}}]}, "^tools: googleSearch runs on"),
        ({"contents": []}, "at least one content"),
        ({"contents": ["Hi"]}, "not in the format of Gemini's API"),
        ({"contents": [{"role": "tool", "parts": []}]}, "the role 'tool' is unknown"),
        ({"contents": [{"parts": [{"inlineData": {"mimeType": "audio/wav", "data": ""}}]}]}, "inlineData .audio/wav."),
        (
            {"contents": [{"role": "model", "parts": [{"fileData": {"mimeType": "image/png", "fileUri": "a"}}]}]},
            "text and function calls alone",
        ),
    ],
)
def test_what_a_chat_model_cannot_be_sent_is_refused_by_name(field: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        convert_request({"contents": HELLO, **field})


def test_a_streamed_answer_ends_with_reason_and_usage() -> None:
    usage = Usage(prompt_tokens=10, cached_tokens=4, completion_tokens=3, reasoning_tokens=1)
    whole = make_content_response(Completion("Let me", tool_calls=(CALL,), usage=usage), "gemini", 1)
    assert whole["usageMetadata"] == {
        "promptTokenCount": 10,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 1,
        "totalTokenCount": 13,
    }
    chunks = list(make_content_chunks(whole))
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert parts[:2] == [{"text": "Let "}, {"text": "me"}]
    assert parts[2] == {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}}
    assert [chunk["candidates"][0].get("finishReason") for chunk in chunks] == [None, None, "STOP"]


class Echo:
    """Answers with an empty text."""

    log = CallLog()

    def find_model(self, _: str) -> Echo:
        return self

    async def chat(self, prompt: Sequence[Message], **_: Any) -> Completion:
        return Completion("")


@pytest.mark.parametrize(
    ("query", "begins"), [("", b'[{"candidates"'), ("?alt=sse", b'data: {"candidates"'), ("?alt=json", b"[")]
)
def test_a_stream_without_events_is_one_list(query: str, begins: bytes) -> None:
    body = json.dumps({"contents": HELLO}).encode()
    model: Any = Echo()
    answer = asyncio.run(CaseApi(model).answer_request("POST", f"/models/gemini:streamGenerateContent{query}", body))
    assert answer.body.startswith(begins)


def test_a_budget_for_thoughts_is_left_out_and_named() -> None:
    asked = convert_request({"contents": HELLO, "generationConfig": {"thinkingConfig": {"thinkingBudget": 99}}})
    assert asked.left_out == ("thinkingConfig.thinkingBudget",)
    assert asked.params == {}
