"""Arguments: parsed, brought to the documented types, checked against the document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.tools.arguments import MAX_CHARACTERS, parse_arguments
from evalsuite.tools.execution import ToolDocument, convert_arguments

DOCUMENT = ToolDocument(
    "search",
    "Searches.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "exact": {"type": "boolean"},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "order": {"type": "string", "enum": ["up", "down"]},
        },
        "required": ["query"],
    },
)


def kinds(arguments: dict[str, Any]) -> list[str]:
    return [fault.kind for fault in convert_arguments(DOCUMENT, arguments)[1]]


def test_arguments_are_parsed_with_what_follows_them() -> None:
    assert parse_arguments(' {"a": 1}\n\nObservation: 2 ') == ({"a": 1}, "Observation: 2")
    assert parse_arguments("{'a': 'b'}") == ({"a": "b"}, "")


@pytest.mark.parametrize("text", ["5", "[1]", "'text'", "", "```json\n{}\n```"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not an object|neither a JSON value"):
        parse_arguments(text)


def test_ten_megabytes_are_refused_before_they_are_read() -> None:
    with pytest.raises(ValueError, match=f"10000009 characters long, more than {MAX_CHARACTERS}"):
        parse_arguments('{"a": "' + "x" * 10_000_000 + '"}')


@pytest.mark.parametrize("digits", ["1" + "0" * 400, "-1" + "0" * 400, "1e999"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_number_too_large_for_a_float_is_refused(digits: str, quote: str) -> None:
    with pytest.raises(ValueError, match="is too large"):
        parse_arguments(f"{{{quote}a{quote}: {digits}}}")
    assert parse_arguments('{"a": 1' + "0" * 300 + "}")[0] == {"a": 10**300}


def test_half_a_surrogate_pair_is_refused_as_no_file_can_hold_it() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        parse_arguments('{"a": "\\ud800"}')
    assert parse_arguments('{"a": "\\ud83d\\ude00"}')[0] == {"a": "\U0001f600"}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"query": 42}, {"query": "42"}),
        ({"query": True}, {"query": "true"}),
        ({"query": ["a", 1]}, {"query": '["a", 1]'}),
        ({"query": "q", "count": "7"}, {"query": "q", "count": 7}),
        ({"query": "q", "count": 7.0}, {"query": "q", "count": 7}),
        ({"query": "q", "share": "0.5"}, {"query": "q", "share": 0.5}),
        ({"query": "q", "exact": "True"}, {"query": "q", "exact": True}),
        ({"query": "q", "sizes": ["1", 2]}, {"query": "q", "sizes": [1, 2]}),
        ({"query": "q", "count": None}, {"query": "q"}),
    ],
)
def test_values_are_brought_to_the_documented_type_where_nothing_is_lost(
    given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert convert_arguments(DOCUMENT, given) == (wanted, ())


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        ({}, ["missing_parameter"]),
        ({"query": "q", "limit": 3}, ["unknown_parameter"]),
        ({"limit": 3}, ["unknown_parameter", "missing_parameter"]),
        ({"query": None}, ["wrong_type"]),
        ({"query": "q", "count": 7.5}, ["wrong_type"]),
        ({"query": "q", "count": "many"}, ["wrong_type"]),
        ({"query": "q", "count": True}, ["wrong_type"]),
        ({"query": "q", "share": "inf"}, ["wrong_type"]),
        ({"query": "q", "order": "sideways"}, ["wrong_type"]),
        ({"query": "q", "sizes": [1, "x"]}, ["wrong_type"]),
        ({"query": "q", "the\\_count": 3}, ["unknown_parameter", "escaped_name"]),
    ],
)
def test_each_fault_of_a_call_is_named(given: dict[str, Any], faults: list[str]) -> None:
    assert kinds(given) == faults


def test_the_words_of_a_fault_stay_short_whatever_the_model_wrote() -> None:
    _, faults = convert_arguments(DOCUMENT, {"query": "q", "order": "x" * 90_000, "y" * 90_000: 1})
    assert {fault.kind for fault in faults} == {"unknown_parameter", "wrong_type"}
    assert all(len(fault.words) < 300 for fault in faults)


@given(st.dictionaries(st.text(max_size=8), st.none() | st.integers() | st.text(max_size=8), max_size=4))
def test_arguments_without_faults_are_what_the_schema_allows(arguments: dict[str, Any]) -> None:
    fitted, faults = convert_arguments(DOCUMENT, {"query": "q", **arguments})
    if not faults:
        assert set(fitted) <= set(DOCUMENT.properties)
        assert isinstance(fitted["query"], str)
        assert type(fitted.get("count", 0)) is int
