"""The fixed forms in which judges answer: how each is asked for, parsed strictly, and settled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast

from evalsuite.errors import SettingsError
from evalsuite.judging.opinions import Opinion, PairVerdict, averaged, better, majority
from evalsuite.judging.verdict_text import chosen, number_alone, said_numbers, without_thoughts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")
Lead = Literal["Reply", "End"]
CHOICES: Mapping[str, Sequence[str]] = {
    "first": ("1", "a", "answer 1", "answer_1"),
    "second": ("2", "b", "answer 2", "answer_2"),
    "tie": ("tie", "c", "draw", "equal"),
}
UNNAMED = ("score", "rating", "overall score")
"""What judges call the score where there is only one."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing to score.

    Attributes:
        name: as in the metric's name.
        meaning: what a judge should look at; empty where the name says it.
        low: the worst score.
        high: the best score.
    """

    name: str
    meaning: str = ""
    low: int = 1
    high: int = 10

    def __post_init__(self) -> None:
        """Refuses a scale without two ends, and a name that would not fit in one line."""
        if not self.low < self.high:
            raise SettingsError(f"aspect {self.name!r} goes from {self.low} to {self.high}: that is no scale")
        if self.name != " ".join(self.name.split()) or not self.name:
            raise SettingsError(f"an aspect's name is one line of words; got {self.name!r}")

    def described(self) -> str:
        """Name, scale and meaning, for a prompt."""
        meaning = f": {self.meaning}" if self.meaning else ""
        return f"{self.name} ({self.low} to {self.high}{meaning})"


QUALITY = Aspect("quality", "how well the answer does overall what was asked")


class Form(Protocol):
    """What a judge must answer."""

    @property
    def compares(self) -> bool:
        """Whether two answers are judged, which may be shown in either order."""
        ...

    def task(self) -> str:
        """What to judge."""
        ...

    def request(self, lead: Lead = "Reply") -> str:
        """What to judge, and the form of the whole answer or, with `End`, of its last lines."""
        ...

    def parse(self, text: str) -> Opinion:
        """The opinion, about the answers as they were shown.

        Raises:
            ValueError: the form was not kept; the message tells the judge how.
        """
        ...

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        """One result from several opinions about the answers in their own order."""
        ...


@dataclass(frozen=True, slots=True)
class ScoresForm:
    """One answer, a score for each aspect; the result is each score's mean."""

    aspects: tuple[Aspect, ...] = (QUALITY,)
    compares = False

    def task(self) -> str:
        listed = "; ".join(aspect.described() for aspect in self.aspects)
        return f"Score the answer on {listed}. The highest number is the best."

    def request(self, lead: Lead = "Reply") -> str:
        *most, last = (f"`{aspect.name}: `" for aspect in self.aspects)
        lines = f"one line for each: {', '.join(most)} and {last}, each" if most else f"one line: {last},"
        return f"{self.task()} {lead} with {lines} followed by your number."

    def parse(self, text: str) -> Opinion:
        """The scores, one a line, in one line with commas between them, or in a JSON object."""
        text = without_thoughts(text)
        if len(self.aspects) == 1:
            return Opinion({self.aspects[0].name: _only_score(self.aspects[0], text)})
        return Opinion({aspect.name: number_after(aspect.name, aspect, text) for aspect in self.aspects})

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        return Opinion(averaged(opinions))


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

    def parse(self, text: str) -> Opinion:
        text = without_thoughts(text)
        first, second = (number_after(f"Score of answer {at}", self.aspect, text) for at in (1, 2))
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
        return f"{self.task()} {lead} with one line: `Verdict: 1`, `Verdict: 2` or `Verdict: tie`."

    def parse(self, text: str) -> Opinion:
        verdicts = set(chosen(without_thoughts(text), CHOICES))
        if not verdicts:
            raise ValueError("no line ends with one of Verdict: 1, Verdict: 2 and Verdict: tie.")
        return Opinion(verdict=cast("PairVerdict", _only(verdicts, "Verdict")))

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        return Opinion(verdict=majority([opinion.verdict or "tie" for opinion in opinions]))


def number_after(label: str, aspect: Aspect, text: str) -> float:
    """The number that the text gives under this label.

    Raises:
        ValueError: there is none, there are two that differ, or the number is off the aspect's scale.
    """
    values = set(said_numbers(label, text, aspect.high))
    if not values:
        wanted = f"{label}: followed by a number from {aspect.low} to {aspect.high}"
        raise ValueError(f"there is no line of the form {wanted}.")
    return _on_scale(_only(values, label), label, aspect)


def _only_score(aspect: Aspect, text: str) -> float:
    # A lone number, or one that is called a score, can only mean the one thing that was asked.
    if (alone := number_alone(text, aspect.high)) is not None:
        return _on_scale(alone, aspect.name, aspect)
    if not said_numbers(aspect.name, text, aspect.high):
        for label in UNNAMED:
            if said_numbers(label, text, aspect.high):
                return number_after(label, aspect, text)
    return number_after(aspect.name, aspect, text)


def _on_scale(value: float, label: str, aspect: Aspect) -> float:
    if not aspect.low <= value <= aspect.high:
        raise ValueError(f"{label}: {value:g} is off the scale from {aspect.low} to {aspect.high}.")
    return value


def _only(values: set[T], label: str) -> T:
    if len(values) > 1:
        raise ValueError(f"there are several lines '{label}:' that contradict one another.")
    return values.pop()


def _scored(first: float, second: float) -> Opinion:
    scores: Mapping[str, float] = {"first": first, "second": second}
    return Opinion(scores, better(first, second))
