"""Anthropic's Messages API at a case's endpoint; requests are converted to chat completion requests.

Source: the Anthropic API reference, "Messages" and "Streaming Messages".
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from evalsuite.applications import chat_api
from evalsuite.core.types import Completion, Message, ToolCall

SENT = {"stop_sequences": "stop", **{name: name for name in ("max_tokens", "temperature", "top_k", "top_p")}}
"""Generation parameters, and their names in chat completions."""
# Accept `metadata` and `service_tier`, but ignore their values, because these concern only Anthropic's servers.
READ_ELSEWHERE = frozenset(
    {"messages", "metadata", "model", "output_config", "service_tier", "stream", "system", "tool_choice", "tools"}
)
LEFT_OUT = frozenset({"context_management", "thinking"})
TOOL_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
STOP_REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


@chat_api.refuse_malformed_request("the Messages API")
def convert_request(body: Mapping[str, Any]) -> chat_api.ChatRequest:
    """Convert a request of the Messages API; raise BadRequest if a field is malformed or not supported."""
    given = {name: value for name, value in body.items() if value is not None}
    for name in sorted(given.keys() - SENT.keys() - READ_ELSEWHERE - LEFT_OUT):
        raise chat_api.make_field_error(name, given[name])
    items = body.get("messages")
    if not isinstance(items, list) or not items:
        raise chat_api.BadRequest("messages: expected a list of at least one message")
    system = _convert_to_chat_parts(given.get("system", ""), "system")
    messages = [Message("system", **chat_api.make_content_argument(system))] if system else []
    for item in items:
        messages += _convert_message(item["role"], item["content"])
    tools = tuple(map(_convert_to_openai_tool, given.get("tools", ())))
    params = {SENT[name]: value for name, value in given.items() if name in SENT}
    params |= _make_tool_choice_params(given.get("tool_choice"))
    output = dict(given.get("output_config", {}))
    left_out = [*sorted(given.keys() & LEFT_OUT), *(["output_config.effort"] if output.pop("effort", None) else [])]
    form = output.pop("format", None)
    if form:
        if form["type"] != "json_schema":
            raise chat_api.make_field_error("output_config.format", form)
        schema = {"name": "answer", "schema": form["schema"]}
        params["response_format"] = {"type": "json_schema", "json_schema": schema}
    if output:
        raise chat_api.make_field_error("output_config", output)
    return chat_api.ChatRequest(tuple(messages), tools, params, tuple(left_out))


def _convert_message(role: str, content: Any) -> Iterator[Message]:
    """Convert one message; each tool result becomes a separate message before the message with the text."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if role == "assistant":
        made = [block for block in blocks if block["type"] == "tool_use"]
        calls = tuple(ToolCall(block["id"], block["name"], json.dumps(block["input"])) for block in made)
        others = [block for block in blocks if block["type"] != "tool_use"]
        text = _convert_to_chat_parts(others, "an assistant's message")
        if not all(isinstance(part, str) for part in text):
            raise chat_api.BadRequest("messages: an assistant's message has text and tool calls alone")
        yield Message("assistant", "".join(map(str, text)), calls)
        return
    if role not in {"user", "system"}:
        raise chat_api.BadRequest(f"messages: the role {role!r:.80} is unknown; write user or assistant")
    for block in blocks:
        if block["type"] == "tool_result":
            result = _convert_to_chat_parts(block.get("content") or "", "a tool's result")
            yield Message("tool", tool_call_id=str(block["tool_use_id"]), **chat_api.make_content_argument(result))
    rest = _convert_to_chat_parts([block for block in blocks if block["type"] != "tool_result"], "a message")
    if rest:
        yield Message("system" if role == "system" else "user", **chat_api.make_content_argument(rest))


def _convert_to_chat_parts(content: Any, label: str) -> list[str | Mapping[str, Any]]:
    if isinstance(content, str):
        return [content] if content else []
    parts: list[str | Mapping[str, Any]] = []
    for block in content:
        kind = block["type"]
        if kind == "text":
            parts.append(str(block["text"]))
        elif kind == "image":
            source = block["source"]
            url = source.get("url") or f"data:{source['media_type']};base64,{source['data']}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        # Skip thoughts, because chat models do not accept thoughts as messages.
        elif kind not in {"thinking", "redacted_thinking"}:
            raise chat_api.BadRequest(f"{label}: a block of the type {kind!r:.80} cannot be sent to a chat model")
    return parts


def _convert_to_openai_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    if tool.get("type", "custom") != "custom":
        raise chat_api.BadRequest(
            f"tools: {tool['type']!r:.80} runs on Anthropic's servers, which are not asked; offer functions"
        )
    function = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["input_schema"]}
    return {"type": "function", "function": function}


def _make_tool_choice_params(tool_choice: Mapping[str, Any] | None) -> dict[str, Any]:
    if tool_choice is None:
        return {}
    if tool_choice["type"] == "tool":
        chosen: Any = {"type": "function", "function": {"name": tool_choice["name"]}}
    elif tool_choice["type"] in TOOL_CHOICES:
        chosen = TOOL_CHOICES[tool_choice["type"]]
    else:
        raise chat_api.make_field_error("tool_choice", tool_choice)
    parallel = {"parallel_tool_calls": False} if tool_choice.get("disable_parallel_tool_use") else {}
    return {"tool_choice": chosen, **parallel}


def make_message_object(completion: Completion, model: str, number: int) -> dict[str, Any]:
    """Make the whole answer of the Messages API; its id contains `number`, which counts the answers of the case.

    Raises:
        BadRequest: the model called a tool with arguments that are not a JSON object.
    """
    content: list[dict[str, Any]] = [{"type": "text", "text": completion.text}] if completion.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": chat_api.parse_arguments_as_object(call)}
        for call in completion.tool_calls
    ]
    usage = completion.usage
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": STOP_REASONS.get(completion.finish_reason, "tool_use" if completion.tool_calls else "end_turn"),
        "stop_sequence": None,
        "usage": {
            # Subtract cached tokens, because Anthropic's API counts cached tokens separately.
            "input_tokens": max(0, usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens),
            "cache_read_input_tokens": usage.cached_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens,
            "output_tokens": usage.completion_tokens,
        },
    }


def make_message_events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Make the events of a streamed answer from the whole answer, as made by `make_message_object`."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        empty: dict[str, Any]
        if block["type"] == "text":
            empty = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in chat_api.split_into_words(block["text"])]
        else:
            empty = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": message["usage"]}
    yield {"type": "message_stop"}
