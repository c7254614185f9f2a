"""Acceptable answers are widened by the ways in which the same answer is written, and by no others."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.benchmarks.head_to_tail.scoring import add_answer_variants, is_person_question, spell_number
from evalsuite.metrics.text import exact_match

WHO = "Who wrote it?"
WHAT = "What is it?"
LENGTH = "How long is it (in minutes)?"


@pytest.mark.parametrize(
    ("answer", "question", "said"),
    [
        ("Christopher Nolan", WHO, "Nolan"),
        ("Christopher Nolan", WHO, "C. Nolan"),
        ("Christopher Nolan", WHO, "Nolan, Christopher"),
        ("J.R.R. Tolkien", WHO, "J. R. R. Tolkien"),
        ("J. R. R. Tolkien", WHO, "JRR Tolkien"),
        ("John Ronald Reuel Tolkien", WHO, "J.R.R. Tolkien"),
        ("John Ronald Reuel Tolkien", WHO, "John R. R. Tolkien"),
        ("George Raymond Richard Martin", WHO, "George R.R. Martin"),
        ("Samuel L. Jackson", WHO, "Samuel Jackson"),
        ("Ludwig van Beethoven", WHO, "van Beethoven"),
        ("Ludwig van Beethoven", WHO, "L. van Beethoven"),
        ("Gabriel García Márquez", WHO, "García Márquez"),
        ("Gabriel García Márquez", WHO, "Gabriel Garcia Marquez"),
        ("Martin Luther King Jr.", WHO, "Martin Luther King"),
        ("Sammy Davis, Jr.", WHO, "Davis"),
        ("John Srinivasan", WHO, "Srinivasan"),
        ("John Smith 0001", WHO, "John Smith"),
        ("John Smith (actor)", WHO, "Smith"),
        ("Carrie Fisher", "Which actress played her?", "Fisher"),
        ("E\u0301mile Zola", WHO, "É. Zola"),
        ("Émile Zola", WHO, "E\u0301mile\u00a0Zola"),
        ("Matrix,\u00a0The", WHAT, "The Matrix"),
        ("First\u2028Second", WHAT, "First Second"),
        ("\ufeffEmma", WHAT, "Emma"),
        ("Emma\u200b Woodhouse", WHAT, "Emma Woodhouse"),
        ("16\u00a0July\u00a01990", "When was she born?", "1990-07-16"),
        ("The Matrix", WHAT, "Matrix"),
        ("Matrix, The", WHAT, "The Matrix"),
        ("Frankenstein; or, The Modern Prometheus", WHAT, "Frankenstein"),
        ("Thor: The Dark World", WHAT, "Thor"),
        ("The Hunger Games (The Hunger Games, #1)", WHAT, "The Hunger Games"),
        ("Jane Austen", "Who authored Emma (published in 1815)?", "Austen"),
        ("Königsberg", WHAT, "Konigsberg"),
        ("Jørn Utzon", WHO, "Jorn Utzon"),
        ("148", LENGTH, "148 minutes"),
        ("148", LENGTH, "2 hours 28 minutes"),
        ("7", WHAT, "seven"),
        ("twenty-one", WHAT, "21"),
        ("21", WHAT, "twenty one"),
        ("1,234", WHAT, "1234"),
        ("1990-07-16", WHAT, "16 July 1990"),
        ("1990-07-16", WHAT, "July 16, 1990"),
        ("16th of July 1990", WHAT, "1990-07-16"),
        ("Jul. 16th, 1990", WHAT, "16 Jul 1990"),
    ],
)
def test_the_same_answer_written_otherwise_is_accepted(answer: str, question: str, said: str) -> None:
    assert exact_match(said, add_answer_variants([answer], question)) == 1.0


@pytest.mark.parametrize(
    ("answer", "question", "said"),
    [
        ("Christopher Nolan", WHO, "Jonathan Nolan"),
        ("Christopher Nolan", WHO, "Christopher"),
        ("San Francisco", "In which city was the director born?", "Francisco"),
        ("Penguin Books", "Who is the publisher of it?", "Books"),
        ("Doctor Zhivago", "What did the writer publish in 1957?", "Zhivago"),
        ("148", WHAT, "148 minutes"),
        ("148", LENGTH, "149 minutes"),
        ("7", WHAT, "seventeen"),
        ("1990-07-16", WHAT, "16 July 1991"),
        ("1990-02-30", WHAT, "30 February 1990"),
        ("Thor: The Dark World", WHAT, "The Dark World"),
        ("0306406152", WHAT, "306406152"),
    ],
)
def test_another_answer_is_not_accepted(answer: str, question: str, said: str) -> None:
    assert exact_match(said, add_answer_variants([answer], question)) == 0.0


def test_two_persons_may_be_named_together_in_any_order() -> None:
    accepted = add_answer_variants(["Lana Wachowski", "Lilly Wachowski"], "Who directed it?")
    assert exact_match("Lilly Wachowski and Lana Wachowski", accepted) == 1.0
    assert exact_match("Lana Wachowski, Lilly Wachowski", accepted) == 1.0


@pytest.mark.parametrize(
    ("question", "person"),
    [
        ("Who directed Inception?", True),
        ("It was founded by whom?", True),
        ("Which architect designed it?", True),
        ("What/who influenced Plato?", True),
        ("What is the genre of Doctor Who?", False),
        ("Who distributes the film?", False),
        ("Who wrote Emma (published in 1815)?", True),
        ("Who is the manager of the band?", True),
        ("Who is the record label of The Who?", False),
        ("Who is the publisher of it?", False),
        ("Where did the man who wrote it live?", False),
        ("In which year was the actor Tom Hanks born?", False),
    ],
)
def test_who_asks_for_a_person_unless_it_is_a_company(question: str, person: bool) -> None:  # noqa: FBT001 - parametrised
    assert is_person_question(question) is person


@given(answers=st.lists(st.text(max_size=30), min_size=1, max_size=4), question=st.sampled_from([WHO, WHAT, LENGTH]))
@settings(deadline=None, max_examples=60)
def test_widening_keeps_the_answers_first_and_repeats_none(answers: list[str], question: str) -> None:
    found = add_answer_variants(answers, question)
    assert found[: len(set(answers))] == tuple(dict.fromkeys(answers))
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (99, "ninety-nine"),
        (100, "one hundred"),
        (805, "eight hundred and five"),
    ],
)
def test_numbers_are_spelt_in_english(number: int, words: str) -> None:
    assert spell_number(number) == words
