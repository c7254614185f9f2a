"""OpenAI's formats of chat, embeddings and responses: converts requests to JSON, and JSON answers to completions.

Source: the OpenAI API reference, "Create chat completion", "Create embeddings" and "Create a model response" (selected
by `--model-param api=responses`); `reasoning_content` is from vLLM, llama.cpp and DeepSeek.
"""

import json
import math
import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalsuite.core.json_codec import encode_message
from evalsuite.core.types import Completion, Message, Request, TokenLogprob, ToolCall, Usage
from evalsuite.models.protocol import LostAnswer, WithheldAnswer

# The opening tag `<think>` may be missing, because some chat templates put this tag into the prompt.
THINKING = re.compile(r"\A\s*(?:<think>)?(.*?)</think>\s*", re.DOTALL)
UNFINISHED = re.compile(r"\A\s*<think>(.*)\Z", re.DOTALL)

FILTERED = re.compile(r"content_filter|SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII")
"""The start of a finish reason that names a filter: OpenAI's, and those that Gemini's compatible API passes on."""

CLIENT_PARAMS = frozenset({"api", "extra_headers", "extra_query", "extra_body"})
"""Parameters that are not part of the body, by the openai package's names."""


def build_chat_body(request: Request, model: str) -> dict[str, Any]:
    """Build the body of the POST to `/chat/completions`."""
    body: dict[str, Any] = {"model": model, "messages": [encode_message(message) for message in request.messages]}
    if request.tools:
        body["tools"] = [
            tool if tool.get("type") == "function" else {"type": "function", "function": tool} for tool in request.tools
        ]
    body |= select_body_params(request)
    if body.get("stream"):
        # Without `include_usage`, a streamed answer does not report its number of tokens.
        body.setdefault("stream_options", {"include_usage": True})
    return body | dict(request.params.get("extra_body") or {})


def select_body_params(request: Request) -> dict[str, Any]:
    """Return the request's parameters that belong into its body, except parameters that are None."""
    return {name: value for name, value in request.params.items() if value is not None and name not in CLIENT_PARAMS}


def parse_chat_answer(answer: Any) -> Completion:
    """Read a completion from a server's JSON."""
    try:
        choice = answer["choices"][0]
        filtered = FILTERED.match(str(choice.get("finish_reason")))
        # Gemini sends no message if a filter withheld the answer.
        message = choice.get("message") or {} if filtered else choice["message"]
        completion = _make_completion(choice, message, answer.get("usage") or {})
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise LostAnswer(f"the server's answer is not a chat completion: {answer!s:.200}") from error
    if choice.get("error") or completion.finish_reason == "error":
        # Refuse an answer with the finish reason `error`: the server behind a router failed, so the text is incomplete.
        raise LostAnswer(f"the server failed while it answered: {choice.get('error') or choice!s:.200}")
    if not completion.text and not completion.tool_calls:
        if message.get("refusal"):
            raise WithheldAnswer(f"the model refused: {message['refusal']!s:.200}", completion.usage)
        if filtered:
            words = f"a content filter withheld the whole answer ({completion.finish_reason:.100})"
            raise WithheldAnswer(words, completion.usage)
    return completion


def _make_completion(choice: Any, message: Any, usage: Any) -> Completion:
    text, thought = split_reasoning(_join_text_parts(message.get("content")))
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return Completion(
        text=text,
        reasoning=reasoning if isinstance(reasoning, str) else thought,
        tool_calls=tuple(ToolCall.from_openai(call) for call in message.get("tool_calls") or ()),
        finish_reason=str(choice.get("finish_reason") or "stop"),
        usage=read_usage(usage),
        logprobs=read_logprobs((choice.get("logprobs") or {}).get("content")),
    )


def read_usage(usage: Any) -> Usage:
    """Read the token counts of one call; all counts are 0 if the server sent none, or invalid ones."""
    prompt, completion = _find_token_count(usage, PROMPT), _find_token_count(usage, COMPLETION)
    if prompt is None or completion is None or prompt + completion == 0:
        return Usage(1, 0, 0)
    cached, written, reasoning = (_find_token_count(usage, names) or 0 for names in (CACHED, CACHE_WRITES, REASONING))
    if "prompt_tokens" not in usage and ANTHROPIC & usage.keys():
        prompt += cached + written
    # Add the reasoning's tokens, because xAI and Gemini bill them but leave them out of the completion's tokens.
    hidden = max(0, (_parse_token_count(usage.get("total_tokens")) or 0) - prompt - completion)
    completion, reasoning = completion + hidden, max(reasoning, hidden)
    cached = min(cached, prompt)
    written, reasoning = min(written, prompt - cached), min(reasoning, completion)
    return Usage(1, prompt, completion, cached_tokens=cached, cache_write_tokens=written, reasoning_tokens=reasoning)


PROMPT, COMPLETION = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")
CACHED = (
    *("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),
    *("prompt_cache_hit_tokens", "cache_read_input_tokens"),
)
CACHE_WRITES = (
    *("prompt_tokens_details.cache_creation_tokens", "input_tokens_details.cache_write_tokens"),
    *("prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens"),
)
REASONING = ("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens")
"""Fields in which servers state these counts; DeepSeek and Anthropic have their own names."""

ANTHROPIC = frozenset({"cache_read_input_tokens", "cache_creation_input_tokens"})
"""Counts that Anthropic's `input_tokens` do not include, unlike all other servers'."""


def _find_token_count(usage: Any, names: Iterable[str]) -> int | None:
    for name in names:
        group, _, field = name.rpartition(".")
        inner = usage.get(group) if group else usage
        if isinstance(inner, Mapping) and inner.get(field) is not None:
            return _parse_token_count(inner[field])
    return None


def _parse_token_count(number: Any) -> int | None:
    whole = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    return int(number) if whole and number >= 0 else None


def split_reasoning(text: str) -> tuple[str, str]:
    """Separate an answer from the model's reasoning (`<think>…</think>`), if the text begins with it.

    If the text ends before the reasoning does, the answer is empty.
    """
    if closed := THINKING.match(text):
        return text[closed.end() :], closed[1].strip()
    if unfinished := UNFINISHED.match(text):
        return "", unfinished[1].strip()
    return text, ""


def _join_text_parts(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, Mapping))
    if not isinstance(content, str | None):
        raise TypeError(f"{content!r} is not text")
    return content or ""


def read_logprobs(entries: Any) -> tuple[TokenLogprob, ...] | None:
    """Read the log probabilities of a chat completion or response; return None if the server sent none."""
    if not entries:
        return None
    return tuple(
        TokenLogprob(
            entry["token"],
            float(entry["logprob"]),
            tuple((top["token"], float(top["logprob"])) for top in entry.get("top_logprobs") or ()),
        )
        for entry in entries
    )


EMPTY_MESSAGE = {"role": "assistant", "content": ""}


def join_stream(content: bytes) -> dict[str, Any]:
    """Join the events of a complete stream (`--model-param stream=true`) into one answer."""
    events, ended = _read_events(content)
    for event in events:
        if event.get("type") in {"response.completed", "response.incomplete", "response.failed"}:
            whole: dict[str, Any] = event["response"]
            return whole
    failed = next((event for event in events if event.get("error")), None)
    # The Responses API may put an error's fields into the event itself.
    failed = failed or next(({"error": event} for event in events if event.get("type") == "error"), None)
    if not (ended or failed):
        raise LostAnswer("the server's stream was cut off before its end")
    try:
        answer = _join_events_into_answer([event for event in events if event.get("object") != "error"])
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise LostAnswer(f"the server's stream is not a chat completion: {content[:200]!r}") from error
    if failed and (answer["choices"][0]["message"] != EMPTY_MESSAGE or any("delta" in event for event in events)):
        # The server may bill what it wrote before the error.
        raise LostAnswer(f"the server failed while it answered: {failed['error']!s:.200}")
    return failed or answer


def _read_events(content: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the data of a stream's events, and whether the stream contained the end marker `[DONE]`."""
    events, ended = [], False
    # Split bytes, because str.splitlines also splits at U+2028, which JSON may contain.
    for raw in content.splitlines():
        line = raw.decode("utf-8", "replace")
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


def _join_events_into_answer(events: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = dict(EMPTY_MESSAGE)
    calls: list[dict[str, Any]] = []
    logprobs: list[Any] = []
    usage = finish = None
    for event in events:
        usage = event.get("usage") or usage
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue
            delta = choice.get("delta") or {}
            message["content"] += _join_text_parts(delta.get("content"))
            for name in ("reasoning_content", "reasoning", "refusal"):
                if isinstance(delta.get(name), str):
                    message[name] = (message.get(name) or "") + delta[name]
            for part in delta.get("tool_calls") or ():
                _add_call_delta(calls, part)
            logprobs += (choice.get("logprobs") or {}).get("content") or []
            finish = choice.get("finish_reason") or finish
    if calls:
        message["tool_calls"] = calls
    choice = {"message": message, "finish_reason": finish, "logprobs": {"content": logprobs}}
    return {"usage": usage, "choices": [choice]}


def _add_call_delta(calls: list[dict[str, Any]], delta: dict[str, Any]) -> None:
    index, name = delta.get("index") or 0, delta.get("id")
    function = delta.get("function") or {}
    call = next((call for call in reversed(calls) if call["index"] == index), None)
    # Some servers number all calls 0, or none, so another id with a function's name begins another call.
    if call is None or (call["id"] and name and name != call["id"] and function.get("name")):
        call = {"index": index, "id": "", "function": {"name": "", "arguments": ""}}
        calls.append(call)
    call |= {"id": name or call["id"], "extra_content": delta.get("extra_content") or call.get("extra_content")}
    for field in ("name", "arguments"):
        call["function"][field] += function.get(field) or ""


def build_embeddings_body(request: Request, model: str) -> dict[str, Any]:
    """Build the body of the POST to `/embeddings`, which asks for base64, a third of the size of decimal numbers."""
    texts = [message.content for message in request.messages]
    return {"model": model, "input": texts, "encoding_format": "base64", **select_body_params(request)}


def parse_embeddings(answer: Any) -> Completion:
    """Read the vectors from a server's JSON, in the order of the texts."""
    try:
        entries = sorted(answer["data"], key=lambda entry: int(entry["index"]))
        vectors = tuple(_encode_embedding(entry["embedding"]) for entry in entries)
        tokens = int((answer.get("usage") or {}).get("prompt_tokens") or 0)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise LostAnswer(f"the server's answer holds no embeddings: {answer!s:.200}") from error
    return Completion("", usage=Usage(1, tokens, 0), embeddings=vectors)


def _encode_embedding(embedding: Any) -> str:
    """Return a vector in base64; convert a list of numbers, and raise an error for text that is not a vector."""
    if isinstance(embedding, str):
        decode_vector(embedding)
        return embedding
    return encode_vector(embedding)


def encode_vector(vector: Sequence[float]) -> str:
    """Write a vector as OpenAI's API sends it: base64 of little-endian 32-bit floats."""
    try:
        return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
    except (struct.error, OverflowError, TypeError) as error:
        raise ValueError(f"{str(vector)[:80]} is not a vector of numbers: {error}") from error


def decode_vector(text: str) -> list[float]:
    """Decode a vector that `encode_vector` wrote."""
    content = b64decode(text, validate=True)
    if len(content) % 4:
        raise ValueError(f"{len(content)} bytes are not a vector of 32-bit floats")
    return list(struct.unpack(f"<{len(content) // 4}f", content))


KEPT = ("id", "status", "incomplete_details", "output", "conversation", "service_tier")
"""Fields of an answer that an application's later requests may refer to."""
FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


def build_response_body(request: Request, model: str) -> dict[str, Any]:
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


def parse_response(answer: Any) -> Completion:
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
