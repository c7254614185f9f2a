"""Any Python function as a model: the user's own application under test."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
from typing import TYPE_CHECKING, Any

from evalsuite.errors import BackendUnavailable, RequestRefused
from evalsuite.json_codec import dumps, encode_request
from evalsuite.models.chat_format import split_reasoning
from evalsuite.models.protocol import RateLimited, Transient
from evalsuite.threads import RaisedInThread, in_thread, is_async
from evalsuite.types import Completion, TokenLogprob, ToolCall, Usage
from evalsuite.vectors import encode_vector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalsuite.types import Request

UNDERSTOOD = frozenset(
    {"content", "reasoning_content", "tool_calls", "finish_reason", "usage", "logprobs", "embeddings", "role"}
)
"""The parts of an answer as the OpenAI API has them; others are the application's own."""


class FunctionBackend:
    """`function:package.module:name`.

    The function is called with the messages, a list of objects in the OpenAI chat format, and with those
    generation parameters (and `tools`) that its signature takes. It returns the answer's text, or an object
    with `content` and, if it likes, `reasoning_content`, `tool_calls`, `finish_reason`, `usage` and `logprobs` (pairs
    of token and logprob, with a third item for the alternatives); whatever else it holds becomes facts of the case, for
    judges to see. Asked with `api="embeddings"` it returns an object
    with `embeddings`, a vector for each message. A plain function runs
    in a thread. What it raises becomes the case's error.

    Args:
        target: `package.module:name`.
        base_url: has no meaning for a function.
    """

    metered = False
    connections: int | None = None

    def __init__(self, target: str, base_url: str | None = None) -> None:  # noqa: ARG002 - as every backend
        self.target = target
        self.identity = f"function {target}"
        self._function: Callable[..., Any] | None = None

    def check(self) -> None:
        """Imports the function."""
        self._loaded()

    def _loaded(self) -> Callable[..., Any]:
        if self._function is None:
            module, _, name = self.target.partition(":")
            try:
                found = importlib.import_module(module)
                for part in name.split("."):
                    found = getattr(found, part)
            except Exception as error:
                raise BackendUnavailable(
                    f"--model function:{self.target}: {type(error).__name__}: {error}; write "
                    "function:package.module:name of a function that Python can import from the root directory"
                ) from error
            if not callable(found):
                raise BackendUnavailable(
                    f"--model function:{self.target} is {type(found).__name__}, not a function"
                )
            self._function = found
        return self._function

    async def complete(self, request: Request) -> Completion:
        """Calls the function once."""
        function = self._loaded()
        # A copy, which the function may change, and the same as if it had come from a worker.
        plain = json.loads(dumps(encode_request(request)))
        given = plain["params"] | ({"tools": plain["tools"]} if plain["tools"] else {})
        try:
            said = await self._called(function, plain["messages"], _accepted(function, given))
        except (RateLimited, Transient, RequestRefused, asyncio.CancelledError):
            raise
        except RaisedInThread as error:
            raise RequestRefused(f"function:{self.target} raised {error}") from error
        except BaseException as error:
            # An application that calls sys.exit must not end the event loop.
            raise self._refusal(error) from error
        return self._read(said)

    async def _called(self, function: Callable[..., Any], messages: Any, taken: Mapping[str, Any]) -> Any:
        if is_async(function):
            return await function(messages, **taken)
        said = await in_thread(function, messages, **taken)
        return await said if inspect.isawaitable(said) else said

    def _refusal(self, error: BaseException) -> RequestRefused:
        return RequestRefused(f"function:{self.target} raised {type(error).__name__}: {error}")

    def _read(self, said: Any) -> Completion:
        if isinstance(said, str):
            said = {"content": said}
        try:
            text, reasoning = split_reasoning(said.get("content") or "")
            usage = said.get("usage") or {}
            logprobs = said.get("logprobs")
            return Completion(
                text=text,
                reasoning=said.get("reasoning_content") or reasoning,
                tool_calls=tuple(ToolCall.from_openai(call) for call in said.get("tool_calls") or ()),
                finish_reason=said.get("finish_reason") or "stop",
                usage=Usage(
                    1, int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
                ),
                logprobs=None if logprobs is None else tuple(_logprob(*one) for one in logprobs),
                embeddings=tuple(map(encode_vector, said.get("embeddings") or ())),
                facts=_plain({name: value for name, value in said.items() if name not in UNDERSTOOD}),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RequestRefused(
                f"function:{self.target} returned {said!r:.200}; it must return the answer's text, or an object "
                "with `content`"
            ) from error

    async def aclose(self) -> None:
        """Nothing is held; a call that is still under way ends by itself."""


def _accepted(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those arguments that the function's signature takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(given)
    names = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    return {name: value for name, value in given.items() if name in names}


def _plain(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """As the facts would be read back from the journal."""
    return json.loads(dumps(facts)) if facts else {}


def _logprob(token: str, logprob: float, top: Mapping[str, float] | None = None) -> TokenLogprob:
    return TokenLogprob(token, logprob, tuple((top or {}).items()))
