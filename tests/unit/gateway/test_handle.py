"""A model as one case sees it."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.types import Completion, Message, Request, ToolCall, Usage
from evalsuite.gateway.handle import ModelHandle, UsageMeter, convert_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping


class Asker:
    """Keeps what it is asked."""

    def __init__(self) -> None:
        self.heard: list[Request] = []

    async def ask(self, request: Request) -> Completion:
        self.heard.append(request)
        return Completion("said", usage=Usage(1, 2, 3, 0.5))


def ask(handle: ModelHandle, *args: Any, **more: Any) -> Request:
    asyncio.run(handle.chat(*args, **more))
    asker = handle._asker
    assert isinstance(asker, Asker)
    return asker.heard[-1]


def test_a_text_is_a_message_of_the_users() -> None:
    assert convert_prompt("hello") == (Message("user", "hello"),)


def test_a_conversation_may_be_of_messages_or_of_plain_objects() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    given: list[Message | Mapping[str, Any]] = [
        Message("system", "be brief"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "4", "tool_call_id": "1"},
    ]
    assert convert_prompt(given) == (
        Message("system", "be brief"),
        Message("assistant", "", (ToolCall("1", "f", "{}"),)),
        Message("tool", "4", tool_call_id="1"),
    )


def test_a_request_bears_model_address_epoch_parameters_and_tools() -> None:
    handle = ModelHandle(Asker(), "m", "http://h", 3)
    request = ask(handle, "hello", tools=[{"name": "f"}], max_tokens=5, seed=None)
    assert request == Request(
        "m", (Message("user", "hello"),), {"max_tokens": 5, "seed": None}, ({"name": "f"},), "http://h", 3
    )


def test_what_the_user_sets_for_the_run_goes_over_what_a_benchmark_asks_for() -> None:
    handle = ModelHandle(Asker(), "m", overrides={"temperature": 1, "top_p": 0.5})
    assert ask(handle, "x", temperature=0, max_tokens=5).params == {"temperature": 1, "top_p": 0.5, "max_tokens": 5}


def test_usage_is_counted_over_all_models_that_a_case_asks() -> None:
    meter = UsageMeter()
    handle = ModelHandle(Asker(), "m", meter=meter)
    ask(handle, "1")
    ask(handle.peer("judge"), "2")
    ask(handle.peer("judge").peer("m"), "3")
    assert meter.usage == handle.meter.usage == Usage(3, 6, 9, 1.5)


def test_the_cost_of_parallel_calls_does_not_depend_on_the_order_in_which_they_end() -> None:
    usages = []
    for costs in itertools.permutations((0.1, 0.2, 0.3)):
        meter = UsageMeter()
        for cost in costs:
            meter.add_usage(Usage(1, 10, 5, cost))
        usages.append(meter.usage)
    assert set(usages) == {Usage(3, 30, 15, 0.6)}


@pytest.mark.parametrize(
    ("name", "base_url", "epoch", "expected"),
    [
        # The same model by its name alone is asked where, and with what, it is asked by the case.
        ("m", None, None, ("m", "http://h", 2, {"temperature": 1})),
        ("other", None, None, ("other", None, 2, {})),
        ("other", "http://o", None, ("other", "http://o", 2, {})),
        ("m", "http://o", None, ("m", "http://o", 2, {})),
        ("other", None, 1, ("other", None, 1, {})),
    ],
)
def test_another_model_is_asked_at_its_own_place_and_without_the_first_ones_parameters(
    name: str, base_url: str | None, epoch: int | None, expected: tuple[Any, ...]
) -> None:
    handle = ModelHandle(Asker(), "m", "http://h", 2, {"temperature": 1})
    request = ask(handle.peer(name, base_url, epoch=epoch), "x")
    assert (request.model, request.base_url, request.epoch, request.params) == expected
