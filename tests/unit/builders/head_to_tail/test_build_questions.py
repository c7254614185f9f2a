from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.builders.head_to_tail.questions import distinct, gives_away, is_fit, is_textual


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who directed Alfred Stone's Tale?", "Alfred Stone"),
        ("Who wrote THE BIG BOOK?", "the big book"),
        ("Where is the café of Ole?", "Cafe"),
        ('In which year did the film "1984" come out?', 1984),
        ("Which company made Disneyland?", "Disney"),
        ("Who is J. R. R. Tolkien?", "J R R Tolkien"),
    ],
)
def test_a_question_that_contains_its_answer_gives_it_away(question: str, answer: str | int) -> None:
    assert gives_away(question, [answer])
    assert not is_fit(question, [answer])


def test_one_given_answer_of_several_is_enough_to_leave_a_question_out() -> None:
    assert not is_fit("Who sang on Abba Gold?", ["Agnetha Fältskog", "ABBA"])


def test_a_question_without_its_answer_is_fit() -> None:
    assert is_fit("Who directed Tale?", ["Alfred Stone"])
    assert is_fit('In which year did the film "1984" come out?', [1985])


@given(st.text(min_size=1, max_size=12), st.text(max_size=12), st.text(max_size=12))
@settings(max_examples=100)
def test_no_question_that_holds_an_answer_word_for_word_is_fit(answer: str, before: str, after: str) -> None:
    assert not is_fit(before + answer + after, [answer])


def test_an_answer_must_be_text() -> None:
    assert is_textual("7")
    assert is_textual("東京")
    assert not is_textual("...")
    assert not is_textual("https://example.org/picture.png")
    assert not is_textual("www.example.org")
    assert not is_fit("What is it?", ["http://example.org"])


def test_a_question_with_no_answer_or_with_too_many_is_not_asked() -> None:
    assert not is_fit("What?", [])
    assert is_fit("What?", [f"answer {n}" for n in range(12)])
    assert not is_fit("What?", [f"answer {n}" for n in range(13)])


def test_answers_stand_once_each_without_gaps_and_blanks() -> None:
    assert distinct(["b", None, "a", "b", "", " a  b ", 3, 3]) == ("b", "a", "a b", 3)
