"""Functions as models: sync, async, well and badly behaved."""

from __future__ import annotations

import asyncio
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from evalsuite.core.errors import BackendUnavailable, RequestRefused
from evalsuite.core.types import Completion, Message, Request, TokenLogprob, ToolCall, Usage
from evalsuite.models.function import FunctionBackend
from evalsuite.models.protocol import RateLimited, Transient

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.models.conftest import Once


class Application(ModuleType):
    """A user's module."""


class Serve(Protocol):
    """Makes a function the model `application:<name>`."""

    def __call__(self, function: Any, name: str = "answer") -> FunctionBackend: ...


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """See `Serve`."""

    def serve(function: Any, name: str = "answer") -> FunctionBackend:
        module = Application("application")
        setattr(module, name.partition(".")[0], function)
        monkeypatch.setitem(sys.modules, "application", module)
        return FunctionBackend(f"application:{name}")

    return serve


def test_a_plain_function_gets_the_messages_and_returns_the_answer(serve: Serve, once: Once) -> None:
    heard = []

    def answer(messages: Any) -> str:
        heard.append(messages)
        return "42"

    completion = once(serve(answer), "six times seven?", params={"max_tokens": 5})
    assert completion == Completion("42", usage=Usage(1, unpriced=1))
    assert heard == [[{"role": "user", "content": "six times seven?"}]]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_an_exception_is_told_with_the_line_of_the_function_s_file_that_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: Once, kind: str
) -> None:
    (tmp_path / "raising_application.py").write_text(f"{kind} answer(messages):\n    return int('x')\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "raising_application", raising=False)
    with pytest.raises(RequestRefused, match=r"raised ValueError: .* \(raising_application\.py, line 2\)"):
        once(FunctionBackend("raising_application:answer"))


def test_an_async_function_is_awaited(serve: Serve, once: Once) -> None:
    async def answer(messages: Any) -> str:
        await asyncio.sleep(0)
        return str(messages[-1]["content"]).upper()

    assert once(serve(answer), "abc").text == "ABC"


def test_an_object_with_a_call_of_either_kind_will_do(serve: Serve, once: Once) -> None:
    class Plain:
        def __call__(self, messages: Any) -> str:
            return "plain"

    class Async:
        async def __call__(self, messages: Any) -> str:
            return "async"

    assert once(serve(Plain())).text == "plain"
    assert once(serve(Async())).text == "async"


def test_a_plain_function_may_return_something_to_await(serve: Serve, once: Once) -> None:
    async def later() -> str:
        return "later"

    assert once(serve(lambda messages: later())).text == "later"


def test_a_method_of_an_object_in_the_module_is_found(serve: Serve, once: Once) -> None:
    class App:
        def answer(self, messages: Any) -> str:
            return "method"

    assert once(serve(App(), "app.answer")).text == "method"


def test_it_gets_those_parameters_that_its_signature_takes(serve: Serve, once: Once) -> None:
    def answer(messages: Any, temperature: float = 1.0, *, tools: Any = None, unasked: int = 7) -> str:
        return f"{temperature} {tools} {unasked}"

    completion = once(serve(answer), params={"temperature": 0, "max_tokens": 5}, tools=({"name": "f"},))
    assert completion.text == "0 [{'name': 'f'}] 7"


def test_it_gets_all_of_them_if_it_takes_any(serve: Serve, once: Once) -> None:
    completion = once(serve(lambda messages, **given: str(given)), params={"max_tokens": 5, "stop": ["a"]})
    assert completion.text == "{'max_tokens': 5, 'stop': ['a']}"


def test_what_it_does_to_its_arguments_stays_with_it(serve: Serve, once: Once) -> None:
    def answer(messages: Any, tools: Any, stop: Any) -> str:
        messages.clear()
        tools[0].clear()
        stop.append("b")
        return "ok"

    request = Request("m", (Message("user", "x"),), {"stop": ["a"]}, ({"name": "f"},))
    once.send(serve(answer), request)
    assert request == Request("m", (Message("user", "x"),), {"stop": ["a"]}, ({"name": "f"},))


def test_an_object_with_all_there_is_to_say_is_read(serve: Serve, once: Once) -> None:
    said = {
        "content": "4",
        "reasoning_content": "two and two",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"x": 1}}}],
        "finish_reason": "tool_calls",
        "usage": {"prompt_tokens": 3, "completion_tokens": None},
        "logprobs": [("4", -0.5), ("!", -1.0, {"?": -2.0})],
    }
    assert once(serve(lambda messages: said)) == Completion(
        "4",
        "two and two",
        (ToolCall("c", "f", '{"x":1}'),),
        "tool_calls",
        Usage(1, 3, 0, unpriced=1),
        (TokenLogprob("4", -0.5), TokenLogprob("!", -1.0, (("?", -2.0),))),
    )


def test_an_answer_with_tool_calls_ends_by_them_unless_it_says_otherwise(serve: Serve, once: Once) -> None:
    said = {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}]}
    assert once(serve(lambda _: said)).finish_reason == "tool_calls"
    assert once(serve(lambda _: {**said, "finish_reason": "length"})).finish_reason == "length"
    assert once(serve(lambda _: {"content": "x", "tool_calls": []})).finish_reason == "stop"


def test_cached_and_reasoning_tokens_that_it_states_are_read(serve: Serve, once: Once) -> None:
    stated = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    completion = once(serve(lambda messages: {"content": "4", "usage": stated}))
    assert completion.usage == Usage(1, 10, 5, cached_tokens=8, reasoning_tokens=3, unpriced=1)


def test_what_an_application_returns_beside_its_answer_are_facts_in_plain_data(serve: Serve, once: Once) -> None:
    said = {"content": "4", "role": "assistant", "passages": ("a", "b"), "found": {3}, 7: "seven"}
    facts = once(serve(lambda messages: said)).facts
    assert facts == {"passages": ["a", "b"], "found": [3], "7": "seven"}


def test_reasoning_in_tags_is_taken_out(serve: Serve, once: Once) -> None:
    completion = once(serve(lambda messages: "<think>hm</think>42"))
    assert (completion.text, completion.reasoning) == ("42", "hm")


@pytest.mark.parametrize(
    "said",
    [None, 42, ["a"], {"content": 42}, {"contnt": "a"}, {}, {"content": "a", "usage": "many"},
     {"content": "a", "tool_calls": [1]},
     {"content": "a", "usage": {"prompt_tokens": "x"}}, {"content": "a", "usage": {"prompt_tokens": float("inf")}},
     {"content": "a", "logprobs": ["ab", 3]}],
)  # fmt: skip
def test_what_is_no_answer_is_refused_and_shown(serve: Serve, once: Once, said: Any) -> None:
    with pytest.raises(RequestRefused, match=r"function:application:answer returned .*; it must return") as caught:
        once(serve(lambda messages: said))
    assert repr(said)[:20] in str(caught.value)


@pytest.mark.parametrize(
    "error", [ValueError("no"), StopIteration("end"), SystemExit(2), KeyError("k"), BaseException("odd")]
)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_whatever_it_raises_is_this_requests_error_and_nobody_waits_for_ever(
    serve: Serve, once: Once, error: BaseException, kind: str
) -> None:
    def sync(messages: Any) -> str:
        raise error

    async def asynchronous(messages: Any) -> str:
        raise error

    with pytest.raises(RequestRefused, match="function:application:answer raised ") as caught:
        once(serve(sync if kind == "sync" else asynchronous))
    # A coroutine cannot raise a StopIteration; Python makes a RuntimeError of it.
    assert type(error).__name__ in str(caught.value)


@pytest.mark.parametrize("error", [RateLimited("slow down", 3.0), Transient("busy")])
def test_what_it_raises_for_the_gateway_reaches_it(serve: Serve, once: Once, error: Exception) -> None:
    def answer(messages: Any) -> str:
        raise error

    with pytest.raises(type(error), match=str(error)):
        once(serve(answer))


def test_plain_functions_run_side_by_side_as_many_as_are_asked(serve: Serve) -> None:
    together = threading.Barrier(40, timeout=20)

    def answer(messages: Any) -> str:
        # Nobody passes before all forty are here.
        together.wait()
        return "together"

    async def main() -> list[Completion]:
        backend = serve(answer)
        asks = [backend.complete(Request("m", (Message("user", str(number)),))) for number in range(40)]
        try:
            return list(await asyncio.gather(*asks))
        finally:
            await backend.aclose()

    assert [completion.text for completion in asyncio.run(main())] == ["together"] * 40


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module_anywhere:f", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("json:no_such_function", "AttributeError: module 'json' has no attribute 'no_such_function'"),
        ("json", "names no function in a module; write function:package.module:name"),
        ("", "names no function in a module"),
        ("..:f", "write function:package.module:name"),
        ("json:decoder", "is module, not a function"),
    ],
)
def test_a_function_that_is_not_there_is_said_to_be_missing(once: Once, target: str, words: str) -> None:
    backend = FunctionBackend(target)
    for attempt in (backend.check, lambda: once(backend)):
        with pytest.raises(BackendUnavailable, match=words):
            attempt()


def test_a_module_that_fails_on_import_is_said_to_fail(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "crooked_application.py").write_text("raise RuntimeError('no config')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BackendUnavailable, match="RuntimeError: no config"):
        FunctionBackend("crooked_application:f").check()
