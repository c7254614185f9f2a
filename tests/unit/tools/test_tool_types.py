"""Types and schemas beyond plain JSON: what `@tool` takes, and documents from elsewhere."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel, Field

from evalsuite.core.errors import SettingsError, ToolError
from evalsuite.tools import ToolDocument, tool
from evalsuite.tools.execution import ToolFailure, convert_arguments

NOBODY: Any = None


class Kind(Enum):
    DAY = "day"
    NIGHT = "night"


@dataclass
class Place:
    city: str
    floor: int = 0


@tool(name="reserve", description="Reserves.", seconds=5)
def book(day: dt.date, place: Place, kind: Kind = Kind.DAY) -> str:
    """Books.

    Parameters
    ----------
    day : date
        which day.
    place
        where.
    """
    return f"{day.year} {place.city} {kind.name}"


def test_a_function_gets_values_of_the_types_that_it_declares() -> None:
    document = book.document
    assert (document.name, document.description) == ("reserve", "Reserves.")
    assert [schema.get("description") for schema in document.properties.values()][:2] == ["which day.", "where."]
    arguments, faults = convert_arguments(document, {"day": "2026-01-02", "place": {"city": "Oslo"}, "kind": "night"})
    assert not faults
    assert asyncio.run(book.executor.run_tool(document, arguments, NOBODY)) == "2026 Oslo NIGHT"


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({"a": None}, []),
        ({"a": "x", "p": {"n": 1}}, []),
        ({"a": 5, "p": {"n": "one"}}, ["wrong_type"]),
        ({"a": "x", "more": 1}, []),
        ({"a": "x", "more": "one"}, ["wrong_type"]),
        ({}, ["missing_parameter"]),
        ({"a": "x", "b": True, "p": {"n": 1}}, ["wrong_type"]),
    ],
)
def test_schemas_from_elsewhere_are_honoured_whole(arguments: dict[str, Any], faults: list[str]) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "boolean"}, "p": {"$ref": "#/$defs/P"}},
        "required": ["a"],
        "additionalProperties": {"type": "integer"},
        "not": {"required": ["b", "p"]},
        "$defs": {"P": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }
    checked, found = convert_arguments(ToolDocument("t", "T.", schema), arguments)
    assert [fault.kind for fault in found] == faults
    assert faults or checked == arguments


class Seat(BaseModel):
    row: int = Field(ge=1, description="counted from the front")
    letter: str = "A"


class Guest(TypedDict, total=False):
    name: str
    age: int


@tool
def seat(
    seats: Sequence[Seat],
    guest: Guest,
    at: dt.datetime,
    notes: Mapping[str, str] | None = None,
    weight: Annotated[float, Field(gt=0)] = 1.0,
    anything: Any = None,
) -> str:
    """Seats a guest.

    :param seats: where,
        each once.
    :param guest: who.
    :type guest: Guest
    :returns: a line.
    """
    return f"{seats[0].row}{seats[0].letter} {guest['name']} {at:%H:%M} {weight} {notes} {anything}"


SEATED = {"seats": [{"row": 3}], "guest": {"name": "Ada"}, "at": "2026-01-02T10:30:00"}


def test_sphinx_fields_are_read_and_types_of_pydantic_become_schemas() -> None:
    document = seat.document
    assert document.description == "Seats a guest."
    assert document.properties["seats"]["description"] == "where, each once."
    assert document.properties["guest"]["description"] == "who."
    assert document.required == ("seats", "guest", "at")
    assert document.follow_reference(document.properties["seats"]["items"])["properties"]["row"]["minimum"] == 1
    arguments, faults = convert_arguments(document, SEATED)
    assert not faults
    assert asyncio.run(seat.executor.run_tool(document, arguments, NOBODY)) == "3A Ada 10:30 1.0 None None"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seats": [{"row": 0}]}, "0 is less than the minimum of 1"),
        ({"seats": [{}]}, "'row' is a required property"),
        ({"guest": {"name": 5}}, "5 is not of type 'string'"),
        ({"weight": 0}, "0 is less than or equal to the minimum of 0"),
    ],
)
def test_values_that_a_type_does_not_take_are_faults(changed: dict[str, Any], words: str) -> None:
    _, faults = convert_arguments(seat.document, {**SEATED, **changed})
    assert [fault.kind for fault in faults] == ["wrong_type"]
    assert words in faults[0].words


def test_what_only_the_type_can_tell_is_a_failure_that_the_model_reads() -> None:
    arguments, faults = convert_arguments(seat.document, {**SEATED, "at": "tomorrow"})
    assert not faults
    with pytest.raises(ToolFailure, match="parameter 'at'"):
        asyncio.run(seat.executor.run_tool(seat.document, arguments, NOBODY))


ONE_OF = ToolDocument(
    "pay",
    "Pays.",
    {
        "type": "object",
        "properties": {
            "by": {"oneOf": [{"type": "string", "enum": ["cash"]}, {"$ref": "#/definitions/Card"}]},
            "tip": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["by"],
        "definitions": {"Card": {"type": "object", "properties": {"no": {"type": "string"}}, "required": ["no"]}},
    },
)


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({"by": "cash"}, []),
        ({"by": {"no": "5"}, "tip": None}, []),
        ({"by": {"no": 5}}, ["wrong_type"]),
        ({"by": "cheque"}, ["wrong_type"]),
        ({"by": "cash", "tip": "much"}, ["wrong_type"]),
        ({"by": "cash", "more": 1}, ["unknown_parameter"]),
    ],
)
def test_alternatives_and_references_within_them_are_honoured(arguments: dict[str, Any], faults: list[str]) -> None:
    assert [fault.kind for fault in convert_arguments(ONE_OF, arguments)[1]] == faults


def test_a_schema_from_elsewhere_cannot_make_this_machine_read_a_file(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text('{"type": "string"}', "utf-8")
    properties = {"a": {"$ref": (tmp_path / "text.json").as_uri()}, "b": {"pattern": "("}}
    document = ToolDocument("t", "T.", {"type": "object", "properties": properties})
    for arguments, words in (({"a": "x"}, r"tool 't' cannot be used: .*Unresolvable: file:"), ({"b": "x"}, "tool 't'")):
        with pytest.raises(ToolError, match=words):
            convert_arguments(document, arguments)


def test_a_type_that_no_schema_describes_is_refused_when_the_tool_is_declared() -> None:
    with pytest.raises(SettingsError, match="'key' has the type <class 'bytes'>, which JSON has not"):

        @tool
        def lock(key: bytes) -> None:
            """Locks."""


def test_null_reaches_a_parameter_that_may_be_none_and_has_another_default() -> None:
    """Only a parameter whose default is None takes null for a missing value."""

    @tool
    def search(limit: int | None, floor: int | None = 7, kind: int | str | None = "a", page: int | None = None) -> str:
        """Searches."""
        return f"{limit} {floor} {kind} {page}"

    given: dict[str, Any] = {"limit": None, "floor": None, "kind": None, "page": None}
    assert convert_arguments(search.document, given) == ({"limit": None, "floor": None, "kind": None}, ())
    assert str(convert_arguments(search.document, {"limit": "3", "floor": 4.0})) == "({'limit': 3, 'floor': 4}, ())"
    assert search.document.properties["page"] == {"type": "integer"}
