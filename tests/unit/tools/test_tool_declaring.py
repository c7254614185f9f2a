"""`@tool`: documents from signatures and docstrings."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, Literal

import pytest

from evalsuite.core.errors import SettingsError
from evalsuite.tools import tool, tools_of
from evalsuite.tools.execution import list_tool_documents

if TYPE_CHECKING:
    from decimal import Decimal

    from evalsuite.core.protocols import Model

NOBODY: Any = None


@tool
def find_flights(
    start: str,
    stops: int = 0,
    price: float | None = None,
    *,
    days: list[str],
    fares: dict[str, float],
    kind: Literal["day", "night"] = "day",
    anything: int | str = 1,
) -> Decimal:
    """Finds flights
    of one day.

    More about it.

    Args:
        start: where to start from,
            in capital letters.
        stops (int): how many stops.
        days: which days.

    Returns:
        price: not a parameter.
    """
    raise NotImplementedError


def test_a_document_is_made_from_signature_and_docstring() -> None:
    assert find_flights.document.plain() == {
        "name": "find_flights",
        "description": "Finds flights of one day. More about it.",
        "parameters": {
            "type": "object",
            "properties": {
                "start": {"type": "string", "description": "where to start from, in capital letters."},
                "stops": {"type": "integer", "description": "how many stops.", "default": 0},
                "price": {"type": "number"},
                "days": {"type": "array", "items": {"type": "string"}, "description": "which days."},
                "fares": {"type": "object", "additionalProperties": {"type": "number"}},
                "kind": {"type": "string", "enum": ["day", "night"], "default": "day"},
                "anything": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 1},
            },
            "required": ["start", "days", "fares"],
        },
    }


def test_a_document_can_be_shown_as_a_few_lines_of_text() -> None:
    assert find_flights.document.text() == (
        "find_flights(start, stops, price, days, fares, kind, anything): "
        "Finds flights of one day. More about it.\n"
        "  start (string): where to start from, in capital letters.\n"
        "  stops (integer, default 0): how many stops.\n"
        "  price (number, optional)\n"
        '  days ({"type": "array", "items": {"type": "string"}}): which days.\n'
        '  fares ({"type": "object", "additionalProperties": {"type": "number"}})\n'
        '  kind ({"type": "string", "enum": ["day", "night"]}, default "day")\n'
        '  anything ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, default 1)'
    )


def test_a_documented_tool_is_an_entry_of_the_api_s_tools() -> None:
    entry = find_flights.document.openai()
    assert entry["type"] == "function"
    assert entry["function"] == find_flights.document.plain()


def test_a_decorated_function_can_still_be_called() -> None:
    @tool
    def double(number: int) -> int:
        """Doubles."""
        return 2 * number

    assert double(4) == 8
    assert double(number=5) == 10


class Counter:
    def __init__(self) -> None:
        self.count = 0

    @property
    def trap(self) -> int:
        raise AssertionError("properties are not read")

    @tool
    def add(self, amount: int) -> int:
        """Adds."""
        self.count += amount
        return self.count

    @tool
    async def show(self) -> int:
        """Shows."""
        return self.count


class Louder(Counter):
    @tool
    def shout(self) -> str:
        """Shouts."""
        return f"{self.count}!"


def test_methods_are_tools_of_their_own_object() -> None:
    one, other = Counter(), Counter()
    assert [one.add(3), one.add(4), other.add(1)] == [3, 7, 1]
    assert [bound.document.name for bound in tools_of(one)] == ["add", "show"]
    add, _ = tools_of(other)
    assert asyncio.run(add.executor.run_tool(add.document, {"amount": 5}, NOBODY)) == 6
    assert one.count == 7


def test_a_subclass_has_the_tools_of_its_base_first() -> None:
    assert [document.name for document in list_tool_documents(Louder)] == ["add", "show", "shout"]
    assert [bound.document.name for bound in tools_of(Louder())] == ["add", "show", "shout"]


def without_docstring(x: int) -> int:
    return x


def with_docstring(x: int) -> int:
    """Has all."""
    return x


def without_type(x) -> int:  # type: ignore[no-untyped-def] # noqa: ANN001 - what is refused
    """Has a parameter without a type."""
    return int(x)


def with_bytes(x: bytes) -> int:
    """Has a type that JSON has not."""
    return len(x)


def with_many(*x: int) -> int:
    """Has a parameter that cannot be named."""
    return len(x)


def with_hidden_type(x: Model) -> int:
    """Has a type that is known to type checkers alone."""
    return 0


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (without_docstring, "no docstring"),
        (without_type, "'x' has no type"),
        (with_bytes, "which JSON has not"),
        (with_many, "cannot be given by name"),
        (with_hidden_type, "importable at run time"),
        (staticmethod(without_docstring), "which is not a function"),
        (functools.partial(with_many), "which is not a function"),
        (3, "@tool was given 3, which is not a function"),
    ],
)
def test_a_function_that_no_document_can_describe_is_refused(function: Any, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        tool(function)


@pytest.mark.parametrize("seconds", [0, "5", float("nan")])
def test_a_time_limit_that_no_call_can_keep_is_refused(seconds: Any) -> None:
    with pytest.raises(SettingsError, match=f"seconds={seconds!r}"):
        tool(seconds=seconds)(with_docstring)


def test_a_tool_that_changes_its_arguments_does_not_change_the_call() -> None:
    @tool
    def extend(names: list[str]) -> int:
        """Adds a name."""
        names.append("Ada")
        return len(names)

    given = {"names": ["Bob"]}
    assert asyncio.run(extend.executor.run_tool(extend.document, given, None)) == 2  # type: ignore[arg-type]
    assert given == {"names": ["Bob"]}
