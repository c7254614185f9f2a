"""How a judge says yes or no, and why, in JSON or in lines of text."""

from __future__ import annotations

import re
from typing import Any

from evalsuite.judging.verdict_text import objects, outside_objects

YES = frozenset({"yes", "true", "met", "pass", "passed", "supported", "1"})
NO = frozenset({"no", "false", "unmet", "not met", "fail", "failed", "unsupported", "not supported", "0"})
ANSWER = (
    r"[*`_\"'\[(]{0,4}(yes|no|true|false|pass|fail|not met|met|not supported|supported|unsupported)(?!\w)"
)

SAID = rf"\b(?:verdict|answer|decision)[*`_\"' \t]{{0,6}}[:=][*`_\"'\[(\s]{{0,6}}{ANSWER}"
BEGUN = rf"^\W{{0,6}}{ANSWER}(?=[*`_\"' \t]{{0,4}}(?:[,.:;!)\]-]|$))"
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
    """Every verdict that the text gives: under `verdict` in a JSON object, on a line that says so, or at its start."""
    in_objects = {truth(item["verdict"]) for item in objects(text) if "verdict" in item}
    spoken = outside_objects(text)
    words = re.findall(SAID, spoken, re.IGNORECASE)
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
