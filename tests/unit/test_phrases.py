"""Counts have the right noun; every way to shorten a text keeps short texts and marks what is cut from long ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.core.errors import (
    shorten_line,
    shorten_to_beginning,
    shorten_to_ending,
    shorten_to_ends,
    shorten_with_note,
    write_count,
)

if TYPE_CHECKING:
    from collections.abc import Callable

WAYS = (shorten_to_beginning, shorten_with_note, shorten_to_ends, shorten_to_ending, shorten_line)


@pytest.mark.parametrize("shorten", WAYS)
@given(st.text(max_size=60), st.integers(0, 60))
def test_a_text_that_fits_is_not_changed_and_a_longer_one_is(
    shorten: Callable[[str, int], str], text: str, longest: int
) -> None:
    assert (shorten(text, longest) == text) == (len(text) <= longest)


@pytest.mark.parametrize("shorten", [shorten_to_beginning, shorten_with_note, shorten_line])
@given(st.text(max_size=300), st.integers(5, 120))
def test_a_shortened_text_fits_and_is_not_shortened_again(
    shorten: Callable[[str, int], str], text: str, longest: int
) -> None:
    once = shorten(text, longest)
    assert len(once) <= longest
    assert shorten(once, longest) == once


def test_the_mark_stands_where_something_is_missing() -> None:
    assert shorten_to_beginning("abcdefghij", 8) == "abcd ..."
    assert shorten_to_ending("abcdefghij", 4) == "...ghij"
    assert shorten_line("abcdefghijklmnop", 11) == "abc ... nop"


def test_a_cut_says_how_long_the_whole_is() -> None:
    assert shorten_with_note("x" * 5000, 100).endswith(" [cut: 5,000 characters in all]")


@given(st.text(max_size=60), st.integers(0, 50))
def test_both_ends_of_a_text_stand_around_the_number_of_characters_left_out(text: str, longest: int) -> None:
    if len(text) > longest:
        head, left, tail = longest * 2 // 3, len(text) - longest * 2 // 3 - longest // 3, longest // 3
        shown = f"{text[:head]}\n[... {left:,} characters ...]\n{text[len(text) - tail :]}"
        assert shorten_to_ends(text, longest) == shown


def test_one_thing_is_singular_and_all_other_numbers_are_plural() -> None:
    assert [write_count(count, "case") for count in (0, 1, 2000)] == ["0 cases", "1 case", "2,000 cases"]
