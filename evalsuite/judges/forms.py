"""The fixed forms in which judges answer: how each is asked for, read and settled; here, the form of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from evalsuite.core.errors import SettingsError
from evalsuite.judges.opinions import Opinion, averaged
from evalsuite.judges.structured_answers import object_schema, whole_number
from evalsuite.judges.verdict_text import lone_number, said_numbers, without_thoughts

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")
Lead = Literal["Reply", "End"]
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
            raise SettingsError(
                f"aspect {self.name!r} goes from {self.low} to {self.high}: that is not a scale"
            )
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

    def schema(self) -> dict[str, Any]:
        """The JSON schema of an answer that holds the judgement and nothing else."""
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

    def schema(self) -> dict[str, Any]:
        return object_schema(
            **{aspect.name: whole_number(aspect.low, aspect.high) for aspect in self.aspects}
        )

    def parse(self, text: str) -> Opinion:
        """The scores, one a line, in one line with commas between them, or in a JSON object."""
        text = without_thoughts(text)
        if len(self.aspects) == 1:
            return Opinion({self.aspects[0].name: only_score(self.aspects[0], text)})
        return Opinion({aspect.name: number_after(aspect.name, aspect, text) for aspect in self.aspects})

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        return Opinion(averaged(opinions))


def number_after(label: str, aspect: Aspect, text: str) -> float:
    """The number that the text gives under this label.

    Raises:
        ValueError: there is none, there are two that differ, or the number is off the aspect's scale.
    """
    values = set(said_numbers(label, text, aspect.high))
    if not values:
        wanted = f"{label}: followed by a number from {aspect.low} to {aspect.high}"
        raise ValueError(f"there is no line of the form {wanted}.")
    return _on_scale(only(values, label), label, aspect)


def only_score(aspect: Aspect, text: str) -> float:
    """The score where nothing else was asked for: also a lone number, and one that is called a score.

    Raises:
        ValueError: there is none, there are two that differ, or the number is off the aspect's scale.
    """
    for label in (aspect.name, *UNNAMED):
        if said_numbers(label, text, aspect.high):
            return number_after(label, aspect, text)
    if (alone := lone_number(text, aspect.high)) is not None:
        return _on_scale(alone, aspect.name, aspect)
    return number_after(aspect.name, aspect, text)


def _on_scale(value: float, label: str, aspect: Aspect) -> float:
    if not aspect.low <= value <= aspect.high:
        raise ValueError(f"{label}: {value:g} is off the scale from {aspect.low} to {aspect.high}.")
    return value


def only(values: set[T], label: str) -> T:
    """The one value that was given.

    Raises:
        ValueError: there are several.
    """
    if len(values) > 1:
        raise ValueError(f"there are several lines '{label}:' that contradict one another.")
    return values.pop()
