"""When two cells hold the same value, and whether a text holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.metrics.tables.cells import (
    LOOK_ALIKE,
    SearchedText,
    compare_cells,
    is_blank,
    normalise_cell,
    read_cell_value,
)

if TYPE_CHECKING:
    from decimal import Decimal

CELLS = st.text(max_size=30)
WORDS = st.text(st.sampled_from("abcdefgh"), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("50", "50.0%"),
        ("12", "12:00"),
        ("12", "12.0"),
        ("50", "fifty"),
        ("24", "twenty-four"),
        ("1,250", "1250"),
        ("1,234,567.50", "1234567.5"),
        ("1 234 567.50", "1,234,567.5"),
        ("$1\u2019250", "1250"),
        ("$6.50", "6.5"),
        ("7:05", "07:05"),
        ("7:05", "07:05:00"),
        ("-5", "\u22125"),
        ("-5", "\u20135"),
        ("-5", "minus 5"),
        ("-$5", "$-5"),
        ("+5", "5"),
        ("-0", "0"),
        (".5", "0.50"),
        ("007", "7"),
        ("Ann  Lee", "ann lee"),
        ("Ann Lee", "Ann, Lee."),
        ("Zo\u00eb", "Zoe\u0308"),
        ("A\u2212", "a-"),
        ("24-17", "24 17"),
        ("", "n/a"),
        ("-", "\u2014"),
    ],
)
def test_the_same_value_in_another_form_is_the_same(one: str, other: str) -> None:
    assert read_cell_value(one) == read_cell_value(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5", "-5"),
        ("50", "5"),
        ("0.5", "50%"),
        ("12:30", "12"),
        ("12:30", "1230"),
        ("1:02:33", "1:02"),
        ("3,4,5", "345"),
        ("2008 204", "2008204"),
        ("3 1000", "31000"),
        ("1 000 0", "10000"),
        ("1,2345", "12345"),
        ("24-17", "24"),
        ("5 kg", "5 lb"),
        ("A+", "A-"),
        ("A", "A+"),
        ("C", "C++"),
        ("5", "<5"),
        ("\u2264 5", "\u2265 5"),
        ("Ann", "Anna"),
        ("seventy-ones", "71"),
        ("11111111111111111111111111111111111", "11111111111111111111111111111111112"),
        ("0", ""),
    ],
)
def test_other_values_are_told_apart(one: str, other: str) -> None:
    assert read_cell_value(one) != read_cell_value(other)


@pytest.mark.parametrize("cell", ["", "  ", "-", "--", "\u2013", " N/A ", "None", "NaN", "?"])
def test_what_says_nothing_is_blank(cell: str) -> None:
    assert is_blank(cell)
    assert read_cell_value(cell) == ""


@pytest.mark.parametrize("cell", ["0", "no", "-5", "no one", "*", "\u2713"])
def test_what_says_something_is_not_blank(cell: str) -> None:
    assert not is_blank(cell)


def test_form_is_the_writing_apart_from_white_space() -> None:
    assert compare_cells(" Ann \n Lee ", "Ann Lee") == "same"
    assert compare_cells("Ann Lee", "ann lee") == "other form"
    assert compare_cells("50.0", "50") == "other form"


@pytest.mark.parametrize(
    ("cell", "held"),
    [
        ("24", True),
        ("24.0", True),
        ("9", True),
        ("1240", True),
        ("7:30", True),
        ("12:00", True),
        ("-3.5", True),
        ("minus 3.5", True),
        ("3.5", False),
        ("A2", True),
        ("Ina Voss", True),
        ("ina", True),
        ("Voss Ina", False),
        ("In", False),
        ("8", False),
        ("4", False),
        ("30", False),
        ("twenty", False),
        ("", True),
        ("-", True),
        ("\u2713", True),
    ],
)
def test_a_text_holds_whole_words_and_numbers_in_their_order(cell: str, held: bool) -> None:  # noqa: FBT001
    text = SearchedText(
        "INA Voss, shelf A2: twenty-four candles and nine lamps, at 07:30 and 12, at 1,240 m, -3.5 degrees."
    )
    assert text.contains_value(cell) == held


@given(CELLS)
def test_a_text_holds_what_it_is(text: str) -> None:
    assert SearchedText(text).contains_value(text)


@given(WORDS, WORDS, WORDS)
def test_a_text_holds_its_words_whatever_stands_around_them(before: str, word: str, after: str) -> None:
    assert SearchedText(f"{before} {word}, {after}.").contains_value(word.upper())


@given(st.integers(0, 10**12), st.integers(1, 4))
def test_separators_trailing_zeros_and_signs_of_currency_do_not_change_a_number(number: int, zeros: int) -> None:
    assert (
        read_cell_value(f"{number:,}")
        == read_cell_value(f"${number}.{'0' * zeros}")
        == read_cell_value(f"{number}%")
        == str(number)
    )


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_whole_numbers_are_equal_only_to_themselves(one: int, other: int) -> None:
    assert (read_cell_value(f"{one:,}") == read_cell_value(str(other))) == (one == other)


@given(st.integers(1, 23), st.integers(0, 59))
def test_a_time_equals_a_number_only_on_the_hour(hour: int, minute: int) -> None:
    assert (read_cell_value(f"{hour:02}:{minute:02}") == read_cell_value(str(hour))) == (minute == 0)


def test_thousands_are_parted_by_fixed_spaces_in_a_text_and_by_any_in_a_cell() -> None:
    text = SearchedText("The 5\u202f400 crowns were won in lane 7 100 m ahead.")
    assert all(text.contains_value(cell) for cell in ("5,400", "5 400", "7", "100", "7 100"))
    assert not any(text.contains_value(cell) for cell in ("5", "400", "7,100"))
    assert SearchedText("x1\u202f000").contains_value("x1\u202f000")


@given(st.decimals(0, 10**6, places=2), st.sampled_from(["$%s$", r"\(%s\)", r"\mathbf { %s }", r"$\mathrm{%s}$"]))
def test_spaces_within_a_number_of_a_formula_do_not_matter(number: Decimal, formula: str) -> None:
    assert normalise_cell(formula % " ".join(f"{number:,}")) == normalise_cell(str(number))


def test_numbers_beside_each_other_stay_apart_outside_of_formulas() -> None:
    assert normalise_cell("1 2") != normalise_cell("12")
    assert normalise_cell("$1$ $2$") != normalise_cell("12")


@pytest.mark.parametrize("group", LOOK_ALIKE)
def test_symbols_that_look_alike_have_one_value(group: str) -> None:
    assert len({normalise_cell(f"{char} b") for char in group}) == 1
    assert len({normalise_cell(char) for char in group}) == 1


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (r"$\hat{y}$", "y\u0302"),
        (r"$\bar x$", "x\u0304"),
        (r"\'{e}", "\u00e9"),
        ("$1 0 ^ { 3 }$", "10^3"),
        ("$- 0 . 5$", "-0.5"),
    ],
)
def test_accents_and_scripts_of_formulas_are_kept(formula: str, text: str) -> None:
    assert normalise_cell(formula) == normalise_cell(text)
