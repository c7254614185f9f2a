"""When two cells hold the same value, and whether a text holds a cell's value, however either is written."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

BLANK = frozenset({"", "-", "--", "---", "\u2013", "\u2014", "n/a", "na", "none", "null", "nan", "?"})
"""What stands for no value at all, in lower case."""

TOKEN = re.compile(r"(?P<time>\d{1,2}:\d\d(?!\d))|(?P<number>\d[\d,]*(?:\.\d+)?|\.\d+)|(?P<word>[^\W\d_]+)")
SIGNED = re.compile(r"(?:^|(?<=[\s(=$]))[-\u2212](?=[$\u20ac\u00a3]?[\d.])")
UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(f"{UNITS} sixteen seventeen eighteen nineteen twenty".split())
} | {
    word: f"{tens}0"
    for tens, word in enumerate(["thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 3)
}


def is_blank(cell: str) -> bool:
    """Whether a cell holds no value: it is empty, a dash, or says so."""
    return cell.strip().casefold() in BLANK


@lru_cache(maxsize=65_536)
def value_of(cell: str) -> str:
    """What a cell holds, apart from its form: equal values are equal strings; a blank cell's is empty.

    Words without case, accents' composition and punctuation; numbers without thousands separators, trailing
    zeros, currency and percent signs; number words up to ninety as digits; a full hour as its number. So 50,
    "50.0%" and "fifty" are the same, as are 12, "12:00" and "12.0".
    """
    return "" if is_blank(cell) else " ".join(_tokens(cell))


def same_form(one: str, other: str) -> bool:
    """Whether two cells are written alike, white space apart."""
    return " ".join(one.split()) == " ".join(other.split())


class Text:
    """A text that cells may be found in.

    Args:
        text: prose.
    """

    def __init__(self, text: str) -> None:
        self._tokens = f" {' '.join(_tokens(text))} "

    def holds(self, cell: str) -> bool:
        """Whether the cell's value stands in the text, as whole words and numbers in this order.

        What has neither words nor numbers, such as a tick, is held by every text: nothing can be said of it.
        """
        value = value_of(cell)
        return not value or f" {value} " in self._tokens


def _tokens(text: str) -> Iterator[str]:
    plain = SIGNED.sub(" minus ", unicodedata.normalize("NFKC", text).casefold())
    for match in TOKEN.finditer(plain):
        if match["time"]:
            hours, minutes = match["time"].split(":")
            yield str(int(hours)) if minutes == "00" else f"{int(hours)}:{minutes}"
        elif match["number"]:
            yield _plain_number(match["number"])
        else:
            yield NUMBER_WORDS.get(match["word"], match["word"])


def _plain_number(written: str) -> str:
    try:
        number = Decimal(written.replace(",", ""))
    except InvalidOperation:
        return written
    return f"{number.normalize():f}" if len(written) < 40 else written
