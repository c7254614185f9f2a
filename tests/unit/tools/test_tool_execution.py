"""The executor `python`, and what an observation looks like."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest

from evalsuite.core.errors import ToolError
from evalsuite.tools import tool
from evalsuite.tools.execution import ToolFailure, convert_to_text

NOBODY: Any = None


def run(declared: Any, **arguments: Any) -> Any:
    return asyncio.run(declared.executor.run_tool(declared.document, arguments, NOBODY))


@tool
def divide(a: float, b: float) -> float:
    """Divides."""
    return a / b


@tool
async def wait(seconds: float) -> str:
    """Waits."""
    await asyncio.sleep(seconds)
    return "done"


@tool
def leave() -> None:
    """Tries to end the process."""
    sys.exit(3)


@tool
def where() -> str:
    """Says which thread it runs in."""
    return threading.current_thread().name


@tool
def ask() -> None:
    """Uses evalsuite, which fails."""
    raise ToolError("no recording")


def test_plain_and_async_functions_are_run() -> None:
    assert run(divide, a=1, b=4) == 0.25
    assert run(wait, seconds=0) == "done"


def test_a_plain_function_does_not_hold_up_the_event_loop() -> None:
    assert run(where) != threading.current_thread().name


def test_whatever_a_tool_raises_is_a_failure_that_the_model_reads() -> None:
    with pytest.raises(ToolFailure, match="ZeroDivisionError: division by zero"):
        run(divide, a=1, b=0)
    with pytest.raises(ToolFailure, match="SystemExit: 3"):
        run(leave)


class Unreadable(Exception):  # noqa: N818 - a hostile tool's
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "raised", [StopIteration, StopAsyncIteration, KeyboardInterrupt, asyncio.CancelledError, Unreadable]
)
def test_not_even_a_hostile_tool_ends_more_than_its_own_call(raised: type[BaseException]) -> None:
    @tool
    def plain() -> None:
        """Fails."""
        raise raised

    @tool
    async def asynchronous() -> None:
        """Fails."""
        raise raised

    for hostile in (plain, asynchronous):
        with pytest.raises(ToolFailure):
            run(hostile)


def test_an_error_of_the_run_is_not_turned_into_an_observation() -> None:
    with pytest.raises(ToolError, match="no recording"):
        run(ask)


def test_results_become_text() -> None:
    assert convert_to_text("plain\n") == "plain\n"
    assert convert_to_text({"a": [1, None, "é"]}) == '{"a": [1, null, "é"]}'
    assert convert_to_text({"what": b"x"}) == '{"what": "b\'x\'"}'
    assert convert_to_text({"seen": {"c", "a", "b"}}) == '{"seen": ["a", "b", "c"]}'
    assert convert_to_text("") == ""
    assert convert_to_text("\ud800") == "?"


def test_a_result_that_cannot_be_written_is_a_failure() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for result in (endless, {("a", "b"): 1}):
        with pytest.raises(ToolFailure, match="cannot be written"):
            convert_to_text(result)
