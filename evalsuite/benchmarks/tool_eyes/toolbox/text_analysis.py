"""DU: measuring and comparing texts."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Literal

from evalsuite.benchmarks.tool_eyes.toolbox.limits import bounded, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


class TextAnalysis:
    """Has no state."""

    def __init__(self, sample: Sample) -> None:
        """Every subject is made with the sample, whether it needs it or not."""

    @tool
    def text_similarity(self, first: str, second: str, method: Literal["characters", "words"]) -> float:
        """Says how similar two texts are, from 0 (nothing in common) to 1 (equal).

        Args:
            first: one text.
            second: the other text.
            method: characters for 1 - edit distance / longer length, words for shared / all distinct words.
        """
        short("first", first, 2000)
        short("second", second, 2000)
        if method == "words":
            one, other = set(_words(first)), set(_words(second))
            return round(len(one & other) / len(one | other), 4) if one | other else 1.0
        from Levenshtein import distance

        longer = max(len(first), len(second))
        return round(1 - distance(first, second) / longer, 4) if longer else 1.0

    @tool
    def count_text(self, text: str) -> dict[str, int]:
        """Counts the characters, words and sentences of a text.

        Args:
            text: the text.
        """
        sentences = [part for part in re.split(r"[.!?]+", short("text", text)) if part.strip()]
        return {"characters": len(text), "words": len(_words(text)), "sentences": len(sentences)}

    @tool
    def frequent_words(self, text: str, count: int = 3) -> dict[str, int]:
        """Finds the most frequent words of a text, with how often they occur.

        Args:
            text: the text.
            count: how many words, 1 to 50.
        """
        counts = Counter(_words(short("text", text)))
        ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        return dict(ranked[: bounded("count", count, 1, 50)])

    @tool
    def find_differences(self, first: str, second: str) -> dict[str, list[str]]:
        """Lists the words that only one of two texts has.

        Args:
            first: one text.
            second: the other text.
        """
        words, others = set(_words(short("first", first))), set(_words(short("second", second)))
        return {"only_first": sorted(words - others), "only_second": sorted(others - words)}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
