"""Criteria of a rubric: one question, or one about every claim or turn. `checklists` has several questions.

Each criterion requests a JSON object with the reason before the score, because a judge that first gives
reasons judges better. Labelled lines of text can also be read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalsuite.core.errors import SettingsError
from evalsuite.judges.asking import object_schema, whole_number
from evalsuite.judges.forms import SCORE_SYNONYMS, Aspect, read_scores
from evalsuite.judges.parsing import (
    YES_OR_NO,
    AnswerField,
    AnswerForm,
    NoStatementError,
    NumberForm,
    find_objects,
    find_reason,
    one_line,
    read_value,
    remove_thoughts,
)

TEXT = {"type": "string"}
YES_OR_NO_SCHEMA = {"type": "string", "enum": ["yes", "no"]}
VERDICT = AnswerField(("verdict", "answer", "decision", "judgement", "judgment", "result", "conclusion"), YES_OR_NO)


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a judge's answer."""

    value: float  # the value on the criteria's own scale
    reason: str  # the reason, in one line
    parts: Mapping[str, float] = field(default_factory=dict)  # value by criterion, claim or turn


class Criteria(Protocol):
    """The question that a judge answers, and the scale of its answer."""

    @property
    def worst(self) -> float:
        """The lowest value."""
        ...

    @property
    def best(self) -> float:
        """The highest value."""
        ...

    def request(self) -> str:
        """Write what to judge and the form of the answer."""
        ...

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the answer."""
        ...

    def read(self, text: str) -> Reading:
        """Read the judge's answer."""
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
        return object_schema(reason=TEXT, verdict=YES_OR_NO_SCHEMA)

    def read(self, text: str) -> Reading:
        try:
            value = AnswerForm({"verdict": VERDICT}).read(text)["verdict"]
        except NoStatementError as missing:
            raise ValueError("it has no verdict, yes or no, at its beginning or end.") from missing
        return Reading(value, find_reason(remove_thoughts(text)))


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
    """One question on a scale of whole numbers, with descriptions of all points or of some."""

    question: str
    low: int = 1
    high: int = 5
    anchors: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a scale without two ends, and descriptions of points that are not on the scale."""
        if not self.low < self.high:
            raise SettingsError(f"a scale goes from a lower to a higher number; got {self.low} to {self.high}")
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
        aspect = Aspect("score", low=self.low, high=self.high)
        labels = {"score": (*SCORE_SYNONYMS, "quality", "verdict")}
        return Reading(read_scores(text, [aspect], labels)["score"], find_reason(remove_thoughts(text)))


@dataclass(frozen=True, slots=True)
class Each(OnScale):
    """A score for every claim, turn or other item that the judge finds; the value is their mean."""

    item: str  # the kind of item, in the singular: `claim`, `turn`
    question: str  # the question to ask about each item
    low: int = 0  # the worst score
    high: int = 1  # the best score; on a scale from 0 to 1, each item gets yes or no
    none: float = 1.0  # the value if the judge finds no such item

    def request(self) -> str:
        scale = '"yes" or "no"' if self.high == 1 else f"<{self.low} (worst) to {self.high} (best)>"
        return (
            f"List every {self.item}, and of each decide: {self.question}\n"
            f'Reply with one JSON object: {{"items": [{{"{self.item}": "<in short>", "reason": "<one sentence>", '
            f'"score": {scale}}}, ...]}}; the list is empty where there is no {self.item}.'
        )

    def schema(self) -> dict[str, Any]:
        number = whole_number(self.low, self.high)
        score = YES_OR_NO_SCHEMA if self.high == 1 else number
        entry = object_schema(**{self.item: TEXT}, reason=TEXT, score=score)
        return object_schema(items={"type": "array", "items": entry})

    def read(self, text: str) -> Reading:
        found = (item.get("items") for item, _, _ in find_objects(remove_thoughts(text)))
        entries = next((items for items in found if isinstance(items, list)), None)
        if entries is None or not all(isinstance(entry, Mapping) for entry in entries):
            raise ValueError('it is not a JSON object with a list of objects under "items".')
        if not entries:
            return Reading(self.none, f"there is no {self.item}")
        scores = [self._score(entry) for entry in entries]
        names = [f"{at}. {entry.get(self.item, '')}"[:80] for at, entry in enumerate(entries, 1)]
        worst = min(range(len(scores)), key=scores.__getitem__)
        reason = f"{names[worst]}: {one_line(entries[worst].get('reason'))}"
        return Reading(math.fsum(scores) / len(scores), reason, dict(zip(names, scores, strict=True)))

    def _score(self, entry: Mapping[str, Any]) -> float:
        value = entry.get("score", entry.get("verdict"))
        if self.high == 1:
            return read_yes_or_no(value)
        number = read_value(value, NumberForm(self.high))
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"the score {value!r:.40} is not a number from {self.low} to {self.high}.")
        return number


def read_yes_or_no(value: Any) -> float:
    """Read a JSON value that means yes (1.0) or no (0.0)."""
    number = {1: 1.0, 0: 0.0, "1": 1.0, "0": 0.0}.get(value) if isinstance(value, (int, str)) else None
    read = read_value(value, YES_OR_NO) if number is None else number
    if read is None:
        raise ValueError(f"{value!r:.40} is neither yes nor no.")
    return read
