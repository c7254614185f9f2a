"""The ratio is difflib's to the last bit."""

from __future__ import annotations

import difflib
import random
from typing import TYPE_CHECKING

from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalsuite.metrics.tables.released import compute_matching_ratio

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


@st.composite
def edited(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """A sequence and a copy with insertions, deletions and replacements; around the length of 200 too."""
    kinds = draw(st.sampled_from([1, 2, 5, 40, 400]))
    dice = random.Random(draw(st.integers(0, 10**6)))
    reference = [str(dice.randrange(kinds)) for _ in range(draw(st.sampled_from([0, 3, 30, 199, 200, 420])))]
    prediction = list(reference)
    for _ in range(draw(st.integers(0, 30))):
        place = dice.randrange(len(prediction) + 1)
        prediction[place : place + dice.randrange(4)] = [str(dice.randrange(kinds)) for _ in range(dice.randrange(4))]
    return prediction, reference


def few_letters() -> SearchStrategy[list[str]]:
    return st.lists(st.sampled_from("abc"), max_size=30)


@settings(max_examples=60, deadline=None)
@given(pair=edited())
def test_the_ratio_of_an_edited_copy_is_difflibs(pair: tuple[list[str], list[str]]) -> None:
    prediction, reference = pair
    expected = difflib.SequenceMatcher(None, prediction, reference).ratio()
    assert compute_matching_ratio(prediction, reference) == expected


@settings(max_examples=60, deadline=None)
@given(few_letters(), few_letters())
def test_the_ratio_of_unlike_sequences_is_difflibs(prediction: list[str], reference: list[str]) -> None:
    expected = difflib.SequenceMatcher(None, prediction, reference).ratio()
    assert compute_matching_ratio(prediction, reference) == expected


@settings(max_examples=60, deadline=None)
@given(st.text("\x02\x03ab\U0001f600", max_size=300), st.text("\x02\x03ab\U0001f600", max_size=300))
@example("\x03", "\x02")  # Characters whose codes are as small as the number of characters.
def test_strings_are_compared_character_by_character(prediction: str, reference: str) -> None:
    expected = difflib.SequenceMatcher(None, prediction, reference).ratio()
    assert compute_matching_ratio(prediction, reference) == expected


def test_two_thousand_cells_with_every_second_one_changed_give_difflibs_ratio() -> None:
    reference = [f"cell {place}" for place in range(2000)]
    prediction = [cell if place % 2 else "?" for place, cell in enumerate(reference)]
    assert compute_matching_ratio(prediction, reference) == 0.5


def test_runs_of_all_lengths_in_a_long_sequence_are_matched_longest_first() -> None:
    dice = random.Random(5)
    reference = [str(dice.randrange(300)) for _ in range(1500)]
    prediction = list(reference)
    place = step = 0
    while place < len(prediction):
        prediction[place] = "?"
        step += 1
        place += step
    expected = difflib.SequenceMatcher(None, prediction, reference).ratio()
    assert compute_matching_ratio(prediction, reference) == expected


def test_sequences_that_differ_in_kind_only_are_alike() -> None:
    assert compute_matching_ratio(("a", "b"), ["a", "b"]) == 1.0
    assert compute_matching_ratio([], "") == 1.0
