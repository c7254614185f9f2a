"""TReB's metrics, the rules of Instruction Following, and the released variants."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from evalsuite.benchmarks.treb.rules import PUBLISHED, find_shipped_rules, list_broken_rules
from evalsuite.benchmarks.treb.scoring import (
    compute_released_bleu,
    compute_released_exact_match,
    compute_released_rouge_l,
    make_scorers,
    number_score,
    read_mark,
    released_scores,
    rule_score,
    text_scores,
)
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
        ("**42**", "42", 1.0),
        ("`42`\n", "42", 1.0),
        ("**$42$**", "42", 1.0),
        ("**42** units", "42", 0.0),
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
    assert read_mark(text) == value


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
        read_mark(text)


def test_a_judge_that_puts_a_book_into_its_box_is_told_in_a_line() -> None:
    with pytest.raises(ValueError, match="a number from 0 to 10") as raised:
        read_mark(rf"\boxed{{{'so ' * 10_000}}}")
    assert len(str(raised.value)) < 200


@given(st.floats(0, 10))
def test_every_mark_on_the_scale_is_read(value: float) -> None:
    assert read_mark(rf"So \boxed{{{value!r}}}") == value


def test_an_instruction_without_known_rules_is_an_error_and_no_score() -> None:
    with pytest.raises(ScoringError, match="no rules exist for 'How many"):
        rule_score(sample(subtask="Instruction Following"), Transcript("OK"))


def test_nothing_is_judged_where_there_is_no_judge() -> None:
    assert not any(isinstance(scorer, JudgedScorer) for scorer in make_scorers(Setup("m")))
    assert any(isinstance(scorer, JudgedScorer) for scorer in make_scorers(Setup("m", judge="j")))


def keeps(answer: str, **rule: Any) -> bool:
    return not list_broken_rules(answer, [rule])


@pytest.mark.parametrize(
    ("rule", "kept", "broken"),
    [
        ({"check": "equals", "text": "OK"}, " OK\n", "OK."),
        ({"check": "equals", "text": "ok", "ignore_case": True}, "Ok", "Okay"),
        ({"check": "starts_with", "text": "Lost"}, "Lost castle", "A lost castle"),
        ({"check": "ends_with", "text": "end"}, "the end", "end of it"),
        ({"check": "contains", "text": "window"}, "by the window", "by the door"),
        ({"check": "excludes", "text": "ship", "ignore_case": True}, "a boat", "a Ship"),
        ({"check": "reversed", "text": "lantern"}, "nretnal", "lantern"),
        ({"check": "characters", "at_least": 3, "at_most": 5}, "four", "longer"),
        ({"check": "words", "exactly": 2}, "two words", "these three words"),
        ({"check": "count", "of": ",", "exactly": 2}, "a, b, c", "a, b"),
        ({"check": "items", "separator": "，", "exactly": 2, "shape": "AABB"}, "高高兴兴，平平安安", "高兴，平安"),
        ({"check": "items", "separator": ",", "at_least": 2}, "a, b, c", "a"),
        ({"check": "equals", "text": "chéng", "ignore_accents": True}, "cheng", "shen"),
        ({"check": "any", "rules": [{"check": "equals", "text": "a"}, {"check": "equals", "text": "b"}]}, "b", "c"),
    ],
)
def test_each_check_tells_answers_apart(rule: dict[str, Any], kept: str, broken: str) -> None:
    assert keeps(kept, **rule)
    assert not keeps(broken, **rule)


def test_all_broken_rules_are_named() -> None:
    rules = [{"check": "contains", "text": word} for word in ("red", "green", "blue")]
    assert list_broken_rules("a green field", rules) == [rules[0], rules[2]]


@given(st.text(), st.text())
def test_contains_and_excludes_are_opposites(answer: str, text: str) -> None:
    assert keeps(answer, check="contains", text=text) != keeps(answer, check="excludes", text=text)


@given(st.text("abcXYZ089汉字é,", min_size=1))
def test_a_text_reversed_keeps_its_rule(text: str) -> None:
    assert keeps(text[::-1], check="reversed", text=text)


@pytest.mark.parametrize(
    "rule",
    [
        {"check": "sounds_nice"},
        {"text": "no check"},
        {"check": "equals"},
        {"check": "equals", "text": 5},
        {"check": "characters"},
        {"check": "characters", "at_least": "3"},
        {"check": "count", "exactly": 1},
        {"check": "any"},
        {"check": "items", "separator": "", "exactly": 1},
        "not even an object",
    ],
)
def test_a_rule_that_cannot_be_checked_is_an_error_that_names_it(rule: Any) -> None:
    with pytest.raises(ScoringError, match="cannot be checked"):
        list_broken_rules("an answer", [rule])


@pytest.mark.parametrize(("answer", "value"), [("A fox runs.", 1.0), (" \n", 0.0)])
def test_an_empty_answer_follows_no_instruction(answer: str, value: float) -> None:
    asked = sample(subtask="Instruction Following")
    rules = {"rules": [{"check": "excludes", "text": "e"}, {"check": "words", "at_most": 5}]}
    score: Any = rule_score(replace(asked, metadata={**asked.metadata, **rules}), Transcript(answer))
    assert score["instruction_following"].value == value


def test_an_official_question_is_known_by_its_hash_alone() -> None:
    # The question of the released checker about two Chinese words; its text is in no file of ours.
    question = 'Please reply to me using only the chinese words "好的".'
    rules = find_shipped_rules(f" {question}\n")
    assert rules is not None
    assert list_broken_rules("好的", rules) == []
    assert list_broken_rules("好的！", rules) == rules


def test_other_questions_have_no_published_rules() -> None:
    assert find_shipped_rules("What is the capital of France?") is None


def test_every_published_rule_can_be_checked() -> None:
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))["rules"]
    assert len(published) == 18
    for digest, rules in published.items():
        assert len(digest) == len(hashlib.sha256().hexdigest()[:16])
        assert list_broken_rules("an answer that follows none of them", rules)


@pytest.mark.parametrize(
    ("answer", "reference", "rouge", "precise"),
    [
        ("铁观音、大红袍", "大红袍和铁观音", 0.3333333283333334, 0.3466806371753173),
        ("第一行。\n第二行", "第一行, 第二行。", 0.4999999950000001, None),
        ("北京 Beijing 3.5%", "北京3.5%", 0.7999999952000001, 0.35355339059327373),
        ("", "北京", 0.0, 0.0),
    ],
)
def test_chinese_answers_score_as_the_released_packages_say(
    answer: str, reference: str, rouge: float, precise: float | None
) -> None:
    assert compute_released_rouge_l(answer, reference) == pytest.approx(rouge, abs=1e-12)
    if precise is not None:
        assert compute_released_bleu(answer, reference) == pytest.approx(precise, abs=1e-9)


@given(st.text(max_size=60), st.text("abc XYZ,.ü12", min_size=1, max_size=60))
def test_other_answers_score_as_rouge_score_says(answer: str, reference: str) -> None:
    expected = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True).score(reference, answer)["rougeL"]
    assert compute_released_rouge_l(answer, reference) == pytest.approx(expected.fmeasure, abs=1e-12)


@pytest.mark.parametrize(
    ("answer", "reference", "value"),
    [("seven", "42", 1.0), ("Seven", "42", 0.0), ("Sam Son", "Super Salad", 1.0), ("A", "A", 1.0), ("AB", "A", 0.0)],
)
def test_the_released_exact_match_counts_capital_letters(answer: str, reference: str, value: float) -> None:
    assert compute_released_exact_match(answer, reference) == value


def numbered_sample(answer: str, number: str | None, mode: str = "tcot_markdown") -> Sample:
    return Sample("s", "How many?", answer, {"subtask": "Table Query", "mode": mode}, {"number": number, "rules": None})


def test_only_references_that_are_numbers_have_an_exact_match() -> None:
    assert set(released_scores(numbered_sample("Lyon", None), Transcript("Lyon"))) == {
        "rouge_l_released",
        "bleu_released",
    }
    assert released_scores(numbered_sample("42", "42"), Transcript("seven"))["exact_match_released"] == 1.0


def test_without_a_reference_no_released_metric_is_scored() -> None:
    assert released_scores(numbered_sample(" ", None), Transcript("Lyon")) == {}


def test_a_missing_program_is_zero_in_the_released_metrics_too() -> None:
    scores = released_scores(numbered_sample("42", "42", "pot"), Transcript("", facts={"program": "missing"}))
    assert {name: getattr(score, "value", score) for name, score in scores.items()} == {
        "rouge_l_released": 0.0,
        "bleu_released": 0.0,
        "exact_match_released": 0.0,
    }


def test_they_are_computed_where_published_rows_are_shown_and_nowhere_else() -> None:
    assert released_scores in make_scorers(Setup("gpt", modes=("published",), data=Path()))
    assert released_scores not in make_scorers(Setup("gpt", modes=("auto",)))
