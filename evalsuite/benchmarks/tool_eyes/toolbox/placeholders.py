"""TG: placeholder sentences, made-up people and simple transformations of text."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Literal

from evalsuite.benchmarks.tool_eyes.toolbox.limits import bounded, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

_NOUNS = ("kettle", "lantern", "orchard", "ferry", "ladder", "button", "harbour", "violin", "pebble", "tram")
_VERBS = ("follows", "carries", "finds", "paints", "meets", "counts", "hides", "repairs")
_ADJECTIVES = ("quiet", "yellow", "heavy", "early", "narrow", "friendly", "distant", "small")
_FIRST = ("Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas")
_LAST = ("Alder", "Brook", "Cairn", "Dale", "Ebb", "Fenn", "Grove", "Heath", "Isle", "Knoll")


class Placeholders:
    """Draws from a generator seeded with the query."""

    def __init__(self, sample: Sample) -> None:
        self.random = random.Random(str(sample.input))  # noqa: S311 - sample data, no secrets

    @tool
    def placeholder_sentences(self, count: int = 1) -> list[str]:
        """Makes meaningless sentences to fill a layout with.

        Args:
            count: how many, 1 to 20.
        """
        return [self._sentence() for _ in range(bounded("count", count, 1, 20))]

    @tool
    def fictional_people(self, count: int = 1) -> list[dict[str, str]]:
        """Makes up people with a name, a job and an e-mail address at example.com.

        Args:
            count: how many, 1 to 20.
        """
        return [self._person() for _ in range(bounded("count", count, 1, 20))]

    @tool
    def change_case(self, text: str, style: Literal["upper", "lower", "title", "snake"]) -> str:
        """Rewrites a text in another letter case.

        Args:
            text: the text.
            style: upper, lower, title, or snake for lower_case_with_underscores.
        """
        short("text", text)
        if style == "snake":
            return "_".join(text.lower().split())
        return {"upper": text.upper, "lower": text.lower, "title": text.title}[style]()

    @tool
    def reverse_text(self, text: str) -> str:
        """Writes a text backwards.

        Args:
            text: the text.
        """
        return short("text", text)[::-1]

    def _sentence(self) -> str:
        pick = self.random.choice
        subject, verb, noun = pick(_NOUNS), pick(_VERBS), pick(_NOUNS)
        return f"The {pick(_ADJECTIVES)} {subject} {verb} a {pick(_ADJECTIVES)} {noun}."

    def _person(self) -> dict[str, str]:
        first, last = self.random.choice(_FIRST), self.random.choice(_LAST)
        job = self.random.choice(("baker", "pilot", "tailor", "nurse", "surveyor"))
        return {"name": f"{first} {last}", "job": job, "email": f"{first}.{last}@example.com".lower()}
