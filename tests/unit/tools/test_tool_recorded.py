"""Recorded tools: what an earlier run holds, and nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import RunError, ToolError
from evalsuite.core.types import Sample
from evalsuite.tools.execution import ToolDocument, ToolFailure
from evalsuite.tools.simulated import RECORDS, RecordedExecutor, Recording

if TYPE_CHECKING:
    from pathlib import Path

WEATHER = ToolDocument("weather", "Tells the weather.", {}, "Weather/One")
NOBODY: Any = None
COAT = "Shall I take a coat?"


def call(tool: str, arguments: dict[str, Any], observation: str, **more: Any) -> dict[str, Any]:
    event = {"kind": "call", "tool": tool, "origin": "Weather/One", "arguments": arguments, "turn": 1}
    return {**event, "observation": observation, "executor": "simulated", "failed": False, **more}


def run_with(tmp_path: Path, *events: dict[str, Any]) -> Path:
    records = [
        {"input": COAT, "transcript": None},
        {"input": COAT, "transcript": {"events": [{"kind": "turn"}, *events]}},
    ]
    (tmp_path / RECORDS).write_text("".join(json.dumps(record) + "\n" for record in records))
    return tmp_path


def observe(run: Path, document: ToolDocument = WEATHER, **arguments: Any) -> str:
    return asyncio.run(RecordedExecutor(Recording(run), COAT).run_tool(document, arguments, NOBODY))


def test_a_recorded_call_gives_what_it_gave_whatever_the_order_of_its_arguments(tmp_path: Path) -> None:
    run = run_with(tmp_path, call("weather", {"day": 1, "town": "Lima"}, "sunny"))
    assert observe(run, town="Lima", day=1) == "sunny"


def counter(tmp_path: Path) -> Path:
    """A recording of a tool with state: what it returns depends on the calls before it."""
    return run_with(
        tmp_path,
        call("weather", {}, "1"),
        call("weather", {"add": 1}, "done"),
        call("weather", {}, "2"),
        call("weather", {"add": 5}, "done"),
        call("weather", {}, "7"),
    )


async def episode(run: Path, request: str, *calls: dict[str, Any]) -> list[str]:
    executor = RecordedExecutor(Recording(run), request)
    return [await executor.run_tool(WEATHER, arguments, NOBODY) for arguments in calls]


def test_tools_with_state_give_what_they_gave_after_the_same_calls(tmp_path: Path) -> None:
    run = counter(tmp_path)
    add = {"add": 1}
    assert asyncio.run(episode(run, COAT, {}, add, {}, {"add": 5}, {})) == ["1", "done", "2", "done", "7"]
    # A further episode begins anew.
    assert asyncio.run(episode(run, COAT, {}, add)) == ["1", "done"]


def test_a_call_that_depends_on_what_went_before_is_never_guessed(tmp_path: Path) -> None:
    run = counter(tmp_path)
    # This one is the same wherever it was made.
    assert asyncio.run(episode(run, "Another request", {"add": 1})) == ["done"]
    for request, calls in ((COAT, [{"add": 1}, {}]), ("Another request", [{}])):
        with pytest.raises(ToolError, match="3 different results of the call"):
            asyncio.run(episode(run, request, *calls))


def test_a_call_that_failed_fails_again(tmp_path: Path) -> None:
    run = run_with(tmp_path, call("weather", {}, "Error: no town", failed=True))
    with pytest.raises(ToolFailure, match=r"^no town$"):
        observe(run)


def test_a_call_outside_the_recording_is_an_error(tmp_path: Path) -> None:
    run = run_with(
        tmp_path,
        call("weather", {"town": "Lima"}, "sunny", origin="Weather/Two"),
        call("weather", {"town": "Oslo"}, "Error: no parameter", executor=""),
    )
    for town in ("Lima", "Oslo"):
        with pytest.raises(ToolError, match=rf"does not hold the call .*{town}"):
            observe(run, town=town)


def test_a_recorded_user_repeats_what_was_said_about_the_same_request(tmp_path: Path) -> None:
    run = run_with(tmp_path, call("ask_to_user", {"question": "Where?"}, "In Lima."))
    user = Recording(run)
    same, other = Sample(id="a", input=COAT), Sample(id="b", input="Shall I go?")
    assert asyncio.run(user.reply(same, "Where?", [], NOBODY)) == "In Lima."
    with pytest.raises(ToolError, match="Where"):
        asyncio.run(user.reply(other, "Where?", [], NOBODY))


def test_a_folder_without_records_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=rf"{RECORDS}: No such file"):
        observe(tmp_path)


@pytest.mark.parametrize("content", [b"{", b"[]\n", b'{"transcript": {"events": [{"kind": "call"}]}}\n', b"\xff\xfe"])
def test_records_that_are_damaged_are_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / RECORDS).write_bytes(content)
    with pytest.raises(RunError, match="not records of a run"):
        observe(tmp_path)
