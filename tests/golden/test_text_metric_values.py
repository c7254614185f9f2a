"""Values worked by hand or printed by the reference implementations."""

from __future__ import annotations

import math

import pytest

from evalsuite.metrics.text import bleu, exact_match, normalise_answer, rouge_l, token_f1


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        # By the four steps of SQuAD's evaluate-v1.1.py: lower, punctuation, articles, white space.
        ("The Denver  Broncos!", "denver broncos"),
        ("An A-team\tof the 1980s", "ateam of 1980s"),
        ("Levi's Stadium, in Santa Clara", "levis stadium in santa clara"),
        ("$1,234.50", "123450"),
        ("theatre another banana", "theatre another banana"),
    ],
)
def test_normalisation_follows_the_steps_of_squad(written: str, normal: str) -> None:
    assert normalise_answer(written) == normal


def test_token_f1_is_worked_by_hand() -> None:
    # "denver broncos won" has 3 tokens, "denver broncos" 2, 2 in common: P = 2/3, R = 1, F1 = 4/5.
    assert token_f1("The Denver Broncos won", "Denver Broncos") == pytest.approx(0.8)
    # Bags: "to be or not to be" and "to be": 2 in common, P = 1/3, R = 1, F1 = 1/2.
    assert token_f1("to be or not to be", "to be") == pytest.approx(0.5)
    assert exact_match("The Denver Broncos won", "Denver Broncos") == 0.0


def test_rouge_l_is_the_example_of_the_paper() -> None:
    # Lin 2004, section 3.1: S1 "police killed the gunman", S2 "police kill the gunman",
    # S3 "the gunman kill police"; unstemmed LCS 3 and 2 of 4. With the stemmer "killed" is "kill".
    assert rouge_l("police kill the gunman", "police killed the gunman") == 1.0
    assert rouge_l("the gunman kill police", "police killed the gunman") == pytest.approx(2 / 4)
    assert rouge_l("police kill the gunman", "police killed the gunman", stem=False) == pytest.approx(3 / 4)


def test_rouge_l_is_the_example_of_the_rouge_score_package() -> None:
    # Its README: scorer.score("The quick brown fox jumps over the lazy dog",
    # "The quick brown dog jumps on the log."): rougeL precision 5/8, recall 5/9.
    precision, recall = 5 / 8, 5 / 9
    value = rouge_l("The quick brown dog jumps on the log.", "The quick brown fox jumps over the lazy dog")
    assert value == pytest.approx(2 * precision * recall / (precision + recall))


def test_bleu_is_worked_by_hand() -> None:
    # Papineni et al. 2002 with effective order: "the cat sat" against "the cat sat down": all its 1-, 2- and
    # 3-grams match and it has no 4-gram; brevity penalty exp(1 - 4/3).
    assert bleu("the cat sat", "the cat sat down") == pytest.approx(math.exp(1 - 4 / 3))
    # Exponential smoothing (Chen & Cherry 2014, method 3 in sacrebleu's form): 1-grams 2/3, 2-grams 1/2,
    # 3-grams 0/1 counted as 1/(2 * 1); equal lengths.
    assert bleu("the cat ran", "the cat sat") == pytest.approx((2 / 3 * 1 / 2 * 1 / 2) ** (1 / 3))
    assert bleu("The cat sat", "the cat sat") < 1.0
