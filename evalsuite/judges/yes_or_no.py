"""How a judge says yes or no, and why, in JSON or in lines of text."""

from __future__ import annotations

import re
from typing import Any

from evalsuite.judges.verdict_text import objects, outside_objects

YES = frozenset({"yes", "true", "met", "pass", "passed", "supported", "1"})
NO = frozenset({"no", "false", "unmet", "not met", "fail", "failed", "unsupported", "not supported", "0"})
ANSWER = (
    r"[*`_\"'\[(]{0,4}(yes|no|true|false|pass|fail|not met|met|not supported|supported|unsupported)(?!\w)"
)

ENDED = r"(?=[*`_\"' \t\])]{0,4}(?:[,.:;!)\]-]|$))"
SAID = (
    rf"\b(?:verdict|answer|decision)[*`_\"' \t]{{0,6}}"
    rf"(?:[:=][*`_\"'\[(\s]{{0,6}}{ANSWER}|is[*`_\"'\[( \t]{{1,6}}{ANSWER}{ENDED})"
)
BEGUN = rf"^\W{{0,6}}{ANSWER}(?=[*`_\"' \t]{{0,4}}(?:[,.:;!)\]-]|$))"
NAMES = ("verdict", "answer", "decision")
"""Under which an object may hold the verdict; the first one counts."""
TEXT = {"type": "string"}
YES_OR_NO = {"type": "string", "enum": ["yes", "no"]}


def truth(value: Any) -> float:
    """1.0 for a word that means yes, 0.0 for one that means no.

    Raises:
        ValueError: it means neither.
    """
    word = str(value).strip(" .*`\"'[]()").casefold()
    if word in YES:
        return 1.0
    if word in NO:
        return 0.0
    raise ValueError(f"{value!r:.40} is neither yes nor no.")


def verdicts(text: str) -> set[float]:
    """Every verdict that the text gives: under one of `NAMES` in an object, on a line that says so, or at its start."""
    named = [next((item[name] for name in NAMES if name in item), None) for item in objects(text)]
    in_objects = {truth(value) for value in named if value is not None}
    spoken = outside_objects(text)
    words = [match[1] or match[2] for match in re.finditer(SAID, spoken, re.IGNORECASE | re.MULTILINE)]
    if not words and not in_objects:
        words = re.findall(BEGUN, spoken, re.IGNORECASE | re.MULTILINE)
    return in_objects | {truth(word) for word in words}


def reason_in(text: str) -> str:
    """The reason of the first JSON object that has one; else the beginning of the text."""
    reasons = [item["reason"] for item in objects(text) if item.get("reason")]
    return reason_of(reasons[0]) if reasons else first_words(text)


def reason_of(value: Any) -> str:
    """What stands under `reason`, in one line; empty where it is no text."""
    return first_words(value) if isinstance(value, str) else ""


def first_words(text: str) -> str:
    """The first 300 characters, in one line."""
    return " ".join(text.split())[:300]
