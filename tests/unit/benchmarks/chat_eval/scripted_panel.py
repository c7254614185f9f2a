"""A judge that answers every mode by rules which can be computed without it, and keeps what each speaker was shown.

A judge's opinion of a text depends on the judge's name and on the letters of the text alone; whatever stands first
gains a point. So each verdict and mean can be worked out from the published files by hand.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ASPECTS = {"naturalness": (1, 3), "coherence": (1, 3), "engagingness": (1, 3), "groundedness": (0, 1)}
"""Of Topical-Chat, with the scales of its annotators."""
CHANCE = 0.75
"""Probability of the likeliest score; the rest falls on the scale's lowest."""
SECTION = re.compile(
    r'<(?P<name>[\w.-]+) key="(?P<key>[0-9a-f]{12})">\n(?P<text>.*?)\n</(?P=name) key="(?P=key)">', re.DOTALL
)
SAID = re.compile(r"Utterance (\d+)\b")


def letters(text: str) -> int:
    """What a text is judged by; withheld names are no part of it."""
    return text.replace("[name withheld]", "").count("e")


def taste(judge: str) -> int:
    """What tells one judge from another."""
    return sum(map(ord, judge))


def worth(judge: str, text: str) -> int:
    """A judge's score of a text, from 1 to 7."""
    return 1 + (letters(text) * (1 + taste(judge) % 5) + taste(judge)) % 7


def rating(judge: str, aspect: str, text: str) -> int:
    """A judge's score of a response in one aspect."""
    low, high = ASPECTS[aspect]
    return low + (letters(text) // (1 + taste(judge) % 3) + len(aspect)) % (high - low + 1)


def likeliest(aspect: str, low: int, high: int, text: str) -> int:
    """The score that a judge gives the probability `CHANCE`; never the lowest, which gets the rest."""
    return low + 1 + (letters(text) + len(aspect)) % (high - low)


@dataclass(frozen=True)
class Shown:
    """One call.

    Attributes:
        number: of the call, which its answer names.
        kind: `talk`, `judgement`, `summary`, `steps` or `score`.
        speaker: who was asked.
        subject: the question and the answers in the order shown.
        heard: who spoke in the sections of the debate, with the number of the utterance.
    """

    number: int
    kind: str
    speaker: str
    subject: tuple[str, ...]
    heard: tuple[tuple[str, int], ...]


@dataclass
class ScriptedPanel:
    """Answers judges' prompts and keeps what they showed.

    Attributes:
        calls: in the order of asking.
    """

    calls: list[Shown] = field(default_factory=list)

    def answer(self, system: str, user: str, params: Mapping[str, Any]) -> str:
        """The answer to one prompt."""
        parts = {match["name"]: match["text"] for match in SECTION.finditer(user)}
        called = re.search(r"You sit on a panel and are called (.+?)\. ", system)
        name = called[1] if called else f"judge {params.get('seed', '')}".strip()
        asked = user.rpartition('">')[2]
        kind = _kind(system, asked)
        self.calls.append(
            Shown(
                len(self.calls),
                kind,
                "summary" if kind == "summary" else name,
                tuple(text for part, text in parts.items() if not part.startswith("said_by_")),
                _heard(user),
            )
        )
        return self._said(kind, name, asked, parts)

    def _said(self, kind: str, name: str, asked: str, parts: Mapping[str, str]) -> str:
        number = len(self.calls) - 1
        if kind in ("talk", "summary", "steps"):
            return f"Utterance {number}: I have looked at it."
        if kind == "score":
            aspect, low, high = _scored_aspect(asked)
            return str(likeliest(aspect, low, high, parts["answer"]))
        if "Reply with" in asked:
            return json.dumps(_form(name, asked, parts))
        lines = "\n".join(f"{label}: {value}" for label, value in _form(name, asked, parts).items())
        return f"Utterance {number}: there are reasons.\n{lines}"


def logprobs(user: str, chosen: str) -> list[tuple[str, float]]:
    """The alternatives at the token of a score, with their probabilities."""
    _, low, _ = _scored_aspect(user)
    return [(chosen, CHANCE), (str(low), 1 - CHANCE)]


def _kind(system: str, asked: str) -> str:
    if "minutes of a panel" in system:
        return "summary"
    if "Write the evaluation steps" in asked:
        return "steps"
    if "Reply with the number alone" in asked:
        return "score"
    return "judgement" if "`" in asked else "talk"


def _scored_aspect(user: str) -> tuple[str, int, int]:
    match = re.search(r"Score the answer on (\w+) \((\d) to (\d)", user)
    assert match is not None
    return match[1], int(match[2]), int(match[3])


def _form(name: str, asked: str, parts: Mapping[str, str]) -> dict[str, Any]:
    if "answer_1" not in parts:
        return {aspect: rating(name, aspect, parts["answer"]) for aspect in ASPECTS}
    first, second = worth(name, parts["answer_1"]) + 1, worth(name, parts["answer_2"])
    if "Score of answer 1" in asked:
        return {"Score of answer 1": first, "Score of answer 2": second}
    return {"Verdict": "1" if first > second else "2" if second > first else "tie"}


def _heard(user: str) -> tuple[tuple[str, int], ...]:
    spoken = [match for match in SECTION.finditer(user) if match["name"].startswith("said_by_")]
    numbers = [SAID.search(match["text"]) for match in spoken]
    return tuple(
        (match["name"].removeprefix("said_by_").replace("_", " "), int(number[1]))
        for match, number in zip(spoken, numbers, strict=True)
        if number is not None
    )


def debates(calls: Sequence[Shown]) -> dict[tuple[str, ...], list[Shown]]:
    """The calls of each debate, in one order of the answers."""
    debate: dict[tuple[str, ...], list[Shown]] = {}
    for call in calls:
        debate.setdefault(call.subject, []).append(call)
    return debate
