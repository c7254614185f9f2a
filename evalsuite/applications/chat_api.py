"""The chat completions API, as an application speaks it to its endpoint.

Source: the OpenAI API reference, "Create chat completion" and "The chat completion chunk object".
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.applications.http_answer import BadRequest
from evalsuite.core.json_codec import encode_tool_call
from evalsuite.core.types import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalsuite.core.types import Completion, Usage

NOT_SENT = frozenset({"model", "messages", "tools", "stream", "stream_options", "n"})
"""Fields that are no generation parameters: a streamed answer is the same answer."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a request asks.

    Attributes:
        messages: the conversation.
        tools: tools on offer, in the OpenAI format.
        params: generation parameters.
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    params: Mapping[str, Any]


def read_chat(body: Mapping[str, Any]) -> ChatRequest:
    """A request of the chat completions API.

    Raises:
        BadRequest: it has no readable messages, or asks for several answers at once.
    """
    if body.get("n") not in {None, 1}:
        raise BadRequest(
            f"n={body['n']}: a request has one answer; send it {body['n']} times, because each equal "
            "request of a case gets an answer of its own"
        )
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages: expected a list of at least one message")
    try:
        read = tuple(map(Message.from_openai, messages))
    except (KeyError, TypeError, AttributeError) as error:
        raise BadRequest(
            f"messages: not in the OpenAI chat format ({type(error).__name__}: {error})"
        ) from error
    params = {name: value for name, value in body.items() if name not in NOT_SENT}
    return ChatRequest(read, tuple(body.get("tools") or ()), params)


def chat_completion(completion: Completion, model: str, number: int) -> dict[str, Any]:
    """The answer in one piece.

    Args:
        completion: the model's answer.
        model: its name.
        number: of the answer within its case, for its id.
    """
    message: dict[str, Any] = {"role": "assistant", "content": completion.text or None, "refusal": None}
    if completion.tool_calls:
        message["tool_calls"] = [encode_tool_call(call) for call in completion.tool_calls]
    else:
        message["content"] = completion.text
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": completion.finish_reason,
        "logprobs": _logprobs(completion),
    }
    return {
        **_head(model, number, "chat.completion"),
        "choices": [choice],
        "usage": usage_of(completion.usage),
    }


def chat_chunks(
    completion: Completion, model: str, number: int, *, with_usage: bool
) -> Iterator[dict[str, Any]]:
    """The answer in pieces of about a word, as a stream brings it; see `chat_completion`."""
    head = _head(model, number, "chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]}

    yield chunk(
        {"role": "assistant", "content": "" if completion.text or not completion.tool_calls else None}
    )
    if completion.reasoning:
        yield chunk({"reasoning_content": completion.reasoning})
    for piece in pieces(completion.text):
        yield chunk({"content": piece})
    for index, call in enumerate(completion.tool_calls):
        yield chunk({"tool_calls": [{"index": index, **encode_tool_call(call)}]})
    yield chunk({}, completion.finish_reason)
    if with_usage:
        yield {**head, "choices": [], "usage": usage_of(completion.usage)}


def pieces(text: str) -> list[str]:
    """A text in words, each with the white space behind it; joined they are the text."""
    return re.findall(r"\s+|\S+\s*", text)


def usage_of(usage: Usage) -> dict[str, Any]:
    """Tokens by the API's names."""
    total = usage.prompt_tokens + usage.completion_tokens
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _head(model: str, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": int(time.time()), "model": model}


def _logprobs(completion: Completion) -> dict[str, Any] | None:
    if completion.logprobs is None:
        return None

    def entry(token: str, logprob: float) -> dict[str, Any]:
        return {"token": token, "logprob": logprob, "bytes": list(token.encode("utf-8", "replace"))}

    content = [
        {**entry(token.token, token.logprob), "top_logprobs": [entry(*other) for other in token.top]}
        for token in completion.logprobs
    ]
    return {"content": content, "refusal": None}
