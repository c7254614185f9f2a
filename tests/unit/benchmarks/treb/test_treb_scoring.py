from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.treb.scoring import mark, number_score, rule_score, scorers, text_scores
from evalsuite.core.errors import ScoringError
from evalsuite.core.protocols import JudgedScorer, Setup
from evalsuite.core.types import Sample, Score, Transcript


def sample(answer: str = "42", number: str | None = "42", subtask: str = "Table Query") -> Sample:
    tags = {"subtask": subtask, "mode": "tcot_markdown"}
    return Sample("s", "How many?", answer, tags, {"number": number, "rules": None})


def exact(answer: str, number: str) -> float:
    score = number_score(sample(number=number), Transcript(answer))["exact_match"]
    assert isinstance(score, Score)
    return score.value


@pytest.mark.parametrize(
    ("answer", "number", "value"),
    [
        ("42", "42.0", 1.0),
        ("42.00", "42", 1.0),
        ("42.1", "42", 0.0),
        ("1,234", "1234.0", 1.0),
        ("12.5%", "12.5%", 1.0),
        ("12.5", "12.5%", 1.0),
        ("12.5%", "12.5", 0.0),
        ("The answer is 42", "42", 0.0),
        ("", "42", 0.0),
    ],
)
def test_exact_match_is_numeric_equality(answer: str, number: str, value: float) -> None:
    assert exact(answer, number) == value


@pytest.mark.parametrize("answer", [r"12.5\%", r"$12.5\%$", r"\text{12.5\%}"])
def test_latex_around_a_number_does_not_matter(answer: str) -> None:
    assert exact(answer, "12.5%") == 1.0


def test_an_answer_that_is_the_reference_itself_is_exactly_right() -> None:
    score = number_score(sample("12 goals", "12"), Transcript(" 12 goals\n"))["exact_match"]
    assert isinstance(score, Score)
    assert score.value == 1.0


def test_without_a_reference_nothing_is_scored() -> None:
    assert text_scores(sample("", None), Transcript("Lyon")) == {}


def test_letters_do_not_make_numbers_equal() -> None:
    # What the authors' released exact match does: any two answers without capital letters are equal.
    assert exact("seven", "42") == 0.0


def test_an_answer_in_words_has_no_exact_match() -> None:
    assert number_score(sample("Lyon", None), Transcript("Lyon")) == {}


def test_chinese_answers_are_compared_word_by_word() -> None:
    scores = text_scores(sample("铁观音、大红袍", None), Transcript("大红袍和铁观音"))
    assert isinstance(scores["rouge_l"], float)
    assert 0 < scores["rouge_l"] < 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"Right. \boxed{10}", 10.0),
        (r"\boxed{3} at first, but \boxed{7.5}", 7.5),
        (r"\boxed{8/10}", 8.0),
        (r"\boxed{8.5 / 10}", 8.5),
        (r"$\boxed{ 0 }$", 0.0),
        (r"\boxed{$8$}", 8.0),
        (r"\boxed{\text{8/10}}", 8.0),
        (r"<think>\boxed{3}?</think> Right. \boxed{10}", 10.0),
        ("It says the same.\n**Score:** 8.5/10", 8.5),
        ('{"reason": "the same", "score": 8}', 8.0),
    ],
)
def test_the_last_boxed_mark_counts(text: str, value: float) -> None:
    assert mark(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "8",
        r"\boxed{}",
        r"\boxed{11}",
        r"\boxed{-1}",
        r"\boxed{nan}",
        r"\boxed{80%}",
        r"\boxed{8",
        r"\boxed{5/5}",
        r"\boxed{5/10/10}",
        r"\boxed{5/}",
    ],
)
def test_anything_else_is_no_mark(text: str) -> None:
    with pytest.raises(ValueError, match="a number from 0 to 10"):
        mark(text)


def test_a_judge_that_puts_a_book_into_its_box_is_told_in_a_line() -> None:
    with pytest.raises(ValueError, match="a number from 0 to 10") as raised:
        mark(rf"\boxed{{{'so ' * 10_000}}}")
    assert len(str(raised.value)) < 200


@given(st.floats(0, 10))
def test_every_mark_on_the_scale_is_read(value: float) -> None:
    assert mark(rf"So \boxed{{{value!r}}}") == value


def test_an_instruction_without_known_rules_is_an_error_and_no_score() -> None:
    with pytest.raises(ScoringError, match="no rules exist for 'How many"):
        rule_score(sample(subtask="Instruction Following"), Transcript("OK"))


def test_nothing_is_judged_where_there_is_no_judge() -> None:
    assert not any(isinstance(scorer, JudgedScorer) for scorer in scorers(Setup("m")))
    assert any(isinstance(scorer, JudgedScorer) for scorer in scorers(Setup("m", judge="j")))
