"""Criteria that are asked of every claim, turn or other item that the judge finds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalsuite.judges.criteria import OnScale, Reading
from evalsuite.judges.structured_answers import object_schema, whole_number
from evalsuite.judges.verdict_text import number_alone, objects, without_thoughts
from evalsuite.judges.yes_or_no import TEXT, YES_OR_NO, reason_of, truth


@dataclass(frozen=True, slots=True)
class Each(OnScale):
    """A score for every claim, turn or other item that the judge finds; the value is their mean.

    Attributes:
        item: what is scored, in the singular: `claim`, `turn`.
        question: asked of each.
        low: the worst score.
        high: the best; from 0 to 1, a score is yes or no.
        none: the value where there is no such item.
    """

    item: str
    question: str
    low: int = 0
    high: int = 1
    none: float = 1.0

    def request(self) -> str:
        scale = '"yes" or "no"' if self.high == 1 else f"<{self.low} (worst) to {self.high} (best)>"
        return (
            f"List every {self.item}, and of each decide: {self.question}\n"
            f'Reply with one JSON object: {{"items": [{{"{self.item}": "<in short>", "reason": "<one sentence>", '
            f'"score": {scale}}}, ...]}}; the list is empty where there is no {self.item}.'
        )

    def schema(self) -> dict[str, Any]:
        number = whole_number(self.low, self.high)
        entry = object_schema(**{self.item: TEXT}, reason=TEXT, score=YES_OR_NO if self.high == 1 else number)
        return object_schema(items={"type": "array", "items": entry})

    def read(self, text: str) -> Reading:
        lists = [
            item["items"] for item in objects(without_thoughts(text)) if isinstance(item.get("items"), list)
        ]
        if not lists or not all(isinstance(entry, Mapping) for entry in lists[0]):
            raise ValueError('it is no JSON object with a list of objects under "items".')
        if not lists[0]:
            return Reading(self.none, f"there is no {self.item}")
        scores = [self._score(entry) for entry in lists[0]]
        names = [f"{at}. {entry.get(self.item, '')}"[:80] for at, entry in enumerate(lists[0], 1)]
        worst = min(range(len(scores)), key=scores.__getitem__)
        reason = f"{names[worst]}: {reason_of(lists[0][worst].get('reason'))}"
        return Reading(math.fsum(scores) / len(scores), reason, dict(zip(names, scores, strict=True)))

    def _score(self, entry: Mapping[str, Any]) -> float:
        value = entry.get("score", entry.get("verdict"))
        if self.high == 1:
            return truth(value)
        number = number_alone(str(value), self.high)
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"the score {value!r:.40} is not a number from {self.low} to {self.high}.")
        return number
