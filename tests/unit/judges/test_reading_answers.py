"""Answers as judges write them, each with the reading of a person, who may find that it says nothing clear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.judges import Likert, YesNo
from evalsuite.judges.forms import ChoiceForm, GradedChoice, PairedScores, ScoresForm

if TYPE_CHECKING:
    from collections.abc import Callable

ASPECTS = (Likert("", 1, 5, name="clarity"), Likert("", 1, 5, name="depth"))
READERS: dict[str, Callable[[str], Any]] = {
    "verdict": lambda text: ChoiceForm().parse_opinion(text).verdict,
    "score": lambda text: ScoresForm().parse_opinion(text).scores["quality"],
    "yes or no": lambda text: YesNo("Is it right?").read_answer(text).value,
    "two scores": lambda text: list(PairedScores().parse_opinion(text).scores.values()),
    "aspects": lambda text: list(ScoresForm(ASPECTS).parse_opinion(text).scores.values()),
    "five levels": lambda text: GradedChoice().parse_opinion(text).scores["preference"],
}
ANSWERS = [
    json.loads(line) for line in Path(__file__).with_name("answers_of_judges.jsonl").read_text("utf-8").splitlines()
]


def read(entry: dict[str, Any]) -> Any:
    """Read an answer; None if it is refused."""
    try:
        return READERS[entry["form"]](entry["answer"])
    except ValueError:
        return None


def test_no_answer_is_read_otherwise_than_by_a_person() -> None:
    wrong = [(entry["answer"], found) for entry in ANSWERS if (found := read(entry)) not in (None, entry["person"])]
    assert wrong == []


@pytest.mark.parametrize("form", READERS)
def test_at_least_85_percent_of_what_a_person_reads_is_read_at_once(form: str) -> None:
    clear = [entry for entry in ANSWERS if entry["form"] == form and entry["person"] is not None]
    refused = [entry["answer"] for entry in clear if read(entry) is None]
    assert len(refused) <= 0.15 * len(clear), refused


def test_there_are_300_answers() -> None:
    assert len(ANSWERS) >= 300
