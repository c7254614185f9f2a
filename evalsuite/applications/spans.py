"""Reads OpenTelemetry spans with attributes of OpenTelemetry's GenAI conventions, OpenInference or LangSmith.

The same code reads recorded traces that are scored later, and spans that an application reports during a run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from evalsuite.applications.call_log import LoggedCall, TraceSpan
from evalsuite.applications.chat_api import BadRequest
from evalsuite.core.types import Completion, Message, ToolCall, Usage

SPAN_ERRORS = (BadRequest, KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)
"""Exceptions that reading a malformed trace may raise."""
KEPT = ("gen_ai.", "llm.", "openinference.", "retrieval.", "langsmith.", "request_data", "response_data", "tool.name")
"""Prefixes of the attributes that are read; other attributes, such as HTTP headers, are dropped."""
OPERATIONS = {"agent": "invoke_agent", "llm": "chat", "tool": "execute_tool", "retriever": "retrieval"}
"""GenAI operations by the kinds of spans of OpenInference and LangSmith."""
NAMES = {"tool": ("gen_ai.tool.name", "tool.name"), "agent": ("gen_ai.agent.name",)}
EXECUTION_VALUES = {"execute_tool": ("input.value", "output.", "tool.parameters"), "invoke_agent": ("output.",)}
"""Attributes that hold arguments and results, by operation; spans of other operations repeat messages in them."""
ROLES = {"tool-call": "assistant", "tool-response": "user"}
"""Roles that smolagents has in its own messages, and the roles that it sends to a model instead."""
LONGEST_NAME = 200  # Maximum characters of a name in a span, such as the name of its operation, tool or agent.
LATEST = 2**64  # Upper bound of times, in nanoseconds since 1970 (OTLP's unit); later times are refused.


def list_spans(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each span of one OTLP export as JSON data, which `read_span` can read."""
    for resource in item["resourceSpans"]:
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                begin, end = int(span.get("startTimeUnixNano", 0)), int(span.get("endTimeUnixNano", 0))
                if not 0 <= begin < LATEST or end >= LATEST:
                    raise ValueError(f"times from {begin:.3g} to {end:.3g}")
                attributes = {
                    str(pair["key"]): _decode_attribute_value(pair.get("value")) for pair in span.get("attributes", ())
                }
                kept = KEPT + EXECUTION_VALUES.get(_find_operation_name(attributes), ())
                yield {
                    "trace": str(span["traceId"]),
                    "id": str(span.get("spanId", "")),
                    "parent": str(span.get("parentSpanId", "")),
                    "name": str(span.get("name", ""))[:LONGEST_NAME],
                    "begin": begin,
                    "seconds": max(0, end - begin) / 1e9,
                    "failed": (span.get("status") or {}).get("code") in {2, "STATUS_CODE_ERROR"},
                    "attributes": {name: value for name, value in attributes.items() if name.startswith(kept)},
                }


def read_span(plain: Mapping[str, Any]) -> TraceSpan:
    """Convert one span from the JSON data that `list_spans` yields."""
    attributes = plain["attributes"]
    operation = _find_operation_name(attributes)
    event = {
        "kind": "span",
        "operation": operation[:LONGEST_NAME],
        **{name: plain[name] for name in ("name", "id", "parent", "seconds", "failed")},
    }
    for field, names in NAMES.items():
        found = [str(attributes[name])[:LONGEST_NAME] for name in names if name in attributes]
        event |= {field: found[0]} if found else {}
    is_text = attributes.get("output.mime_type", "text/plain") == "text/plain"
    if documents := list(_list_documents(attributes)):
        event["documents"] = documents
    return TraceSpan(
        plain["begin"],
        event,
        _convert_model_call(attributes, operation, plain["seconds"]),
        _read_tool_execution(attributes) if operation == "execute_tool" and "tool" in event else None,
        attributes.get("output.value") if operation == "invoke_agent" and is_text else None,
    )


def _find_operation_name(attributes: Mapping[str, Any]) -> str:
    kind = str(attributes.get("openinference.span.kind") or attributes.get("langsmith.span.kind") or "").lower()
    return str(attributes.get("gen_ai.operation.name") or OPERATIONS.get(kind, kind))


def _read_tool_execution(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the arguments and result of a tool's span; the arguments are {} if the span has no JSON object."""
    given = attributes.get("gen_ai.tool.call.arguments", attributes.get("input.value"))
    result = attributes.get("gen_ai.tool.call.result", attributes.get("output.value", ""))
    with suppress(ValueError):
        given = _parse_json_if_text(given)
    if not isinstance(given, dict):
        given = {}
    if {"args", "kwargs"} <= given.keys():
        # Convert `args` and `kwargs`, which the instrumentation of smolagents stores, to named arguments.
        names = _parse_json_if_text(attributes.get("tool.parameters") or "{}")
        given = {**dict(zip(names, given["args"], strict=False)), **given["kwargs"]}
    return given, _encode_json_unless_text(result)


def _list_documents(attributes: Mapping[str, Any]) -> Iterator[str]:
    """List the texts of retrieved documents, or the ids of documents without text."""
    numbered = {
        int(name.split(".")[2]): str(value)
        for name, value in attributes.items()
        if name.startswith("retrieval.documents.") and name.endswith(".document.content")
    }
    yield from (text for _, text in sorted(numbered.items()))
    for document in _parse_json_if_text(attributes.get("gen_ai.retrieval.documents")) or ():
        yield str(document.get("content") or document.get("id") or "")


def _parse_json_if_text(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _decode_attribute_value(value: Any) -> Any:
    """Decode an attribute's value from OTLP's JSON; return None if it has no value."""
    match value:
        case {"intValue": number}:
            return int(number)
        case {"arrayValue": {"values": list(values)}}:
            return [_decode_attribute_value(one) for one in values]
        case {"kvlistValue": {"values": list(pairs)}}:
            return {str(pair["key"]): _decode_attribute_value(pair.get("value")) for pair in pairs}
        case dict() if value:
            return next(iter(value.values()))
    return None


def _convert_model_call(attributes: Mapping[str, Any], operation: str, seconds: float) -> LoggedCall | None:
    """Convert the attributes of a model call's span; return None if the span is not a model call."""
    # Skip agents' spans, because they may repeat the messages of their model calls.
    if operation in {"invoke_agent", "create_agent", "execute_tool"}:
        return None
    if "gen_ai.output.messages" in attributes:
        sent = [
            *_read_genai_messages(attributes, "gen_ai.system_instructions"),
            *_read_genai_messages(attributes, "gen_ai.input.messages"),
        ]
        said = list(_read_genai_messages(attributes, "gen_ai.output.messages"))
    else:
        sent, said = (_read_openinference_messages(attributes, f"llm.{side}_messages.") for side in ("input", "output"))
    if not said:
        return None
    names = (
        ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
        ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
    )
    read, written = (next((int(attributes[name]) for name in pair if name in attributes), 0) for pair in names)
    if min(read, written) < 0:
        raise ValueError(f"{read} and {written} tokens")
    model = str(attributes.get("gen_ai.response.model") or attributes.get("llm.model_name") or "")
    usage = Usage(calls=1, prompt_tokens=read, completion_tokens=written, unpriced=1)
    completion = Completion(said[-1].content, tool_calls=said[-1].tool_calls, usage=usage)
    return LoggedCall(model, tuple(sent), completion, seconds)


def _read_genai_messages(attributes: Mapping[str, Any], name: str) -> Iterator[Message]:
    """Read the messages of one attribute by the GenAI conventions; each message is a list of parts."""
    items = _parse_json_if_text(attributes.get(name) or [])
    if name.endswith("instructions"):
        items = [{"role": "system", "parts": items}] if items else []
    for item in items:
        parts = item["parts"]
        text = "\n".join(str(part["content"]) for part in parts if part.get("type") == "text")
        calls = tuple(
            ToolCall(str(part.get("id") or ""), part["name"], _encode_json_unless_text(part.get("arguments") or {}))
            for part in parts
            if part.get("type") == "tool_call"
        )
        results = [part for part in parts if part.get("type") == "tool_call_response"]
        for part in results:
            result = part.get("response", part.get("result", ""))
            yield Message("tool", _encode_json_unless_text(result), tool_call_id=str(part.get("id") or ""))
        if text or calls or not results:
            yield Message(item["role"], text, calls)


def _encode_json_unless_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_openinference_messages(attributes: Mapping[str, Any], prefix: str) -> list[Message]:
    """Read OpenInference's messages: one attribute per field, with the message's number in its name."""
    messages: dict[int, dict[str, Any]] = {}
    calls: defaultdict[int, defaultdict[int, dict[str, str]]] = defaultdict(partial(defaultdict, dict))
    for name, value in attributes.items():
        if name.startswith(prefix):
            number, _, rest = name.removeprefix(prefix).partition(".message.")
            made, _, field = rest.removeprefix("tool_calls.").partition(".tool_call.")
            messages.setdefault(int(number), {})
            if field:
                calls[int(number)][int(made)][field] = _encode_json_unless_text(value)
            else:
                messages[int(number)][rest] = value
    read: list[Message] = []
    for place, message in sorted(messages.items()):
        role = message.get("role", "user")
        text = str(message.get("content") or "") or _join_message_texts(message)
        requested = tuple(
            ToolCall(call.get("id", ""), call.get("function.name", ""), call.get("function.arguments", "{}"))
            for _, call in sorted(calls[place].items())
        )
        if role == "tool-call" and read and read[-1].role == "assistant":
            # Join a text and its tool calls, because smolagents sends them to the model as one message.
            read[-1] = Message("assistant", f"{read[-1].content}\n{text}".lstrip("\n"))
        else:
            read.append(Message(ROLES.get(role, role), text, requested, message.get("tool_call_id")))
    return read


def _join_message_texts(message: Mapping[str, Any]) -> str:
    """Join the text contents of a message whose contents are numbered attributes."""
    contents = (name.split(".") for name in message if name.endswith(".message_content.text"))
    return "\n".join(str(message[".".join(name)]) for name in sorted(contents, key=lambda name: int(name[1])))
