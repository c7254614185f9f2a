"""Counts with their nouns."""

from __future__ import annotations

from evalsuite.core.counted_nouns import number_of


def test_one_thing_is_singular_and_all_other_numbers_are_plural() -> None:
    assert [number_of(count, "case") for count in (0, 1, 2000)] == ["0 cases", "1 case", "2,000 cases"]
