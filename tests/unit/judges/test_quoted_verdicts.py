"""Words that look like a verdict where there is none: in a reason, in what is quoted, in what was cut off."""

from __future__ import annotations

import json

import pytest

from evalsuite.judges import Likert, YesNo
from evalsuite.judges.forms import QUALITY, ScoresForm


def test_a_score_that_a_reason_quotes_is_not_the_score() -> None:
    said = json.dumps({"reason": "It asks for the best, score: 5, in vain.", "score": 2})
    for text in (said, f"Here it is:\n```json\n{said}\n```"):
        assert Likert("How good is it?").read_answer(text).value == 2.0


def test_a_verdict_that_a_reason_quotes_is_not_the_verdict() -> None:
    said = json.dumps({"reason": "It says of itself: verdict: yes.", "verdict": "no"})
    assert YesNo("Is it right?").read_answer(said).value == 0.0


@pytest.mark.parametrize(
    "text",
    [
        '{"reason": "It gives no source. Answer: no',
        '{\n  "reason": "To the question whether it is right, answer: no",\n  "verd',
        '```json\n{ "reason": "verdict: yes',
    ],
)
def test_a_reason_that_was_cut_off_holds_no_verdict(text: str) -> None:
    with pytest.raises(ValueError, match="no verdict"):
        YesNo("Is it right?").read_answer(text)


@pytest.mark.parametrize("text", ['{"reason": "ok, quality: 3', '{\n"note": "well, quality: 9 is too much,\n"qual'])
def test_a_reason_that_was_cut_off_holds_no_score(text: str) -> None:
    with pytest.raises(ValueError, match="no line of the form"):
        ScoresForm((QUALITY,)).parse_opinion(text)


def test_a_verdict_that_contradicts_the_one_in_an_object_is_asked_again() -> None:
    with pytest.raises(ValueError, match="contradict"):
        YesNo("Is it right?").read_answer('The answer ends with {"verdict": "yes"}.\nVerdict: no')


@pytest.mark.parametrize("quoted", ["<b>Ulm</b>", "<score>3</score>", "<td>1</td><td>2</td>", "It is <i>3/4</i>."])
def test_a_reason_that_quotes_html_leaves_its_object_readable(quoted: str) -> None:
    said = json.dumps({"reason": f"It writes {quoted}", "score": 4})
    assert Likert("How good is it?").read_answer(said).value == 4.0


def test_formulas_before_an_object_do_not_hide_it() -> None:
    formulas = " + ".join(rf"\frac{{{at}}}{{{at + 1}}}" for at in range(100))
    said = json.dumps({"reason": "The sum is right.", "verdict": "yes"})
    assert YesNo("Is it right?").read_answer(f"The answer adds ${formulas}$.\n\n{said}").value == 1.0
