"""The kinds of criteria that a rubric can have: how each is asked for, read, and turned into a number.

Each asks for a JSON object with the reason before the score, as a judge that has to give reasons first judges
better, and reads lines of text as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalsuite.errors import SettingsError
from evalsuite.judging.structured_answers import object_schema, whole_number
from evalsuite.judging.verdict_text import number_alone, objects, said_numbers, without_thoughts

YES = frozenset({"yes", "true", "met", "pass", "passed", "supported", "1"})
NO = frozenset({"no", "false", "unmet", "not met", "fail", "failed", "unsupported", "not supported", "0"})
ANSWER = (
    r"[*`_\"'\[(]{0,4}(yes|no|true|false|pass|fail|not met|met|not supported|supported|unsupported)(?!\w)"
)

SAID = rf"\b(?:verdict|answer|decision)[*`_\"' \t]{{0,6}}[:=][*`_\"'\[(\s]{{0,6}}{ANSWER}"
BEGUN = rf"^\W{{0,6}}{ANSWER}(?=[*`_\"' \t]{{0,4}}(?:[,.:;!)\]-]|$))"


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
        for item in objects(text):
            if "verdict" in item:
                return Reading(_truth(item["verdict"]), _reason(item.get("reason")))
        said = re.findall(SAID, text, re.IGNORECASE)
        said = said or re.findall(BEGUN, text, re.IGNORECASE | re.MULTILINE)
        values = {_truth(word) for word in said}
        if len(values) != 1:
            raise ValueError(
                "it has no verdict, yes or no." if not values else "its verdicts contradict one another."
            )
        return Reading(values.pop(), _first_words(text))


@dataclass(frozen=True, slots=True)
class Likert:
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

    @property
    def worst(self) -> float:
        return float(self.low)

    @property
    def best(self) -> float:
        return float(self.high)

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
        value = number_alone(text, self.high)
        for label in ("score", "rating", "quality", "verdict"):
            if value is None and (said := set(said_numbers(label, text, self.high))):
                if len(said) > 1:
                    raise ValueError(f"it gives several scores that contradict one another: {sorted(said)}.")
                value = said.pop()
        if value is None:
            raise ValueError(f"it has no score from {self.low} to {self.high}.")
        if not self.low <= value <= self.high:
            raise ValueError(f"the score {value:g} is off the scale from {self.low} to {self.high}.")
        reasons = [item.get("reason") for item in objects(text) if item.get("reason")]
        return Reading(value, _reason(reasons[0]) if reasons else _first_words(text))


@dataclass(frozen=True, slots=True)
class Checklist:
    """Several yes/no questions with weights; the value is the weight of those met, as a share of all."""

    weights: Mapping[str, float]
    worst, best = 0.0, 1.0

    def __post_init__(self) -> None:
        """Refuses an empty list and weights that are none."""
        if not self.weights or any(not 0 < weight < math.inf for weight in self.weights.values()):
            raise SettingsError(
                f"a checklist has criteria with weights above 0; got {dict(self.weights)!r:.200}"
            )

    def request(self) -> str:
        listed = "\n".join(f"{at}. {question}" for at, question in enumerate(self.weights, 1))
        return (
            f"Decide each of these, by itself:\n{listed}\n"
            'Reply with one JSON object: {"answers": [{"criterion": 1, "reason": "<one sentence>", "verdict": "yes" or '
            '"no"}, ...]}, with one entry for each criterion.'
        )

    def schema(self) -> dict[str, Any]:
        entry = object_schema(criterion={"type": "integer"}, reason=TEXT, verdict=YES_OR_NO)
        return object_schema(answers={"type": "array", "items": entry})

    def read(self, text: str) -> Reading:
        answers = self.answers(text)
        total = math.fsum(self.weights.values())
        value = math.fsum(weight * answers[one][0] for one, weight in self.weights.items()) / total
        missed = [
            f"not met: {one}{f' ({why})' if why else ''}" for one, (met, why) in answers.items() if not met
        ]
        return Reading(value, "; ".join(missed) or "all met", {one: met for one, (met, _) in answers.items()})

    def answers(self, text: str) -> dict[str, tuple[float, str]]:
        """By question, 1.0 or 0.0 and the reason.

        Raises:
            ValueError: a question has no answer, or two that differ.
        """
        text = without_thoughts(text)
        given = _numbered_entries(text) or _numbered_lines(text)
        questions = list(self.weights)
        missing = [str(at) for at in range(1, len(questions) + 1) if at not in given]
        if missing:
            raise ValueError(f"it has no verdict, yes or no, for criterion {', '.join(missing)}.")
        return {question: given[at] for at, question in enumerate(questions, 1)}


@dataclass(frozen=True, slots=True)
class Tree:
    """A decision tree: yes/no questions whose answers lead to further questions or to a score.

    The judge answers all questions at once, and the tree is walked with the answers.

    Attributes:
        root: `{"question": ..., "yes": <node or number>, "no": <node or number>}`.
    """

    root: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Refuses what is no tree."""
        _leaves(self.root)

    @property
    def worst(self) -> float:
        return min(_leaves(self.root))

    @property
    def best(self) -> float:
        return max(_leaves(self.root))

    def request(self) -> str:
        return self._questions().request()

    def schema(self) -> dict[str, Any]:
        return self._questions().schema()

    def read(self, text: str) -> Reading:
        answers = self._questions().answers(text)
        node: Any = self.root
        way: dict[str, float] = {}
        words: list[str] = []
        while isinstance(node, Mapping):
            met, why = answers[node["question"]]
            way[node["question"]] = met
            words.append(f"{node['question']} {'yes' if met else 'no'}{f' ({why})' if why else ''}")
            node = node["yes" if met else "no"]
        return Reading(float(node), "; ".join(words), way)

    def _questions(self) -> Checklist:
        return Checklist(dict.fromkeys(_questions(self.root), 1.0))


@dataclass(frozen=True, slots=True)
class Each:
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

    @property
    def worst(self) -> float:
        return float(self.low)

    @property
    def best(self) -> float:
        return float(self.high)

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
        reason = f"{names[worst]}: {_reason(lists[0][worst].get('reason'))}"
        return Reading(math.fsum(scores) / len(scores), reason, dict(zip(names, scores, strict=True)))

    def _score(self, entry: Mapping[str, Any]) -> float:
        value = entry.get("score", entry.get("verdict"))
        if self.high == 1:
            return _truth(value)
        number = number_alone(str(value), self.high)
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"the score {value!r:.40} is not a number from {self.low} to {self.high}.")
        return number


TEXT = {"type": "string"}
YES_OR_NO = {"type": "string", "enum": ["yes", "no"]}


def _truth(value: Any) -> float:
    word = str(value).strip(" .*`\"'[]()").casefold()
    if word in YES:
        return 1.0
    if word in NO:
        return 0.0
    raise ValueError(f"{value!r:.40} is neither yes nor no.")


def _numbered_entries(text: str) -> dict[int, tuple[float, str]]:
    for item in objects(text):
        entries = item.get("answers")
        if isinstance(entries, Sequence) and not isinstance(entries, str):
            return _entries([entry for entry in entries if isinstance(entry, Mapping)])
    return {}


def _entries(entries: Sequence[Mapping[str, Any]]) -> dict[int, tuple[float, str]]:
    found: dict[int, tuple[float, str]] = {}
    for at, entry in enumerate(entries, 1):
        number = number_alone(str(entry.get("criterion", at)), math.inf) or at
        verdict = _truth(entry.get("verdict", entry.get("met", entry.get("answer"))))
        if found.get(int(number), (verdict, ""))[0] != verdict:
            raise ValueError(f"it has two verdicts for criterion {int(number)}.")
        found[int(number)] = (verdict, _reason(entry.get("reason")))
    return found


def _numbered_lines(text: str) -> dict[int, tuple[float, str]]:
    line = rf"^\W{{0,6}}(?:criterion )?(\d{{1,3}})[.):][ \t]{{0,3}}{ANSWER}([^\n]*)"
    lines = re.findall(line, text, re.IGNORECASE | re.MULTILINE)
    return {int(number): (_truth(word), _first_words(rest.strip(" -:.,"))) for number, word, rest in lines}


def _reason(given: Any) -> str:
    return _first_words(given) if isinstance(given, str) else ""


def _first_words(text: str) -> str:
    return " ".join(text.split())[:300]


def _questions(node: Any) -> list[str]:
    if not isinstance(node, Mapping):
        return []
    return [node["question"], *_questions(node["yes"]), *_questions(node["no"])]


def _leaves(node: Any) -> list[float]:
    if isinstance(node, Mapping):
        if set(node) != {"question", "yes", "no"}:
            raise SettingsError(
                f"a node of a decision tree has question, yes and no; got {', '.join(map(str, node))}"
            )
        return [*_leaves(node["yes"]), *_leaves(node["no"])]
    if isinstance(node, bool) or not isinstance(node, (int, float)):
        raise SettingsError(f"a leaf of a decision tree is a number; got {node!r:.80}")
    return [float(node)]
