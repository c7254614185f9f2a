"""Any Python function as a model: the user's own application under test."""

import asyncio
import importlib
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalsuite.core.entry_points import load_import_target
from evalsuite.core.errors import BackendUnavailable, RequestRefused, SettingsError, describe_error
from evalsuite.core.json_codec import digest, dumps, encode_request
from evalsuite.core.threads import RaisedInThread, call_maybe_async
from evalsuite.core.types import Completion, Request, TokenLogprob, ToolCall
from evalsuite.models.openai_formats import encode_vector, read_usage, split_reasoning
from evalsuite.models.protocol import Backend, RateLimited, Transient

OPENAI_FIELDS = frozenset(
    {"content", "reasoning_content", "tool_calls", "finish_reason", "usage", "logprobs", "embeddings", "role"}
)
"""Fields of an answer in the OpenAI API; other fields are the application's own."""


class FunctionBackend(Backend):
    """`function:package.module:name`.

    The function is called with the messages, a list of objects in the OpenAI chat format. It also gets `tools` and the
    generation parameters that its signature accepts. The function returns the answer's text, or an object with
    `content`. Optional fields of the object are `reasoning_content`, `tool_calls`, `finish_reason`, `usage` and
    `logprobs`. `logprobs` has a pair (token, logprob) per token; a third item gives the alternatives. All other fields
    of the object become facts of the case (entries of `facts` in its record), which judges can see. If called with
    `api="embeddings"`, the function returns an object with `embeddings`, one vector per message. A plain function runs
    in a thread, which cannot be stopped, so the function continues after the call's time limit. Any exception of the
    function becomes the case's error. The function may call paid models, so the cost of a call is unknown unless the
    name `function:package.module:name` has a price.
    """

    def __init__(self, target: str, base_url: str | None = None) -> None:  # noqa: ARG002 - as every backend
        self.target = target
        self.identity = f"function {target}"
        self._function: Callable[..., Any] | None = None

    def check(self) -> None:
        self._load_function()

    def _load_function(self) -> Callable[..., Any]:
        if self._function is None:
            module, _, name = self.target.partition(":")
            if not module or not name:
                raise BackendUnavailable(
                    f"model function:{self.target} names no function in a module; write function:package.module:name"
                )
            try:
                function = load_import_target(self.target)
            except SettingsError as error:
                raise BackendUnavailable(
                    f"model function:{error}; write function:package.module:name of a function that Python can import "
                    "from the root directory"
                ) from error
            if not callable(function):
                raise BackendUnavailable(f"model function:{self.target} is {type(function).__name__}, not a function")
            self._function = function
        return self._function

    def hash_code(self) -> str:
        """Hash the source file of the function's module, to tell versions of the function apart.

        The hash does not include code that the module imports. The hash is empty if the module has no source file.
        """
        self._load_function()
        try:
            source = inspect.getsourcefile(importlib.import_module(self.target.partition(":")[0]))
            return digest(Path(source).read_text("utf-8")) if source else ""
        except (OSError, TypeError, UnicodeDecodeError):
            return ""

    async def complete(self, request: Request) -> Completion:
        function = self._load_function()
        # Copy the request by way of JSON, because the function may change its arguments.
        plain = json.loads(dumps(encode_request(request)))
        offered = {"tools": plain["tools"]} if plain["tools"] else {}
        try:
            arguments = _select_accepted_arguments(function, plain["params"] | offered)
            returned = await call_maybe_async(function, plain["messages"], **arguments)
        except (RateLimited, Transient, RequestRefused, asyncio.CancelledError):
            raise
        except RaisedInThread as error:
            raise self._make_refusal(str(error), error.__cause__) from error
        except BaseException as error:
            # Catch `BaseException`, because an application that calls sys.exit must not end the event loop.
            raise self._make_refusal(describe_error(error), error) from error
        return self._make_completion(returned)

    def _make_refusal(self, error_text: str, cause: BaseException | None) -> RequestRefused:
        source = getattr(sys.modules.get(self.target.partition(":")[0]), "__file__", None)
        frames = traceback.extract_tb(cause.__traceback__) if cause is not None else []
        lines = [frame.lineno for frame in frames if frame.filename == source]
        # Name the file without its folder, because reports are shared.
        place = f" ({Path(str(source)).name}, line {lines[-1]})" if lines else ""
        return RequestRefused(f"function:{self.target} raised {error_text}{place}")

    def _make_completion(self, returned: Any) -> Completion:
        answer: Any = {"content": returned} if isinstance(returned, str) else returned
        try:
            if not any(name in answer for name in ("content", "tool_calls", "embeddings")):
                raise KeyError("content")
            text, reasoning = split_reasoning(answer.get("content") or "")
            logprobs, usage = answer.get("logprobs"), answer.get("usage") or {}
            # Treat a missing count as 0, because a function may state only one of the two counts.
            names = () if "input_tokens" in usage else ("prompt_tokens", "completion_tokens")
            counted = read_usage({**usage, **{name: int(usage.get(name) or 0) for name in names}})
            return Completion(
                text=text,
                reasoning=answer.get("reasoning_content") or reasoning,
                tool_calls=tuple(ToolCall.from_openai(call) for call in answer.get("tool_calls") or ()),
                finish_reason=answer.get("finish_reason") or ("tool_calls" if answer.get("tool_calls") else "stop"),
                usage=replace(counted, unpriced=1),
                logprobs=None if logprobs is None else tuple(_make_token_logprob(*entry) for entry in logprobs),
                embeddings=tuple(map(encode_vector, answer.get("embeddings") or ())),
                facts=json.loads(dumps({name: value for name, value in answer.items() if name not in OPENAI_FIELDS})),
            )
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise RequestRefused(
                f"function:{self.target} returned {returned!r:.200}; it must return the answer's text, or an object "
                "with `content`"
            ) from error


def _select_accepted_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(arguments)
    names = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    return {name: value for name, value in arguments.items() if name in names}


def _make_token_logprob(token: str, logprob: float, top: Mapping[str, float] | None = None) -> TokenLogprob:
    return TokenLogprob(token, logprob, tuple((top or {}).items()))
