"""Numbers are equal however they are written; what is no number equals nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.metrics.numbers import numeric_match, parse_number


@pytest.mark.parametrize(
    ("prediction", "target"),
    [
        ("42", 42),
        ("42.00", 42.0),
        (42.0, "42"),
        (" 42. ", 42),
        ("+.5", 0.5),
        ("1,234", 1234),
        ("1,234,567.80", "1234567.8"),
        ("1\u202f234", 1234),
        ("-5", -5),
        ("\u22125", -5),
        ("\u20135", -5),
        ("1.5e3", 1500),
        ("1.5E-2", 0.015),
        ("1.5 \u00d7 10^3", 1500),
        ("$1,234.50", 1234.5),
        ("-$5", -5),
        ("$-5", -5),
        ("5 \u20ac", "5"),
        ("\uff14\uff12", 42),
        ("\uff11\uff0c\uff12\uff13\uff14\uff0e\uff15", 1234.5),
        ("\u0664\u0662", 42),
        (" 12.5% ", "12.5%"),
        ("12.5", "12.5 %"),
        ("\uff11\uff12\uff05", "12%"),
        ("0.30000000000000004", 0.3),
        (np.int64(42), np.float64(42.0)),
        ("1e400", "1e400"),
    ],
)
def test_equal_numbers_match_however_they_are_written(prediction: Any, target: Any) -> None:
    assert numeric_match(prediction, target) == 1.0


@pytest.mark.parametrize(
    ("prediction", "target"),
    [
        ("42.1", 42),
        ("12.5%", 12.5),
        ("12.5%", 0.125),
        ("0.125", "12.5%"),
        ("$5", "12%"),
        ("$5", "\u20ac5"),
        ("12345678901234567", 12345678901234568),
        ("1e400", "1e399"),
        ("1e-400", 0),
        ("12,34", 1234),
        ("1234,567", 1234567),
        ("1.234,5", 1234.5),
        ("10\u00b2", 102),
        ("1/2", 0.5),
        ("--5", 5),
        ("-$-5", 5),
        ("$5$", 5),
        ("%5", "5%"),
        ("5 km", 5),
        ("about 5", 5),
        ("1 2", 12),
        ("1_000", 1000),
        ("0x10", 16),
    ],
)
def test_other_numbers_and_other_texts_do_not_match(prediction: Any, target: Any) -> None:
    assert numeric_match(prediction, target) == 0.0


@pytest.mark.parametrize(
    "nothing",
    ["", " ", "abc", "inf", "-Infinity", "nan", float("inf"), float("nan"), None, True, [1], "1e" + "9" * 30],
    ids=repr,
)
def test_what_is_no_finite_number_does_not_even_equal_itself(nothing: Any) -> None:
    assert numeric_match(nothing, nothing) == 0.0


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
@settings(deadline=None, max_examples=60)
def test_every_finite_number_equals_its_own_text(number: float) -> None:
    assert numeric_match(str(number), number) == 1.0


@given(st.integers(min_value=-(10**12), max_value=10**12))
@settings(deadline=None, max_examples=60)
def test_thousands_separators_change_nothing(number: int) -> None:
    assert numeric_match(f"{number:,}", number) == 1.0
    assert numeric_match(f"{number:,}.00", f"{number}") == 1.0


@given(st.text(max_size=20), st.text(max_size=20))
@settings(deadline=None, max_examples=60)
def test_any_two_texts_give_a_score_and_the_order_does_not_matter_without_units(one: str, other: str) -> None:
    scores = {numeric_match(one, other), numeric_match(other, one)}
    assert scores <= {0.0, 1.0}
    assert len(scores) == 1 or "%" in f"{one}{other}" or "\uff05" in f"{one}{other}"


def test_an_enormous_text_of_digits_is_read() -> None:
    assert numeric_match("7" * 100_000, "7" * 100_000) == 1.0


def test_the_value_of_a_percentage_is_the_number_before_its_sign() -> None:
    read = parse_number("12.5%")
    assert read is not None
    assert (read.value, read.unit) == (Decimal("12.5"), "%")
