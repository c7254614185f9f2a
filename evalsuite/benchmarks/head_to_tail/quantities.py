"""Numbers as answers: in figures, in words, with the unit that the question names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalsuite.metrics.numbers import parse_number

if TYPE_CHECKING:
    from collections.abc import Iterable

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_UNIT = re.compile(
    r"\b(?:in|how many) (minutes|hours|days|years|pages|episodes|met(?:re|er)s|kilomet(?:re|er)s|miles)\b",
    re.IGNORECASE,
)


def number_variants(answer: str, question: str) -> Iterable[str]:
    """Other ways to write an answer that is a whole number; none if it is not one."""
    value = _whole(answer)
    if value is None:
        return
    yield str(value)
    yield f"{value:,}"
    if 0 <= value < 1000:
        yield from dict.fromkeys((in_words(value), in_words(value).replace("-", " ")))
    if unit := _UNIT.search(question):
        yield from _with_unit(value, unit[1].lower())


def in_words(number: int) -> str:
    """A number from 0 to 999 in English words: "twenty-one", "three hundred and five"."""
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens = _TENS[number // 10 - 2]
        return f"{tens}-{_SMALL[number % 10]}" if number % 10 else tens
    hundreds = f"{_SMALL[number // 100]} hundred"
    return f"{hundreds} and {in_words(number % 100)}" if number % 100 else hundreds


_FIGURES = {
    spelt: number
    for number in range(1000)
    for spelt in (in_words(number), in_words(number).replace("-", " "))
}


def _whole(answer: str) -> int | None:
    if (number := _FIGURES.get(answer.strip().lower())) is not None:
        return number
    read = parse_number(answer)
    # An ISBN or a telephone number that begins with a nought is a text of digits, not a quantity.
    if read is None or read.unit or re.match(r"0\d", answer.strip()):
        return None
    return int(read.value) if abs(read.value) < 10**15 and read.value == int(read.value) else None


def _with_unit(value: int, unit: str) -> Iterable[str]:
    yield f"{value} {unit}"
    yield f"{value} {unit.removesuffix('s')}"
    if unit == "minutes":
        hours, minutes = divmod(value, 60)
        yield f"{value} min"
        yield f"{hours} hours {minutes} minutes"
        yield f"{hours} hours and {minutes} minutes"
        yield f"{hours} hour {minutes} minutes"
        yield f"{hours}h {minutes}m"
