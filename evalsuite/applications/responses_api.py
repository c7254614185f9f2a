"""The Responses API of a case's endpoint; if the model's server lacks this API, requests become chat completions.

Source: the OpenAI API reference, "Create a model response" and "Streaming events" of the Responses API.
"""

import dataclasses
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evalsuite.applications.chat_api import (
    BadRequest,
    ChatRequest,
    encode_logprobs,
    make_field_error,
    refuse_malformed_request,
    split_into_words,
)
from evalsuite.core.json_codec import dumps
from evalsuite.core.types import Completion, Message, Role, ToolCall
from evalsuite.models.openai_formats import rename_params

READ_ELSEWHERE = frozenset(
    {
        *("input", "instructions", "model", "previous_response_id", "tools", "stream", "stream_options"),
        *("max_output_tokens", "reasoning", "text", "tool_choice", "include"),
        # `CaseApi` handles these fields: it stores responses itself, and copies metadata into the answer.
        *("store", "metadata"),
    }
)
"""Fields that are renamed or interpreted; every other field is sent under its own name."""
DEFAULTS: Mapping[str, Any] = {"background": False, "truncation": "disabled"}
"""Values that equal the behaviour of chat completions; other values of these fields are refused."""
LEFT_OUT = frozenset({"client_metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"})
ENCRYPTED = "reasoning.encrypted_content"
NOT_IN_CHAT = frozenset({"background", "context_management", "conversation", "max_tool_calls", "prompt", "truncation"})
LOGPROBS = "message.output_text.logprobs"


@refuse_malformed_request("the Responses API")
def convert_request(body: Mapping[str, Any], earlier_messages: Sequence[Message] = ()) -> ChatRequest:
    """Convert a request of the Responses API into a request of the chat completions API."""
    instructions = _convert_messages(body.get("instructions") or [], "instructions")
    messages = (*instructions, *earlier_messages, *_convert_messages(body.get("input"), "input"))
    left_out = sorted(name for name in LEFT_OUT if body.get(name) is not None)
    reasoning = body.get("reasoning") or {}
    if not isinstance(reasoning, Mapping):
        raise BadRequest("reasoning: expected an object")
    left_out += ["reasoning.summary"] if reasoning.get("summary") else []
    left_out += [f"include: {ENCRYPTED}"] if ENCRYPTED in (body.get("include") or ()) else []
    return ChatRequest(messages, _convert_to_openai_tools(body), _convert_params(body), tuple(left_out))


@refuse_malformed_request("the Responses API")
def make_forwarded_request(
    body: Mapping[str, Any], earlier_messages: Sequence[Message], overrides: Mapping[str, Any]
) -> ChatRequest:
    """Make a request that forwards the body to a Responses API server; its `messages` only serve the transcript.

    `earlier_messages` are the conversation up to the response `previous_response_id`. The run's parameters,
    `overrides`, replace the request's own. Raise BadRequest if the request asks for an answer in the background.
    """
    if body.get("background"):
        raise make_field_error("background", body["background"])
    dropped = {"model", "stream", "stream_options", *rename_params(overrides)}
    kept = {name: value for name, value in body.items() if name not in dropped}
    spoken = []
    for name in ("instructions", "prompt", "input"):
        given = kept.get(name) or []
        if not isinstance(given, str):
            given = [*filter(None, map(_replace_unknown_item, given if isinstance(given, list) else [given]))]
        spoken += [*(earlier_messages if name == "input" else ()), *_convert_messages(given, name)]
    return ChatRequest(tuple(spoken), (), {"extra_body": {"store": True, **kept}})


def _replace_unknown_item(item: Any) -> Any:
    """Replace an item that messages cannot hold: reasoning by None, other types by a message with the item's JSON."""
    if isinstance(item, Mapping) and item.get("type") == "reasoning":
        return None
    try:
        tuple(_convert_messages([item], "input"))
    except BadRequest:
        role = item.get("role", "assistant") if isinstance(item, Mapping) else "user"
        return {"role": "user" if role != "assistant" else role, "content": dumps(item)}
    return item


def _convert_messages(items: Any, field: str) -> Iterator[Message]:
    """Convert text or items into messages; adjacent tool calls form one assistant message, as in the model's answer."""
    calls: list[ToolCall] = []
    text = ""
    for item in _list_items(items, field):
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        try:
            if kind == "function_call":
                calls.append(ToolCall(str(item["call_id"]), item["name"], item["arguments"]))
                continue
            if calls or text:
                yield Message("assistant", text, tuple(calls))
                calls, text = [], ""
            if kind == "function_call_output":
                output = _make_message_from_content("tool", item["output"], f"{field}: output")
                yield dataclasses.replace(output, tool_call_id=str(item["call_id"]))
            elif kind == "message" and item["role"] == "assistant":
                text = _join_assistant_text(item["content"], f"{field}: content")
            elif kind == "message":
                yield _make_message_from_content(item["role"], item["content"], f"{field}: content")
            elif kind != "reasoning" or item.get("summary") or item.get("encrypted_content") or item.get("content"):
                raise BadRequest(f"{field}: an item of the type {kind!r} cannot be sent to a chat model")
        except (KeyError, TypeError) as error:
            raise BadRequest(f"{field}: {str(item)[:200]} lacks {error}") from error
    if calls or text:
        yield Message("assistant", text, tuple(calls))


def _list_items(given: Any, field: str) -> list[Any]:
    if isinstance(given, str):
        return [{"role": "system" if field == "instructions" else "user", "content": given}]
    if not isinstance(given, list):
        raise BadRequest(f"{field}: expected text or a list of items")
    return given


def _make_message_from_content(role: Role, content: Any, field: str) -> Message:
    parts = _convert_to_chat_parts(content, field)
    if len(parts) == 1 and isinstance(parts[0], str):
        return Message(role, parts[0])
    return Message(role, parts=parts)


def _convert_to_chat_parts(content: Any, field: str) -> list[str | Mapping[str, Any]]:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        found = "an object" if isinstance(content, Mapping) else repr(content)[:200]
        raise BadRequest(f"{field}: expected text or a list of parts, found {found}; write other values as JSON text")
    return [_convert_to_chat_part(part, field) for part in content]


def _convert_to_chat_part(part: Any, field: str) -> str | Mapping[str, Any]:
    if isinstance(part, str):
        return part
    kind = part["type"]
    if kind in {"input_text", "output_text", "text", "refusal"}:
        return str(part["refusal" if kind == "refusal" else "text"])
    if kind == "input_image" and part.get("image_url"):
        return {"type": "image_url", "image_url": {"url": part["image_url"], "detail": part.get("detail") or "auto"}}
    if kind == "input_file" and part.get("file_data"):
        return {"type": "file", "file": {"filename": part.get("filename") or "file", "file_data": part["file_data"]}}
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    raise BadRequest(f"{field}: a part of the type {kind!r} cannot be sent to a chat model as it is")


def _join_assistant_text(content: Any, field: str) -> str:
    """Join the texts of an assistant's content; raise BadRequest with the field's name if a part is not text."""
    parts = _convert_to_chat_parts(content, field)
    for part in parts:
        if not isinstance(part, str):
            raise BadRequest(f"{field}: an assistant's message has text alone, found {part['type']!r}")
    return "".join(map(str, parts))


def _convert_to_openai_tools(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    tools = body.get("tools") or ()
    hosted = sorted({str(tool.get("type")) for tool in tools} - {"function"})
    if hosted:
        raise BadRequest(
            f"tools: {', '.join(hosted)}: tools that the server runs are not at hand here; offer functions"
        )
    functions = [
        {name: value for name, value in tool.items() if name != "type" and value is not None} for tool in tools
    ]
    return tuple({"type": "function", "function": function} for function in functions)


def _convert_params(body: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the generation parameters; raise `BadRequest` for a field that cannot be passed to the model."""
    given = {name: value for name, value in body.items() if value is not None}
    for name in sorted(NOT_IN_CHAT & given.keys()):
        if name not in DEFAULTS or given[name] != DEFAULTS[name]:
            raise make_field_error(name, given[name])
    params = {name: value for name, value in given.items() if name not in READ_ELSEWHERE | NOT_IN_CHAT | LEFT_OUT}
    if given.get("max_output_tokens"):
        params["max_completion_tokens"] = given["max_output_tokens"]
    reasoning = {name: value for name, value in (given.get("reasoning") or {}).items() if name != "summary"}
    params |= _rename_fields("reasoning", reasoning, {"effort": "reasoning_effort"})
    text = dict(given.get("text") or {})
    params |= _make_response_format_params(text.pop("format", None) or {})
    params |= _rename_fields("text", text, {"verbosity": "verbosity"})
    for wanted in given.get("include") or ():
        if wanted not in {LOGPROBS, ENCRYPTED}:
            raise make_field_error("include", wanted)
        if wanted == LOGPROBS:
            params["logprobs"] = True
    if given.get("top_logprobs"):
        params["logprobs"] = True
    if "tool_choice" in given:
        params["tool_choice"] = _convert_to_chat_tool_choice(given["tool_choice"])
    return params


def _rename_fields(parent_name: str, fields: Mapping[str, Any], new_names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that are not None under their new names; raise BadRequest for a field without a new name."""
    given = {field: value for field, value in fields.items() if value is not None}
    unknown = next((field for field in given if field not in new_names), None)
    if unknown is not None:
        raise make_field_error(f"{parent_name}.{unknown}", given[unknown])
    return {new_names[field]: value for field, value in given.items()}


def _make_response_format_params(text_format: Mapping[str, Any]) -> dict[str, Any]:
    match text_format.get("type", "text"):
        case "text":
            return {}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case "json_schema":
            schema = {name: value for name, value in text_format.items() if name != "type"}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        case other:
            raise make_field_error("text.format", other)


def _convert_to_chat_tool_choice(choice: Any) -> Any:
    match choice:
        case str():
            return choice
        case {"type": "function", "name": str(name)}:
            return {"type": "function", "function": {"name": name}}
        case {"type": "allowed_tools", "tools": list(tools)}:
            allowed = [_convert_to_chat_tool_choice(tool) for tool in tools]
            return {"type": "allowed_tools", "allowed_tools": {"mode": choice.get("mode", "auto"), "tools": allowed}}
        case _:
            raise make_field_error("tool_choice", choice)


def make_response_object(body: Mapping[str, Any], completion: Completion, model: str, number: int) -> dict[str, Any]:
    """Make the whole answer of the Responses API; its id contains `number`, which counts the answers of the case."""
    cut = completion.finish_reason == "length"
    usage = completion.usage
    response = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "model": model,
        "output": list(_list_output_items(completion, number)),
        "parallel_tool_calls": bool(body.get("parallel_tool_calls", True)),
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        **{name: body.get(name) for name in ("instructions", "previous_response_id", "temperature", "top_p")},
        "text": body.get("text") or {"format": {"type": "text"}},
        "metadata": body.get("metadata") or {},
        "store": body.get("store") is not False,
        "usage": {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {
                "cached_tokens": usage.cached_tokens,
                "cache_write_tokens": usage.cache_write_tokens,
            },
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        },
    }
    return response | dict(completion.response)


def _list_output_items(completion: Completion, number: int) -> Iterator[dict[str, Any]]:
    if completion.text or not completion.tool_calls:
        logprobs = (encode_logprobs(completion) or {}).get("content", [])
        part = {"type": "output_text", "text": completion.text, "annotations": [], "logprobs": logprobs}
        yield {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    for index, call in enumerate(completion.tool_calls):
        yield {
            "id": f"fc_{number}_{index}",
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }


def make_response_events(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Make the events of a streamed answer from the whole answer, as made by `make_response_object`."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        place = {"item_id": item.get("id"), "output_index": index}
        # Items of other types are sent whole, without events of their contents.
        empty: dict[str, Any] = {}
        events: Iterable[dict[str, Any]] = ()
        if item["type"] == "message":
            empty, events = {"status": "in_progress", "content": []}, _list_text_events(item["content"], place)
        elif item["type"] == "function_call":
            empty = {"status": "in_progress", "arguments": ""}
            call = {"name": item["name"], "arguments": item["arguments"]}
            events = [
                {"type": "response.function_call_arguments.delta", **place, "delta": call["arguments"]},
                {"type": "response.function_call_arguments.done", **place, **call},
            ]
        yield {"type": "response.output_item.added", "output_index": index, "item": item | empty}
        yield from events
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _list_text_events(parts: Sequence[Mapping[str, Any]], item_fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events that stream a message's texts; each event contains `item_fields`, which name the message."""
    for index, part in enumerate(parts):
        content_place = {**item_fields, "content_index": index}
        yield {"type": "response.content_part.added", **content_place, "part": {**part, "text": ""}}
        for piece in split_into_words(part["text"]):
            yield {"type": "response.output_text.delta", **content_place, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **content_place, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **content_place, "part": part}
