"""The fixed forms in which judges answer: how each is asked for, parsed strictly, and settled."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from evalsuite.errors import SettingsError
from evalsuite.judging.opinions import Opinion, averaged, better, majority

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.judging.opinions import PairVerdict

T = TypeVar("T")
Lead = Literal["Reply", "End"]
VERDICT = r"\bverdict[ \t*`]*:[ \t*`]*(1|2|tie)\b"


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

    def request(self, lead: Lead = "Reply") -> str:
        """See `Form`."""
        listed = "; ".join(aspect.described() for aspect in self.aspects)
        *most, last = (f"`{aspect.name}: `" for aspect in self.aspects)
        lines = f"one line for each: {', '.join(most)} and {last}, each" if most else f"one line: {last},"
        return (
            f"Score the answer on {listed}. The highest number is the best. "
            f"{lead} with {lines} followed by your number."
        )

    def parse(self, text: str) -> Opinion:
        """See `Form`. Scores may also stand in one line, with commas between them."""
        lines = re.sub(r"[,;]\s", "\n", text)
        return Opinion({aspect.name: number_after(aspect.name, aspect, lines) for aspect in self.aspects})

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        """See `Form`."""
        return Opinion(averaged(opinions))


@dataclass(frozen=True, slots=True)
class PairedScores:
    """Two answers, a score for each; the means are compared, and equal means are a tie."""

    aspect: Aspect = QUALITY
    compares = True

    def request(self, lead: Lead = "Reply") -> str:
        """See `Form`."""
        return (
            f"Score both answers on {self.aspect.described()}. The highest number is the best. "
            f"{lead} with two lines: `Score of answer 1: ` and `Score of answer 2: `, each followed by your number."
        )

    def parse(self, text: str) -> Opinion:
        """See `Form`."""
        first, second = (number_after(f"Score of answer {at}", self.aspect, text) for at in (1, 2))
        return _scored(first, second)

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        """See `Form`."""
        means = averaged(opinions)
        return _scored(means["first"], means["second"])


@dataclass(frozen=True, slots=True)
class ChoiceForm:
    """Two answers, which is better; the result is the majority's, a tie where there is none.

    A verdict may end a sentence, but all that are mentioned must be the same: an echo of the question is none.
    """

    aspect: Aspect = QUALITY
    compares = True

    def request(self, lead: Lead = "Reply") -> str:
        """See `Form`."""
        on = "" if self.aspect == QUALITY else f" in {self.aspect.name}"
        meaning = f" {self.aspect.meaning}" if on and self.aspect.meaning else ""
        return (
            f"Which answer is better{on}?{meaning} "
            f"{lead} with one line: `Verdict: 1`, `Verdict: 2` or `Verdict: tie`."
        )

    def parse(self, text: str) -> Opinion:
        """See `Form`."""
        said = {word.lower() for word in re.findall(VERDICT, text, re.IGNORECASE)}
        if not re.search(rf"{VERDICT}[*`.]*[ \t\r]*$", text, re.IGNORECASE | re.MULTILINE):
            raise ValueError("no line ends with one of Verdict: 1, Verdict: 2 and Verdict: tie.")
        meant: dict[str, PairVerdict] = {"1": "first", "2": "second", "tie": "tie"}
        return Opinion(verdict=meant[_one(said, "Verdict")])

    def settle(self, opinions: Sequence[Opinion]) -> Opinion:
        """See `Form`."""
        return Opinion(verdict=majority([opinion.verdict or "tie" for opinion in opinions]))


def number_after(label: str, aspect: Aspect, text: str) -> float:
    """The number in the line that starts with this label.

    Raises:
        ValueError: there is no such line, two that differ, or the number is off the aspect's scale.
    """
    wanted = f"{label}: followed by a number from {aspect.low} to {aspect.high}"
    said = _said(label, rf"-?\d+(?:\.\d+)?(?: ?/ ?{aspect.high})?", text, wanted)
    value = _one({float(number.split("/")[0]) for number in said}, label)
    if not aspect.low <= value <= aspect.high:
        raise ValueError(f"{label}: {value:g} is off the scale from {aspect.low} to {aspect.high}.")
    return value


def _said(label: str, value: str, text: str, wanted: str) -> list[str]:
    # Markdown's marks and a full stop are not held against a judge; anything else on the line is.
    line = rf"^[ \t*#>`-]*(?:\d[.)] [*`]*)?{re.escape(label)}[ \t*`]*:[ \t*`]*({value})[ \t*`.\r]*$"
    found = re.findall(line, text, flags=re.IGNORECASE | re.MULTILINE)
    if not found:
        raise ValueError(f"there is no line of the form {wanted}.")
    return found


def _one(values: set[T], label: str) -> T:
    if len(values) > 1:
        raise ValueError(f"there are several lines '{label}:' that contradict one another.")
    return values.pop()


def _scored(first: float, second: float) -> Opinion:
    scores: Mapping[str, float] = {"first": first, "second": second}
    return Opinion(scores, better(first, second))
