"""Puts streamed answers (server-sent events) together to what a chat completion or response would be.

`--model-param stream=true` asks for them; a proxy that closes idle connections then leaves long answers alone.
Source: the OpenAI API reference, "Streaming events" of chat completions and of responses.
"""

from __future__ import annotations

import json
from typing import Any

from evalsuite.models.protocol import LostAnswer


def join_stream(content: bytes) -> dict[str, Any]:
    """The answer of a complete stream.

    Raises:
        LostAnswer: the stream was cut off, or is not one.
    """
    events, ended = _events(content)
    for event in events:
        if event.get("error"):
            return event
        if event.get("type") in {"response.completed", "response.incomplete", "response.failed"}:
            whole: dict[str, Any] = event["response"]
            return whole
    if not ended:
        raise LostAnswer("the server's stream was cut off before its end")
    try:
        return _joined([event for event in events if event.get("object") != "error"])
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise LostAnswer(f"the server's stream is not a chat completion: {content[:200]!r}") from error


def _events(content: bytes) -> tuple[list[dict[str, Any]], bool]:
    """The events' data, and whether the end was marked."""
    events, ended = [], False
    for line in content.decode("utf-8", "replace").splitlines():
        data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if data == "[DONE]":
            ended = True
        elif data:
            try:
                event = json.loads(data)
            except ValueError as error:
                raise LostAnswer(f"the server's stream holds no JSON: {data[:200]}") from error
            events += [event] if isinstance(event, dict) else []
    return events, ended


def _joined(events: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[int, dict[str, Any]] = {}
    logprobs: list[Any] = []
    answer: dict[str, Any] = {"usage": None}
    finish = None
    for event in events:
        answer["usage"] = event.get("usage") or answer["usage"]
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue
            delta = choice.get("delta") or {}
            for name in ("content", "reasoning_content", "reasoning", "refusal"):
                if isinstance(delta.get(name), str):
                    message[name] = (message.get(name) or "") + delta[name]
            for part in delta.get("tool_calls") or ():
                _add_call(calls, part)
            logprobs += (choice.get("logprobs") or {}).get("content") or []
            finish = choice.get("finish_reason") or finish
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    choice = {"message": message, "finish_reason": finish, "logprobs": {"content": logprobs}}
    return answer | {"choices": [choice]}


def _add_call(calls: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    call = calls.setdefault(part.get("index") or 0, {"id": "", "function": {"name": "", "arguments": ""}})
    call["id"] = part.get("id") or call["id"]
    function = part.get("function") or {}
    for name in ("name", "arguments"):
        call["function"][name] += function.get(name) or ""
