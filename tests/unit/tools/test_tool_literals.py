"""Values read from what a model wrote: never evaluated, with the place where they end."""

from __future__ import annotations

import ast
import json
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.tools.arguments import MAX_DEPTH, read_value

# Half surrogates are kept out: JSON and Python pair them differently.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=8)


@given(JSON, TEXT)
def test_json_is_read_to_its_end_whatever_follows(value: Any, after: str) -> None:
    written = json.dumps(value)
    # A number would go on into digits that follow it; a space ends it.
    assert read_value(f"{written} {after}") == (value, len(written))


@given(JSON)
def test_what_python_writes_is_read_as_python_would_read_it(value: Any) -> None:
    written = repr(value)
    assert read_value(written) == (ast.literal_eval(written), len(written))


@given(st.text("{}[]():,'\"\\ \nabTrueNone0123456789.eE+-_xu", max_size=60))
@settings(max_examples=300)
def test_any_text_is_a_value_or_a_value_error_and_never_a_warning(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            value, end = read_value(text)
        except ValueError:
            return
    assert 0 < end <= len(text)
    json.dumps(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': (1, 2,), 'b': None}", {"a": [1, 2], "b": None}),
        ("{'a': (1), 'e': ()}", {"a": 1, "e": []}),
        ("{'it': 'it\\'s', \"n\": '\\x41\\u00e9\\n'}", {"it": "it's", "n": "Aé\n"}),
        ('{"a": """x"y"""}', {"a": 'x"y'}),
        ("{'a': true, 'b': False,}", {"a": True, "b": False}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ("{'a': -0.5e1, 'b': 1_000}", {"a": -5.0, "b": 1000}),
        # The escapes that models put before underscores stay, so that they can be counted.
        ("{'max\\_length': 3}", {"max\\_length": 3}),
        ('{"max\\_length": 3}', {"max\\_length": 3}),
    ],
)
def test_dicts_are_read_as_json_data(text: str, value: Any) -> None:
    assert read_value(text) == (value, len(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "word",
        "{'a' 1}",
        "{a: 1}",
        "{'a': 1",
        "{1: 2}",
        "{'a': 007}",
        "{'a': {1, 2}}",
        "{'a': 'never ends",
        "{'a': b'bytes'}",
        "{'a': f'{1}'}",
        "{'a': 1e999}",
        '{"a": NaN}',
        "{'a': __import__('os').system('true')}",
        "{'a': [x for x in (1, 2)]}",
        "{'a': '\\U00110000'}",
        '{"a": ' + "9" * 5000 + "}",
        "[" * 100_000,
        '{"a":' * 5_000,
    ],
)
def test_what_is_neither_json_nor_a_literal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_value(text)


def test_nesting_is_bounded_in_both_notations() -> None:
    for opening, closing in (("[", "]"), ("(", ",)")):
        deep = opening * (MAX_DEPTH + 2) + closing * (MAX_DEPTH + 2)
        with pytest.raises(ValueError, match="nested"):
            read_value(deep)
    level = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read_value(level)[1] == len(level)


def test_an_error_says_where_it_stands() -> None:
    with pytest.raises(ValueError, match=r"'oops}' at character 7 is neither a JSON value"):
        read_value("{'a': oops}")
