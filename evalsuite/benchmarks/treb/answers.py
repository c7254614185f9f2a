"""Reading the final answer out of what a model wrote in TCoT mode."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

# A reply that opens ever deeper objects costs time squared; no answer stands so far from the end.
LONGEST = 100_000
_JSON = json.JSONDecoder(strict=False)


def answer_in_words(text: str) -> tuple[str, bool]:
    """The answer, and whether it came in the JSON object that was asked for.

    The last JSON object with the key `answer` counts, within a longer text or not; where there is none, the
    text itself is the answer. Lists are joined by commas.
    """
    for found in reversed(_objects(text[-LONGEST:])):
        if "answer" in found:
            with suppress(RecursionError):  # hundreds of lists in each other are no answer
                return _as_text(found["answer"]), True
    return text.strip(), False


def _objects(text: str) -> list[dict[str, Any]]:
    """The outermost JSON objects of a text, in their order."""
    found, place = [], text.find("{")
    while place >= 0:
        try:
            value, end = _JSON.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            found.append(value)
        place = text.find("{", end)
    return found


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_as_text, value))
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
