"""The OpenAI chat format: what a request looks like on the wire, and what an answer means.

Source: the OpenAI API reference, "Create chat completion"; `reasoning_content` is what vLLM, llama.cpp and
DeepSeek add to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalsuite.json_codec import encode_message
from evalsuite.models.protocol import Transient
from evalsuite.types import Completion, Request, TokenLogprob, ToolCall, Usage

# The first tag may be missing: some chat templates put it into the prompt.
THINKING = re.compile(r"\A\s*(?:<think>)?(.*?)</think>\s*", re.DOTALL)
UNFINISHED = re.compile(r"\A\s*<think>(.*)\Z", re.DOTALL)


def request_body(request: Request, model: str) -> dict[str, Any]:
    """The body of the POST to `/chat/completions`."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [encode_message(message) for message in request.messages],
    }
    if request.tools:
        body["tools"] = [
            tool if tool.get("type") == "function" else {"type": "function", "function": tool}
            for tool in request.tools
        ]
    return body | {name: value for name, value in request.params.items() if value is not None}


def read_answer(answer: Any) -> Completion:
    """A completion from a server's JSON.

    Raises:
        Transient: it is no chat completion.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        text, thought = split_reasoning(_text(message.get("content")))
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        usage = answer.get("usage") or {}
        return Completion(
            text=text,
            reasoning=reasoning if isinstance(reasoning, str) else thought,
            tool_calls=tuple(ToolCall.from_openai(call) for call in message.get("tool_calls") or ()),
            finish_reason=str(choice.get("finish_reason") or "stop"),
            usage=Usage(1, int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)),
            logprobs=_logprobs(choice.get("logprobs")),
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        shown = str(answer)
        raise Transient(f"the server's answer is no chat completion: {shown[:200]}") from error


def split_reasoning(text: str) -> tuple[str, str]:
    """The answer and the reasoning before it (`<think>…</think>`), if there is any.

    Reasoning that was cut off before its end leaves an empty answer.
    """
    if found := THINKING.match(text):
        return text[found.end() :], found[1].strip()
    if found := UNFINISHED.match(text):
        return "", found[1].strip()
    return text, ""


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, Mapping))
    if not isinstance(content, str | None):
        raise TypeError(f"{content!r} is no text")
    return content or ""


def _logprobs(given: Any) -> tuple[TokenLogprob, ...] | None:
    if not given or not given.get("content"):
        return None
    return tuple(
        TokenLogprob(
            one["token"],
            float(one["logprob"]),
            tuple((other["token"], float(other["logprob"])) for other in one.get("top_logprobs") or ()),
        )
        for one in given["content"]
    )
