from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.treb.solving import answer_in_words


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('```json\n{"thought": "two rows", "answer": "42"}\n```', "42"),
        ('I think {"thought": "a", "answer": 42} is right.', "42"),
        ('{"thought": "a", "answer": "first"} no: {"thought": "b", "answer": "second"}', "second"),
        ('{"thought": "a", "answer": "x"} and then {"note": "no answer here"}', "x"),
        ('{"thought": "braces { } and \\" quotes", "answer": "y"}', "y"),
        ('{"thought": "line\nbreak", "answer": "z"}', "z"),
        ('{"thought": "a", "answer": ["Lyon", "Porto", 3]}', "Lyon, Porto, 3"),
        ('{"thought": "a", "answer": true}', "true"),
        ('{"thought": "a", "answer": {"city": "里昂"}}', '{"city": "里昂"}'),
        ('{"answer": " padded "}', "padded"),
        (r'{"answer": "\\boxed{1{,}234}"}', "1,234"),
        (r'{"answer": "\boxed{\text{Paris}}"}', "Paris"),
        (r'{"answer": "$\boxed{12.5\%}$."}', "12.5%"),
        (r'{"thought": "a\nb", "answer": "12.5\%"}', r"12.5\%"),
        (r'{"answer": "\\boxed{1} or \\boxed{2}"}', r"\boxed{1} or \boxed{2}"),
        (r'{"answer": "two\nlines"}', "two\nlines"),
    ],
)
def test_the_last_json_object_with_an_answer_counts(text: str, answer: str) -> None:
    assert answer_in_words(text) == (answer, True)


@pytest.mark.parametrize(
    "text", ["just 42", '{"thought": "cut off', '["answer"]', "{answer: 42}", '{"answer"}', ""]
)
def test_without_such_an_object_the_text_is_the_answer(text: str) -> None:
    assert answer_in_words(f" {text}\n") == (text, False)


def test_a_box_around_a_whole_text_is_taken_off() -> None:
    assert answer_in_words(r"$\boxed{5}$") == ("5", False)
    assert answer_in_words(r"It is \boxed{5}.") == (r"It is \boxed{5}.", False)
    assert answer_in_words(r"\boxed{5") == (r"\boxed{5", False)


@given(st.text(), st.text(max_size=30).filter(lambda text: "{" not in text), st.text(max_size=30))
def test_any_answer_is_found_within_any_talk(answer: str, before: str, thought: str) -> None:
    said = f"{before}\n```json\n{json.dumps({'thought': thought, 'answer': answer})}\n```"
    assert answer_in_words(said) == (answer.strip(), True)


@given(st.text())
def test_no_text_makes_the_parser_fail(text: str) -> None:
    answer_in_words(text)


def test_ever_deeper_objects_are_given_up_and_the_text_kept() -> None:
    text = '{"a":' * 3000
    assert answer_in_words(text) == (text, False)


def test_an_answer_of_lists_in_lists_without_end_is_no_answer() -> None:
    text = '{"answer": ' + "[" * 900 + "]" * 900 + "}"
    assert answer_in_words(text) == (text, False)
