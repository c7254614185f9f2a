"""The metrics as released: golden values are those of the packages that the authors' code calls.

rouge-chinese 1.0.3, rouge-score 0.1.2 (stemming), sacrebleu and jieba 0.42.1, called as `src/judge` of
github.com/JT-LM/jiutian-treb calls them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from evalsuite.benchmarks.treb.scoring import (
    released_bleu,
    released_exact_match,
    released_rouge_l,
    released_scores,
    scorers,
)
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Sample, Transcript


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
    assert released_rouge_l(answer, reference) == pytest.approx(rouge, abs=1e-12)
    if precise is not None:
        assert released_bleu(answer, reference) == pytest.approx(precise, abs=1e-9)


@given(st.text(max_size=60), st.text("abc XYZ,.ü12", min_size=1, max_size=60))
def test_other_answers_score_as_rouge_score_says(answer: str, reference: str) -> None:
    expected = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True).score(reference, answer)["rougeL"]
    assert released_rouge_l(answer, reference) == pytest.approx(expected.fmeasure, abs=1e-12)


@pytest.mark.parametrize(
    ("answer", "reference", "value"),
    [
        ("seven", "42", 1.0),
        ("Seven", "42", 0.0),
        ("Sam Son", "Super Salad", 1.0),
        ("A", "A", 1.0),
        ("AB", "A", 0.0),
    ],
)
def test_the_released_exact_match_counts_capital_letters(answer: str, reference: str, value: float) -> None:
    assert released_exact_match(answer, reference) == value


def sample(answer: str, number: str | None, mode: str = "tcot_markdown") -> Sample:
    return Sample(
        "s", "How many?", answer, {"subtask": "Table Query", "mode": mode}, {"number": number, "rules": None}
    )


def test_only_references_that_are_numbers_have_an_exact_match() -> None:
    assert set(released_scores(sample("Lyon", None), Transcript("Lyon"))) == {
        "rouge_l_released",
        "bleu_released",
    }
    assert released_scores(sample("42", "42"), Transcript("seven"))["exact_match_released"] == 1.0


def test_without_a_reference_nothing_is_scored() -> None:
    assert released_scores(sample(" ", None), Transcript("Lyon")) == {}


def test_a_missing_program_is_zero_in_the_released_metrics_too() -> None:
    scores = released_scores(sample("42", "42", "pot"), Transcript("", facts={"program": "missing"}))
    assert {name: getattr(score, "value", score) for name, score in scores.items()} == {
        "rouge_l_released": 0.0,
        "bleu_released": 0.0,
        "exact_match_released": 0.0,
    }


def test_they_are_computed_where_published_rows_are_shown_and_nowhere_else() -> None:
    assert released_scores in scorers(Setup("gpt", modes=("published",), data=Path()))
    assert released_scores not in scorers(Setup("gpt", modes=("auto",)))
