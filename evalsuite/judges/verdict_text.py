"""Reads numbers and choices out of what judges write, as a person would who knows the question.

Every refusal of an answer that a reader would have understood costs another call. What stays refused is what
a reader could not settle either: two values that differ, a scale that is echoed, a number off the scale.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

THOUGHT = re.compile(r"<(think|thinking|thought)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
UNOPENED = re.compile(r"\A.*</(?:think|thinking|thought)>", re.DOTALL | re.IGNORECASE)
FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)
OPENING = r"^[ \t*#>|`_-]{0,20}(?:\d{1,2}[.)][ \t]{0,3})?[*`_\"']{0,4}"
LEAD = r"(?:(?:the|my|its|overall|final|total)[ \t]){0,3}"
"""Words that may stand before a label, as in `My final score: 8`."""
SEPARATOR = (
    r"(?:[ \t](?:score|rating))?(?:[ \t]?\([^()\n]{1,60}\))?[*`_\"']{0,4}"
    r"[ \t]{0,3}(?::|=|\||\bis\b|(?<=[ \t])[-\u2013](?=[ \t]))[ \t*`_\"'\[(]{0,6}"
)
NUMBER = r"(?P<number>[+-]?\d{1,12}(?:\.\d{1,12})?)"
OUT_OF = r"(?:[ \t]{0,3}(?:/|out of|of)[ \t]{0,3}(?P<scale>\d{1,12})(?![\w.]))?"
# A range, a list or a decimal comma after the number leaves open which number is meant.
NO_OTHER = (
    r"(?!\w|[.,]\d|[ \t]{0,3}(?:-|\u2013|/|to|or|and|of|out of|\.\.)[ \t]{0,3}\d|[ \t]{0,3}(?:%|percent))"
)
NO_CHOICE = r"(?![\w/]|[ \t*`\"']{0,4},?[ \t]{0,3}(?:or|and|of|to|-|/)?[ \t]{0,3}(?:answer )?(?:\d|tie\b))"
MOST_OBJECTS = 20
BEGUN_OBJECT = re.compile(r"\{\s{0,20}\"[^}]*\Z")


def without_thoughts(text: str) -> str:
    """The text without what the model thought aloud inside it.

    A thought that was cut off reaches to the end. One without a beginning, which chat templates may have put into the
    prompt, reaches back to it.
    """
    return UNOPENED.sub("", THOUGHT.sub("", text)).strip() if "<" in text else text.strip()


def said_numbers(label: str, text: str, high: float) -> list[float]:
    """Every number that the text gives under a label, in order.

    Understood are `label: 8`, `label = 8`, `label: [8]`, `**label:** 8/10`, `label: 8 out of 10`,
    `label: 8 (good)`, `The label is 8.`, `My final label: 8`, `| label | 8 |`, several labels in one line, and
    `{"label": 8}`.

    Args:
        label: at the beginning of a line or sentence, or after a comma or semicolon, in any case.
        text: what the judge wrote.
        high: the scale's upper end, which may stand after the number; another one may not.
    """
    spoken = outside_objects(text)
    begins = rf"(?:{OPENING}|[,;.][ \t]{{1,3}}[*`_]{{0,4}}){LEAD}"
    line = rf"{begins}{re.escape(label)}{SEPARATOR}{NUMBER}{OUT_OF}{NO_OTHER}"
    written = [
        float(match["number"])
        for match in re.finditer(line, spoken, re.IGNORECASE | re.MULTILINE)
        if match["scale"] is None or float(match["scale"]) == high
    ]
    return written or _under(label, text, high)


def number_alone(text: str, high: float) -> float | None:
    r"""The number, where a text is one and nothing else: `8`, `[[8]]`, `8/10`, `**8**.`, `8 (good)`, `\boxed{8}`."""
    match = re.fullmatch(
        r"[\s*`_\[({$\"']{0,6}(?:\\boxed\{)?(\d{1,12}(?:\.\d{1,12})?)(?:\s?(?:/|out of)\s?(\d{1,12}))?"
        r"[\s*`_\])}$\"'.]{0,6}(?:\([^()\n]{1,60}\)[.\s]{0,3})?",
        text,
    )
    if match is None or (match[2] is not None and float(match[2]) != high):
        return None
    return float(match[1])


def lone_number(text: str, high: float) -> float | None:
    """The number that is a whole answer, or its first or its last line beside an explanation.

    None where there is no such number, or the two lines have different ones.
    """
    lines = _first_and_last_line(text)
    numbers = {number for line in lines if (number := number_alone(line, high)) is not None}
    return numbers.pop() if len(numbers) == 1 else None


def _first_and_last_line(text: str) -> list[str]:
    lines = [line for line in outside_objects(text).splitlines() if line.strip()]
    return [*lines[:1], *lines[1:][-1:]]


def objects(text: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects in a text: the whole text, in a code fence, or amid prose; at most 20."""
    return (value for value, _, _ in _spans(text))


def outside_objects(text: str) -> str:
    """The text without its JSON objects, and without one that was begun and cut off.

    What a judge quotes in the reason that it gives inside of an object is no verdict of its own.
    """
    parts, at = [], 0
    for _, start, end in _spans(text):
        parts.append(text[at:start])
        at = end
    rest = text[at:]
    begun = BEGUN_OBJECT.search(rest)
    return "\n".join([*parts, rest[: begun.start()] if begun else rest])


def _spans(text: str) -> Iterator[tuple[Mapping[str, Any], int, int]]:
    """Each object with where it begins and ends."""
    decoder, at, read = json.JSONDecoder(object_pairs_hook=_settled), text.find("{"), 0
    while at >= 0 and read < MOST_OBJECTS:
        read += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value, at, end
        at = text.find("{", end)


def _settled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object.

    Raises:
        ValueError: a name is there twice with different values, of which Python's JSON would keep the last.
    """
    item: dict[str, Any] = {}
    for name, value in pairs:
        if item.setdefault(name, value) != value:
            raise ValueError(f"{name} is there twice")
    return item


def _under(label: str, text: str, high: float) -> list[float]:
    values = [value for item in objects(text) for value in _values(item, label.casefold(), high)]
    return [float(value) for value in values if isinstance(value, int | float) and abs(value) < 1e12]


def _values(item: Mapping[str, Any], label: str, high: float) -> Iterator[Any]:
    for name, value in item.items():
        if name.casefold() == label and not isinstance(value, bool):
            yield _number(value, high)
        elif isinstance(value, dict):
            yield from _values(value, label, high)


def _number(value: Any, high: float) -> Any:
    if isinstance(value, dict):
        value = value.get("score", value.get("value"))
    return number_alone(value, high) if isinstance(value, str) else value


def chosen(text: str, options: Mapping[str, Sequence[str]]) -> list[str]:
    """Every option that a verdict in the text names, in order.

    Understood are `Verdict: 1`, `Verdict: Answer 1`, `verdict is "1"`, `Winner: 1`, `[[1]]`, `{"verdict": "1"}`, and
    as the first or last line `1`, `Answer 1` and `Answer 1 is better.`

    Args:
        text: what the judge wrote.
        options: by their meaning, the words that name each.
    """
    meanings = {word.casefold(): meaning for meaning, words in options.items() for word in words}
    either = "|".join(re.escape(word) for word in sorted(meanings, key=len, reverse=True))
    label = r"\b(?:verdict|winner)[*`_\"' \t]{0,6}(?::|=|\bis\b)[*`_\"'\[(\s]{0,6}"
    spoken = rf"{label}(?:answer )?({either}){NO_CHOICE}"
    words = [match[1] for match in re.finditer(spoken, text, re.IGNORECASE)]
    words = words or [match[1] for match in re.finditer(rf"\[\[({either})\]\]", text, re.IGNORECASE)]
    words = words or [
        str(value)
        for item in objects(text)
        for name, value in item.items()
        if name.casefold() in {"verdict", "winner"} and str(value).casefold() in meanings
    ]
    better = r"(?: is (?:the )?better(?: answer| one)?)?"
    alone = rf"[ \t*`_\"'\[(]{{0,6}}(?:answer )?({either}){better}[ \t*`_\"')\].]{{0,6}}"
    words = words or [
        match[1] for line in _first_and_last_line(text) if (match := re.fullmatch(alone, line, re.IGNORECASE))
    ]
    return [meanings[word.casefold()] for word in words]
