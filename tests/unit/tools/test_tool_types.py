"""Types and schemas beyond plain JSON: what `@tool` takes, and documents from elsewhere."""

from __future__ import annotations

import asyncio
import datetime as dt  # noqa: TC003 - the tool reads its annotations at run time
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from evalsuite.tools import ToolDocument, tool
from evalsuite.tools.arguments import check_arguments

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
    assert [schema.get("description") for schema in document.properties.values()][:2] == [
        "which day.",
        "where.",
    ]
    arguments, faults = check_arguments(
        document, {"day": "2026-01-02", "place": {"city": "Oslo"}, "kind": "night"}
    )
    assert not faults
    assert asyncio.run(book.executor.run(document, arguments, NOBODY)) == "2026 Oslo NIGHT"


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
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": "boolean"},
            "p": {"$ref": "#/$defs/P"},
        },
        "required": ["a"],
        "additionalProperties": {"type": "integer"},
        "not": {"required": ["b", "p"]},
        "$defs": {"P": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }
    checked, found = check_arguments(ToolDocument("t", "T.", schema), arguments)
    assert [fault.kind for fault in found] == faults
    assert faults or checked == arguments
