"""An episode's tools: by name, made anew, closed again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalsuite.core.errors import SettingsError
from evalsuite.core.types import Sample
from evalsuite.tools import Registry, tool
from evalsuite.tools.worlds import open_tools

NOBODY: Any = None
SAMPLE = Sample(id="s", input="hello")


@tool
def greet(name: str) -> str:
    """Greets."""
    return f"Hello, {name}"


class Notes:
    closed = 0

    def __init__(self, sample: Sample) -> None:
        self.notes = [str(sample.input)]

    @tool
    def add(self, note: str) -> list[str]:
        """Adds a note."""
        self.notes.append(note)
        return self.notes

    def close(self) -> None:
        Notes.closed += 1


class Closing:
    @tool
    def close(self) -> str:
        """A tool that happens to be called close."""
        raise AssertionError("a tool is not called for tidying up")


def test_an_unknown_tool_is_a_fault_that_lists_what_there_is() -> None:
    _, (fault,) = Registry([greet]).convert_call_arguments("gret", {})
    assert fault.kind == "unknown_tool"
    assert "'gret'" in fault.words
    assert "greet" in fault.words


def test_an_escaped_name_is_counted_apart() -> None:
    _, faults = Registry([greet]).convert_call_arguments("gr\\_eet", {"name": "Ada"})
    assert [fault.kind for fault in faults] == ["unknown_tool", "escaped_name"]


def test_the_first_of_two_tools_with_one_name_counts() -> None:
    class Other:
        @tool
        def greet(self) -> str:
            """Greets nobody."""
            return "Hello"

    registry = Registry([greet, Other().greet])
    assert [document.description for document in registry.documents] == ["Greets."]


async def used(source: Any, *notes: str, fail: bool = False) -> list[Any]:
    """What each call of the tool `add` in an episode of its own returns."""
    async with open_tools([greet, source], SAMPLE) as opened:
        add = opened.tools[1]
        results = [await add.executor.run_tool(add.document, {"note": note}, NOBODY) for note in notes]
        if fail:
            raise RuntimeError
    return results


def test_each_episode_has_objects_of_its_own_and_closes_them() -> None:
    before = Notes.closed
    assert asyncio.run(used(Notes, "x")) == [["hello", "x"]]
    assert asyncio.run(used(Notes, "y")) == [["hello", "y"]]
    assert Notes.closed == before + 2


def test_objects_are_closed_where_an_episode_fails() -> None:
    before = Notes.closed
    with pytest.raises(RuntimeError):
        asyncio.run(used(Notes, "x", fail=True))
    assert Notes.closed == before + 1


def test_no_object_is_made_where_no_tool_is_run() -> None:
    before = Notes.closed
    asyncio.run(used(Notes))
    assert Notes.closed == before


async def names(source: Any) -> list[str]:
    async with open_tools([source], SAMPLE) as opened:
        return [entry.document.name for entry in opened.tools]


def test_a_tool_called_close_is_not_mistaken_for_tidying_up() -> None:
    assert asyncio.run(names(lambda _: Closing())) == ["close"]


@pytest.mark.parametrize("made", [object(), [], ["text"], [greet, print]])
def test_what_holds_no_tools_is_refused(made: object) -> None:
    with pytest.raises(SettingsError, match="@tool"):
        asyncio.run(names(lambda _: made))
