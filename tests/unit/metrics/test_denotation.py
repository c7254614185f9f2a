"""Answers about tables by what they denote, against the rules of the official evaluators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalsuite.core.types import Sample, Transcript
from evalsuite.metrics.denotation import denotation_match
from evalsuite.scorers import denotation


@pytest.mark.parametrize(
    ("prediction", "target"),
    [
        ("Québec", "Quebec"),
        ("QUEBEC", "Quebec"),
        ("Anne-Marie", "Anne–Marie"),
        ("Boston (1st)", "Boston"),
        ("Boston", "Boston (United States)"),
        ("Boston[3]", "Boston"),
        ("Boston†", "Boston"),
        ('"Boston"', "Boston"),
        ("Boston.", "Boston"),
        ("1,234", "1234"),
        ("42.0", "42"),
        ("$1,200", "1200"),
        ("1,200 USD", "$1200"),
        ("12.5%", "12.5"),
        ("**12.5**", "12.5"),
        ("USD 1,200", "$1200"),
        ("2020-03", "March 2020"),
        ("12 km", "12"),
        ("Seven", "7"),
        ("12 km", "12km"),
        ("1\u00a0234\u202f567", "1234567"),
        ("1 234 km²", "1234 km2"),
        ("12 km²", "12"),
        ("12 sq km", "12 km²"),
        ("5 m²", "5 square metres"),
        ("12 percent", "12%"),
        ("12 per cent", "12 pct"),
        ("百分之十二", "12%"),
        ("1 dollar", "$1"),
        ("1 dollar", "1 US dollars"),
        ("1 euro", "1 euros"),
        ("3 pounds", "£3"),
        ("3 pounds", "3 lbs"),
        ("3 pounds", "3"),
        ("3 pounds sterling", "£3"),
        ("5元", "5 yuan"),
        ("1 kilometre", "1 km"),
        ("1.2 million", "1200000"),
        ("3万", "30000"),
        ("十二", "12"),
        ("一百零五", "105"),
        ("两万三千", "23000"),
        ("一亿三千万", "130000000"),
        ("二〇二一", "2021"),
        ("1.2万亿", "1200000000000"),
        ("10 m", "10"),
        ("$1.2M", "1200000"),
        ("2001,2002", ["2001", "2002"]),
        ("2024-02-29", "29 February 2024"),
        ("Feb 29, 2024", "February 29th, 2024"),
        ("2024/2/29", "2024-02-29"),
        ("29.02.2024", "2024-02-29"),
        ("2024年2月29日", "2024-02-29"),
        ("May 2011", "2011-05-xx"),
        ("六月五日", "June 5"),
        ("6月5日", "xxxx-06-05"),
        ("6月5号", "5 June"),
        ("二〇二四年十二月二十一日", "2024-12-21"),
        ("二零二四年六月", "June 2024"),
        ("Sept. 5, 2008", "5 September 2008"),
        ("July 4", "xxxx-07-04"),
        ("Yes", "True"),
        ("否", "no"),
        ("b\na", ["a", "b"]),
        ("b, a", ["a", "b"]),
        ("a and b", ["a", "b"]),
        ("a, b, and c", ["c", "b", "a"]),
        ("甲、乙", ["乙", "甲"]),
        ("甲，乙", ["甲", "乙"]),
        ('["b", 2]', ["2", "b"]),
        ("b | a", ["a", "b"]),
        ("- a\n- b", ["a", "b"]),
        ("1. a\n2. b", ["a", "b"]),
        ("1,200, 3", ["3", "1200"]),
        ("2, 2", ["2", "2"]),
        ('["a"]', "a"),
        ("[a, b]", ["a", "b"]),
        ("Oslo\nRome [2]", ["Oslo", "Rome"]),
        ("xx-07-04", "July 4"),
        ("Rome\t2,800\nOslo\t700", ["Oslo\t700.0", "Rome\t2800"]),
        ("12 km^2", "12 sq km"),
        ("12 m3", "12"),
    ],
)
def test_the_same_values_match_however_they_are_written(prediction: str, target: str | list[str]) -> None:
    assert denotation_match(prediction, target) == 1.0


@pytest.mark.parametrize(
    ("prediction", "target"),
    [
        ("Boston", "Austin"),
        ("12 km", "12 miles"),
        ("$5", "€5"),
        ("£3", "3 lb"),
        ("3 pounds", "$3"),
        ("3 pounds sterling", "3 lbs"),
        ("42", "42.1"),
        ("2011", "2011-05-xx"),
        ("May 5", "May 6"),
        ("marathon 2008", "March 2008"),
        ("Decade 2010", "December 2010"),
        ("Mayor 5", "May 5"),
        ("12 km²", "12 km"),
        ("1 234", "1"),
        ("12 percent", "12 km"),
        ("六月五日", "六月六日"),
        ("Yes", "No"),
        ("a", ["a", "b"]),
        ("a, b, c", ["a", "b"]),
        ("2", ["2", "2"]),
        ("a, a", ["a", "b"]),
        ("a, b", "a"),
        ("", "a"),
        ("1.2 million", "1.2"),
        ("not Boston", "Boston"),
        ("1970\nOslo", "1970"),
        ("Rome\t700\nOslo\t2800", ["Oslo\t700", "Rome\t2800"]),
        ("Oslo\t700", "Oslo\t700\t1"),
        ("5 or 2", "5"),
        ("4 and 3", "4"),
        ("2\u20133", "2"),
        ("1/3", "1"),
        ("12.3.2", "12.3"),
        ("5 x 3", "5"),
    ],
)
def test_other_values_do_not_match(prediction: str, target: str | list[str]) -> None:
    assert denotation_match(prediction, target) == 0.0


CITIES = ["Oslo", "Rome", "New York"]
NUMBERS = [1, 2, 30]


@pytest.mark.parametrize(
    "show", [list, tuple, set, np.array, pd.Series, pd.Index, lambda values: pd.Series(values).unique()]
)
def test_values_as_python_numpy_and_pandas_print_them_match(show: Any) -> None:
    for values in (CITIES, NUMBERS, CITIES[:1]):
        shown, target = show(values), list(map(str, values))
        assert denotation_match(str(shown), target[::-1])
        assert denotation_match(repr(shown), target)
        assert not denotation_match(str(show([*values[1:], values[0] * 2])), target)


def test_a_series_with_a_named_index_matches_by_its_values() -> None:
    series = pd.Series(CITIES, index=pd.Index([1, 2, 3], name="n"), name="city")
    assert denotation_match(str(series), CITIES)


def test_the_order_counts_where_the_question_asks_for_it() -> None:
    assert denotation_match("b, a", ["a", "b"], ordered=True) == 0.0
    assert denotation_match("a, b", ["a", "b"], ordered=True) == 1.0


@pytest.mark.parametrize(
    ("prediction", "target", "score"),
    [
        ("Oslo\noslo", "Oslo", 1.0),
        ("2, 2.0, 3", ["3", "2"], 1.0),
        ("2", ["2", "2"], 1.0),
        ("2\n3", ["2", "2"], 0.0),
        ("5 May 2011\n2011-05-05", "May 5, 2011", 1.0),
    ],
)
def test_repeated_values_count_once_where_the_set_says_so(prediction: str, target: Any, score: float) -> None:
    assert denotation_match(prediction, target, distinct=True) == score


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_can_be_compared_and_the_order_of_the_two_does_not_matter(one: str, other: str) -> None:
    assert denotation_match(one, other) in (0.0, 1.0)


@given(st.text(min_size=1, max_size=60).filter(str.strip))
@example("- 1")
@example("3. Liga")
def test_a_value_denotes_itself(value: str) -> None:
    assert denotation_match(value, value.strip()) == 1.0


def test_the_scorer_wants_every_value_of_the_target() -> None:
    sample = Sample("s", "Which cities?", target=["Oslo", "Rome"])
    assert denotation()(sample, Transcript("Rome, Oslo")) == {"denotation": 1.0}
    assert denotation()(sample, Transcript("Rome")) == {"denotation": 0.0}
