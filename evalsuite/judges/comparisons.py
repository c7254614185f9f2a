"""The forms in which judges compare two answers: by scores for both, by a choice, or by a choice in five levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from evalsuite.judges.forms import QUALITY, number_after, only
from evalsuite.judges.opinions import PREFERENCE, Opinion, PairVerdict, averaged, better, majority
from evalsuite.judges.structured_answers import object_schema, whole_number
from evalsuite.judges.verdict_text import chosen, said_numbers, without_thoughts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.judges.forms import Aspect, Lead

CHOICES: Mapping[str, Sequence[str]] = {
    "first": ("1", "a", "answer 1", "answer_1"),
    "second": ("2", "b", "answer 2", "answer_2"),
    "tie": ("tie", "c", "draw", "equal"),
}
PLAIN = ("1", "2", "tie")
"""The three verdicts as they are asked for."""
ASKED_LABEL = "Score of answer"
SCORE_LABELS = (ASKED_LABEL, "Score for answer", "Answer", "Score of assistant", "Assistant")
"""How judges name one answer's score, before its number."""
LEVELS: Mapping[str, float] = {
    "1 much better": 1.0,
    "1 better": 0.75,
    "tie": 0.5,
    "2 better": 0.25,
    "2 much better": 0.0,
}
"""The five verdicts as they are asked for, and what each is worth to the first answer."""


def _wordings(winner: str, loser: str) -> dict[str, list[str]]:
    """How judges write that one answer is better, by degree; `A>>B` is Arena-Hard's notation."""
    much = [
        " much better",
        " is much better",
        " significantly better",
        " is significantly better",
        f">>{loser}",
    ]
    some = [" better", " is better", " slightly better", " is slightly better", f">{loser}"]
    return {
        "much better": [winner + ending for ending in much],
        "better": [winner + ending for ending in some],
    }


GRADED: Mapping[str, Sequence[str]] = {
    "tie": (*CHOICES["tie"], "1=2", "a=b"),
    **{
        f"{number} {degree}": [*wordings, *_wordings(letter, rival_letter)[degree]]
        for number, rival, letter, rival_letter in (("1", "2", "a", "b"), ("2", "1", "b", "a"))
        for degree, wordings in _wordings(number, rival).items()
    },
}
"""By level, the words that name it."""


@dataclass(frozen=True, slots=True)
class PairedScores:
    """Two answers, a score for each; the means are compared, and equal means are a tie."""

    aspect: Aspect = QUALITY
    compares = True

    def task(self) -> str:
        return f"Score both answers on {self.aspect.described()}. The highest number is the best."

    def request(self, lead: Lead = "Reply") -> str:
        return (
            f"{self.task()} {lead} with two lines: `Score of answer 1: ` and `Score of answer 2: `, each followed "
            "by your number."
        )

    def schema(self) -> dict[str, Any]:
        score = whole_number(self.aspect.low, self.aspect.high)
        return object_schema(**{"Score of answer 1": score, "Score of answer 2": score})

    def parse(self, text: str) -> Opinion:
        """Both scores, under the labels asked for or under others that say as clearly whose they are."""
        text = without_thoughts(text)
        label = next(
            (one for one in SCORE_LABELS if said_numbers(f"{one} 1", text, self.aspect.high)), ASKED_LABEL
        )
        first, second = (number_after(f"{label} {at}", self.aspect, text) for at in (1, 2))
        return _scored(first, second)

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        means = averaged(opinions)
        return _scored(means["first"], means["second"])


@dataclass(frozen=True, slots=True)
class ChoiceForm:
    """Two answers, which is better; the result is the majority's, a tie where there is none.

    A verdict may stand anywhere, but all that are mentioned must be the same: an echo of the question is none.
    """

    aspect: Aspect = QUALITY
    compares = True

    def task(self) -> str:
        on = "" if self.aspect == QUALITY else f" in {self.aspect.name}"
        meaning = f" {self.aspect.meaning}" if on and self.aspect.meaning else ""
        return f"Which answer is better{on}?{meaning}"

    def request(self, lead: Lead = "Reply") -> str:
        return _with_one_line(self.task(), lead, PLAIN)

    def schema(self) -> dict[str, Any]:
        return _one_of(PLAIN)

    def parse(self, text: str) -> Opinion:
        return Opinion(verdict=cast("PairVerdict", _only_verdict(text, CHOICES, PLAIN)))

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        return Opinion(verdict=majority([opinion.verdict or "tie" for opinion in opinions]))


@dataclass(frozen=True, slots=True)
class GradedChoice:
    """Two answers, which is better and by how much; the result is the mean preference for the first, from 0 to 1."""

    aspect: Aspect = QUALITY
    compares = True

    def task(self) -> str:
        return f"{ChoiceForm(self.aspect).task()} By how much?"

    def request(self, lead: Lead = "Reply") -> str:
        return _with_one_line(self.task(), lead, LEVELS)

    def schema(self) -> dict[str, Any]:
        return _one_of(LEVELS)

    def parse(self, text: str) -> Opinion:
        """The preference; a verdict without a degree, as in `Verdict: 1`, cannot be read."""
        return _preferring(LEVELS[_only_verdict(text, GRADED, LEVELS)])

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        return _preferring(math.fsum(opinion.scores[PREFERENCE] for opinion in opinions) / len(opinions))


def _with_one_line(task: str, lead: Lead, verdicts: Iterable[str]) -> str:
    *most, last = (f"`Verdict: {verdict}`" for verdict in verdicts)
    return f"{task} {lead} with one line: {', '.join(most)} or {last}."


def _one_of(verdicts: Iterable[str]) -> dict[str, Any]:
    return object_schema(verdict={"type": "string", "enum": list(verdicts)})


def _only_verdict(text: str, options: Mapping[str, Sequence[str]], verdicts: Iterable[str]) -> str:
    """The meaning of the one verdict in a judge's answer.

    Args:
        text: the answer.
        options: by their meaning, the words that name each.
        verdicts: as the judge was asked to write them.

    Raises:
        ValueError: there is none, or there are two that differ.
    """
    meanings = set(chosen(without_thoughts(text), options))
    if not meanings:
        wanted = ", ".join(f"Verdict: {verdict}" for verdict in verdicts)
        raise ValueError(f"no line ends with one of {wanted}.")
    return only(meanings, "Verdict")


def _scored(first: float, second: float) -> Opinion:
    scores: Mapping[str, float] = {"first": first, "second": second}
    return Opinion(scores, better(first, second))


def _preferring(preference: float) -> Opinion:
    return Opinion({PREFERENCE: preference}, better(preference, 0.5))
