"""Criteria of several yes/no questions that one answer settles: a weighted checklist, and a decision tree."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalsuite.core.errors import SettingsError
from evalsuite.judges.criteria import Reading
from evalsuite.judges.structured_answers import object_schema
from evalsuite.judges.verdict_text import number_alone, objects, without_thoughts
from evalsuite.judges.yes_or_no import ANSWER, TEXT, YES_OR_NO, first_words, reason_of, truth


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
        verdicts = _numbered_entries(text) or _numbered_lines(text)
        questions = list(self.weights)
        missing = [str(at) for at in range(1, len(questions) + 1) if at not in verdicts]
        if missing:
            raise ValueError(f"it has no verdict, yes or no, for criterion {', '.join(missing)}.")
        return {question: verdicts[at] for at, question in enumerate(questions, 1)}


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


def _numbered_entries(text: str) -> dict[int, tuple[float, str]]:
    for item in objects(text):
        entries = item.get("answers")
        if isinstance(entries, Sequence) and not isinstance(entries, str):
            return _entries([entry for entry in entries if isinstance(entry, Mapping)])
    return {}


def _entries(entries: Sequence[Mapping[str, Any]]) -> dict[int, tuple[float, str]]:
    verdicts: dict[int, tuple[float, str]] = {}
    for at, entry in enumerate(entries, 1):
        number = number_alone(str(entry.get("criterion", at)), math.inf) or at
        verdict = truth(entry.get("verdict", entry.get("met", entry.get("answer"))))
        if verdicts.get(int(number), (verdict, ""))[0] != verdict:
            raise ValueError(f"it has two verdicts for criterion {int(number)}.")
        verdicts[int(number)] = (verdict, reason_of(entry.get("reason")))
    return verdicts


def _numbered_lines(text: str) -> dict[int, tuple[float, str]]:
    line = rf"^\W{{0,6}}(?:criterion )?(\d{{1,3}})[.):][ \t]{{0,3}}{ANSWER}([^\n]*)"
    lines = re.findall(line, text, re.IGNORECASE | re.MULTILINE)
    return {int(number): (truth(word), first_words(rest.strip(" -:.,"))) for number, word, rest in lines}


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
