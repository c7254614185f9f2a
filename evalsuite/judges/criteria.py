"""What a rubric asks: criteria know how they are asked for, read, and turned into a number. Here, single questions.

Each asks for a JSON object with the reason before the score, as a judge that has to give reasons first judges
better, and reads lines of text as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from evalsuite.core.errors import SettingsError
from evalsuite.judges.structured_answers import object_schema, whole_number
from evalsuite.judges.verdict_text import lone_number, said_numbers, without_thoughts
from evalsuite.judges.yes_or_no import TEXT, YES_OR_NO, reason_in, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Reading:
    """What a judge's answer says.

    Attributes:
        value: on the criteria's own scale.
        reason: in a line, why.
        parts: what it is made of: by criterion, claim or turn, the value of each.
    """

    value: float
    reason: str
    parts: Mapping[str, float] = field(default_factory=dict)


class Criteria(Protocol):
    """What is judged, and on which scale."""

    @property
    def worst(self) -> float:
        """The lowest value."""
        ...

    @property
    def best(self) -> float:
        """The highest value."""
        ...

    def request(self) -> str:
        """What to judge and the form of the answer."""
        ...

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the answer."""
        ...

    def read(self, text: str) -> Reading:
        """What an answer says.

        Raises:
            ValueError: it cannot be read; the message tells the judge why.
        """
        ...


@dataclass(frozen=True, slots=True)
class YesNo:
    """One question; yes is 1.0, no is 0.0."""

    question: str
    worst, best = 0.0, 1.0

    def request(self) -> str:
        return (
            f"Decide: {self.question}\n"
            'Reply with one JSON object: {"reason": "<in one or two sentences>", "verdict": "yes" or "no"}'
        )

    def schema(self) -> dict[str, Any]:
        return object_schema(reason=TEXT, verdict=YES_OR_NO)

    def read(self, text: str) -> Reading:
        text = without_thoughts(text)
        values = verdicts(text)
        if len(values) != 1:
            raise ValueError(
                "it has no verdict, yes or no." if not values else "its verdicts contradict one another."
            )
        return Reading(values.pop(), reason_in(text))


class OnScale:
    """Criteria on a scale of whole numbers, whose lower end is the worst."""

    __slots__ = ()
    low: int
    high: int

    @property
    def worst(self) -> float:
        """The lower end."""
        return float(self.low)

    @property
    def best(self) -> float:
        """The upper end."""
        return float(self.high)


@dataclass(frozen=True, slots=True)
class Likert(OnScale):
    """One question on a scale of whole numbers, with words for each point or for some."""

    question: str
    low: int = 1
    high: int = 5
    anchors: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses a scale without two ends, and words for what is off it."""
        if not self.low < self.high:
            raise SettingsError(
                f"a scale goes from a lower to a higher number; got {self.low} to {self.high}"
            )
        if off := [point for point in self.anchors if not self.low <= point <= self.high]:
            raise SettingsError(f"anchors for {off} are off the scale from {self.low} to {self.high}")

    def request(self) -> str:
        points = "".join(f"\n{point}: {words}" for point, words in sorted(self.anchors.items()))
        return (
            f"Score from {self.low} (worst) to {self.high} (best): {self.question}{points}\n"
            'Reply with one JSON object: {"reason": "<in one or two sentences>", "score": '
            f"<{self.low} to {self.high}>}}"
        )

    def schema(self) -> dict[str, Any]:
        return object_schema(reason=TEXT, score=whole_number(self.low, self.high))

    def read(self, text: str) -> Reading:
        text = without_thoughts(text)
        value = None
        for label in ("score", "rating", "quality", "verdict"):
            if value is None and (values := set(said_numbers(label, text, self.high))):
                if len(values) > 1:
                    raise ValueError(
                        f"it gives several scores that contradict one another: {sorted(values)}."
                    )
                value = values.pop()
        value = lone_number(text, self.high) if value is None else value
        if value is None:
            raise ValueError(f"it has no score from {self.low} to {self.high}.")
        if not self.low <= value <= self.high:
            raise ValueError(f"the score {value:g} is off the scale from {self.low} to {self.high}.")
        return Reading(value, reason_in(text))
