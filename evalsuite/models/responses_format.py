"""OpenAI's Responses API: converts requests to JSON, and JSON answers to completions.

Source: the OpenAI API reference, "Create a model response". `--model-param api=responses` selects this API.
"""

from collections.abc import Mapping
from typing import Any

from evalsuite.core.json_codec import encode_message
from evalsuite.core.types import Completion, Message, Request, ToolCall
from evalsuite.models.chat_format import read_logprobs, read_usage, select_body_params, split_reasoning
from evalsuite.models.protocol import LostAnswer, WithheldAnswer

KEPT = ("id", "status", "incomplete_details", "output", "conversation", "service_tier")
"""Fields of an answer that an application's later requests may refer to."""
FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


def build_body(request: Request, model: str) -> dict[str, Any]:
    """Build the body of the POST to `/responses`. The server stores nothing unless `store` is set."""
    body: dict[str, Any] = {
        "model": model,
        "input": [item for message in request.messages for item in _convert_message_to_items(message)],
        "store": False,
    }
    if request.tools:
        body["tools"] = [
            {"type": "function", **tool.get("function", tool)} if tool.get("type", "function") == "function" else tool
            for tool in request.tools
        ]
    return body | rename_params(select_body_params(request)) | dict(request.params.get("extra_body") or {})


def _convert_message_to_items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": message.content}]
    content = encode_message(message)["content"]
    calls = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    if not content:
        return calls
    parts = content if isinstance(content, str) else [_convert_message_part(part) for part in content]
    return [{"role": message.role, "content": parts}, *calls]


def _convert_message_part(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        return {"type": "input_text", "text": part["text"]}
    if part.get("type") == "image_url":
        return {"type": "input_image", "image_url": part["image_url"]["url"]}
    return part


def rename_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Rename parameters of the chat API to the names of the Responses API."""
    body = dict(params)
    for name in ("max_tokens", "max_completion_tokens"):
        if name in body:
            body["max_output_tokens"] = body.pop(name)
    if "reasoning_effort" in body:
        body["reasoning"] = {"effort": body.pop("reasoning_effort"), **body.get("reasoning", {})}
    if "response_format" in body:
        wanted = body.pop("response_format")
        body["text"] = {"format": {**wanted.get("json_schema", {}), "type": wanted["type"]}}
    if body.pop("logprobs", False):
        body["include"] = [*body.get("include", ()), "message.output_text.logprobs"]
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and "function" in choice:
        body["tool_choice"] = {"type": "function", **choice["function"]}
    return body


def parse_answer(answer: Any) -> Completion:
    """Read a completion from a server's JSON."""
    try:
        return _read_response(answer)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise LostAnswer(f"the server's answer is not a response: {answer!s:.200}") from error


def _read_response(answer: Any) -> Completion:
    if answer["status"] not in {"completed", "incomplete"}:
        raise LostAnswer(f"the server's response has the status {answer['status']!r}: {answer!s:.200}")
    items, usage = answer["output"], read_usage(answer.get("usage") or {})
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
    if refusals:
        raise WithheldAnswer(f"the model refused: {refusals[0]!s:.200}", usage)
    spoken = [part for part in parts if part["type"] == "output_text"]
    text, thought = split_reasoning("".join(part["text"] for part in spoken))
    calls = tuple(
        ToolCall(str(item["call_id"]), str(item["name"]), str(item["arguments"]))
        for item in items
        if item["type"] == "function_call"
    )
    reason = (answer.get("incomplete_details") or {}).get("reason")
    finish = FINISH.get(reason, str(reason)) if reason else "tool_calls" if calls else "stop"
    if finish == "content_filter" and not text:
        raise WithheldAnswer("a content filter withheld the whole answer", usage)
    thoughts = [item.get("summary") or item.get("content") or () for item in items if item["type"] == "reasoning"]
    reasoning = "\n\n".join(str(part.get("text") or "") for group in thoughts for part in group)
    return Completion(
        text=text,
        reasoning=reasoning or thought,
        tool_calls=calls,
        finish_reason=finish,
        usage=usage,
        response={name: answer[name] for name in KEPT if answer.get(name) is not None},
        logprobs=read_logprobs([entry for part in spoken for entry in part.get("logprobs") or ()]),
    )
