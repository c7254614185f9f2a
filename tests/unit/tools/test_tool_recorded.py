"""Recorded tools: what an earlier run holds, and nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.errors import RunError, ToolError
from evalsuite.tools.documents import ToolDocument
from evalsuite.tools.execution import ToolFailure
from evalsuite.tools.recorded import RECORDS, Recorded, RecordedUser, Recording
from evalsuite.types import Sample

if TYPE_CHECKING:
    from pathlib import Path

WEATHER = ToolDocument("weather", "Tells the weather.", {}, "Weather/One")
NOBODY: Any = None


def call(tool: str, arguments: dict[str, Any], observation: str, **more: Any) -> dict[str, Any]:
    event = {"kind": "call", "tool": tool, "origin": "Weather/One", "arguments": arguments, "turn": 1}
    return {**event, "observation": observation, "executor": "simulated", "failed": False, **more}


def run_with(tmp_path: Path, *events: dict[str, Any]) -> Path:
    records = [
        {"input": "Shall I take a coat?", "transcript": None},
        {"input": "Shall I take a coat?", "transcript": {"events": [{"kind": "turn"}, *events]}},
    ]
    (tmp_path / RECORDS).write_text("".join(json.dumps(record) + "\n" for record in records))
    return tmp_path


def observe(run: Path, document: ToolDocument = WEATHER, **arguments: Any) -> str:
    return asyncio.run(Recorded(Recording(run)).run(document, arguments, NOBODY))


def test_a_recorded_call_gives_its_first_observation(tmp_path: Path) -> None:
    run = run_with(
        tmp_path,
        call("weather", {"town": "Lima", "day": 1}, "sunny"),
        call("weather", {"day": 1, "town": "Lima"}, "rain"),
    )
    assert observe(run, town="Lima", day=1) == "sunny"


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
        with pytest.raises(ToolError, match=rf"does not hold the call.*{town}"):
            observe(run, town=town)


def test_a_recorded_user_repeats_what_was_said_about_the_same_request(tmp_path: Path) -> None:
    run = run_with(tmp_path, call("ask_to_user", {"question": "Where?"}, "In Lima."))
    user = RecordedUser(Recording(run))
    same, other = Sample(id="a", input="Shall I take a coat?"), Sample(id="b", input="Shall I go?")
    assert asyncio.run(user.reply(same, "Where?", [], NOBODY)) == "In Lima."
    with pytest.raises(ToolError, match="Where"):
        asyncio.run(user.reply(other, "Where?", [], NOBODY))


def test_a_folder_without_records_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=rf"{RECORDS}: No such file"):
        observe(tmp_path)


@pytest.mark.parametrize(
    "content", [b"{", b"[]\n", b'{"transcript": {"events": [{"kind": "call"}]}}\n', b"\xff\xfe"]
)
def test_records_that_are_damaged_are_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / RECORDS).write_bytes(content)
    with pytest.raises(RunError, match="no records of a run"):
        observe(tmp_path)
