"""Answers of the OpenAI API over HTTP: JSON, event streams, or errors in the API's format."""

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from evalsuite.applications.call_log import parse_tool_arguments
from evalsuite.core import errors
from evalsuite.core.json_codec import dumps, encode_tool_call, refuse_nan_or_infinity
from evalsuite.core.types import Completion, Message, ToolCall, Usage
from evalsuite.models.openai_formats import decode_vector

JSON = "application/json"
EVENT_STREAM_TYPE = "text/event-stream"

STATUS_OF: Mapping[type[errors.EvalsuiteError], int] = {
    errors.RequestRefused: 400,
    errors.SettingsError: 400,
    errors.SpendLimitReached: 402,
    errors.ReplayMiss: 424,
    errors.BackendUnavailable: 503,
}


class BadRequest(Exception):  # noqa: N818 - becomes an answer, never an error of the run
    """An application's request that cannot be answered; the error message is for the application's author."""


@contextmanager
def refuse_malformed_request(api: str) -> Iterator[None]:
    """Raise BadRequest if reading a request fails because the request is not in the format of `api`."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadRequest(f"the request is not in the format of {api} ({type(error).__name__}: {error})") from error


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP response for a client."""

    status: int
    body: bytes
    content_type: str = JSON

    @property
    def headers(self) -> dict[str, str]:
        """Return the HTTP headers; `x-should-retry` stops clients from retrying, because the gateway itself retries."""
        return {"Content-Type": self.content_type, "x-should-retry": "false"}


def make_json_answer(value: Any, status: int = 200) -> HttpAnswer:
    """Make an answer that holds one JSON value."""
    return HttpAnswer(status, dumps(value).encode())


def make_chat_stream(chunks: Iterable[Mapping[str, Any]], end: str = "data: [DONE]\n\n") -> HttpAnswer:
    """Make server-sent events without names, as chat completions and Gemini have them; `end` follows the last event."""
    written = "".join(f"data: {dumps(chunk)}\n\n" for chunk in chunks)
    return HttpAnswer(200, f"{written}{end}".encode(), EVENT_STREAM_TYPE)


def make_event_stream(events: Iterable[Mapping[str, Any]]) -> HttpAnswer:
    """Make the server-sent events of the Responses and Messages APIs, which are numbered and named by their type."""
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    written = "".join(f"event: {event['type']}\ndata: {dumps(event)}\n\n" for event in numbered)
    return HttpAnswer(200, written.encode(), EVENT_STREAM_TYPE)


def make_error_answer(status: int, message: str, kind: str = "invalid_request_error") -> HttpAnswer:
    """Make an answer with an error in the OpenAI API's format."""
    return make_json_answer({"error": {"message": message, "type": kind, "param": None, "code": None}}, status)


def make_failure_answer(error: BadRequest | errors.EvalsuiteError) -> HttpAnswer:
    """Make the HTTP answer for a request that cannot be answered, or for a model call that failed permanently."""
    if isinstance(error, BadRequest):
        return make_error_answer(400, str(error))
    status = getattr(error, "status", None) or STATUS_OF.get(type(error), 502)
    return make_error_answer(status, str(error), type(error).__name__)


def parse_body(content: bytes) -> dict[str, Any]:
    """Read a request's body, which must be a JSON object."""
    try:
        value = json.loads(content, parse_constant=refuse_nan_or_infinity)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadRequest(f"the body is {type(value).__name__}, not a JSON object")
    return value


def make_field_error(name: str, value: Any) -> BadRequest:
    """Make the exception for a request field that cannot be passed to the model."""
    return BadRequest(f"{name}: {str(value)[:200]!r} cannot be sent to a chat model; leave {name} out")


def make_content_argument(parts: Sequence[str | Mapping[str, Any]]) -> dict[str, Any]:
    """Return a keyword argument for `Message`: `content` (lines of text) or, if a part is not text, `parts`."""
    if all(isinstance(part, str) for part in parts):
        return {"content": "\n".join(map(str, parts))}
    return {"parts": parts}


def parse_arguments_as_object(call: ToolCall) -> dict[str, Any]:
    """Parse arguments for an API that sends them as an object; raise BadRequest if they are not a JSON object."""
    arguments = parse_tool_arguments(call.arguments or "{}")
    if arguments is None:
        raise BadRequest(f"the model called {call.name} with {call.arguments!r:.200}, which is not a JSON object")
    return arguments


NOT_SENT = frozenset({"model", "messages", "tools", "stream", "stream_options", "n"})
"""Request fields about streaming. They are not generation parameters, because streaming does not change the answer."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to the chat completions API, parsed."""

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]  # Tools on offer, in the OpenAI format.
    params: Mapping[str, Any]
    # Request fields about effort, thoughts or caches, which are not passed on to the model.
    left_out: tuple[str, ...] = ()


@refuse_malformed_request("the chat completions API")
def parse_chat_request(body: Mapping[str, Any]) -> ChatRequest:
    """Read a request of the chat completions API."""
    if body.get("n") not in (None, 1):
        raise BadRequest(
            f"n={body['n']}: a request has one answer; send it {body['n']} times, because each equal "
            "request of a case gets an answer of its own"
        )
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages: expected a list of at least one message")
    params = {name: value for name, value in body.items() if name not in NOT_SENT}
    return ChatRequest(tuple(map(Message.from_openai, messages)), tuple(body.get("tools") or ()), params)


def make_chat_completion(completion: Completion, model: str, number: int) -> dict[str, Any]:
    """Make the complete answer to a request without streaming."""
    text = completion.text if completion.text or not completion.tool_calls else None
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if completion.tool_calls:
        message["tool_calls"] = [encode_tool_call(call) for call in completion.tool_calls]
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": completion.finish_reason,
        "logprobs": encode_logprobs(completion),
    }
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": format_usage(completion.usage),
    }


def make_chat_chunks(answer: Mapping[str, Any], *, with_usage: bool) -> Iterator[dict[str, Any]]:
    """Make the chunks of a streamed answer from the whole answer, each with about one word of the text."""
    head = {**answer, "object": "chat.completion.chunk"}
    (choice,), usage = head.pop("choices"), head.pop("usage")
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None if message["content"] is None else ""}]
    deltas += [{"reasoning_content": message["reasoning_content"]}] if "reasoning_content" in message else []
    deltas += [{"content": piece} for piece in split_into_words(message["content"] or "")]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(message.get("tool_calls", ()))]
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}]}
    ending = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"], "logprobs": None}
    yield {**head, "choices": [ending]}
    if with_usage:
        yield {**head, "choices": [], "usage": usage}


def split_into_words(text: str) -> list[str]:
    """Split a text into words, each with the white space after it, so that the joined pieces equal the text."""
    return re.findall(r"\s+|\S+\s*", text)


def format_usage(usage: Usage) -> dict[str, Any]:
    """Convert a usage to token counts under the names of the OpenAI API."""
    written = {"cache_write_tokens": usage.cache_write_tokens} if usage.cache_write_tokens else {}
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens} | written,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def encode_logprobs(completion: Completion) -> dict[str, Any] | None:
    """Convert log probabilities to the OpenAI API's format; None if the model did not return log probabilities."""
    if completion.logprobs is None:
        return None

    def encode_token(token: str, logprob: float) -> dict[str, Any]:
        return {"token": token, "logprob": logprob, "bytes": list(token.encode("utf-8", "replace"))}

    content = [
        {**encode_token(token.token, token.logprob), "top_logprobs": [encode_token(*other) for other in token.top]}
        for token in completion.logprobs
    ]
    return {"content": content, "refusal": None}


def parse_embedding_request(body: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Read a request of the embeddings API; return the texts to embed and further parameters (`dimensions`, `user`)."""
    texts = body.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise BadRequest("input: expected text or a list of texts; lists of tokens are not read here")
    if not isinstance(body.get("model"), str):
        raise BadRequest("model: expected the name of an embedding model")
    return texts, {name: body[name] for name in ("dimensions", "user") if body.get(name) is not None}


def make_embeddings_answer(body: Mapping[str, Any], completion: Completion) -> dict[str, Any]:
    """Make the answer of the embeddings API, with vectors in base64 or as lists of numbers, as the client wants."""
    as_base64 = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": vector if as_base64 else decode_vector(vector)}
        for index, vector in enumerate(completion.embeddings)
    ]
    tokens = completion.usage.prompt_tokens
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body["model"], "data": data, "usage": usage}
