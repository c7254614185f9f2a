"""Compare numbers, regardless of how they are written."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Decimal, InvalidOperation, localcontext
from numbers import Integral, Real

from evalsuite.metrics.text import FULL_WIDTH

ROUNDING = Decimal("1e-12")  # Relative tolerance for decimal fractions, because programs print rounding errors.
SIGNS = {ord(char): "-" for char in "\u2010\u2011\u2012\u2013\u2212\ufe63"}
_SEPARATORS = {ord(char): "," for char in "\u00a0\u2009\u202f\u066c"} | {0x066B: "."}
_IN_ASCII: Mapping[int, int | str] = {**FULL_WIDTH, **SIGNS, **_SEPARATORS}
_NUMBER = re.compile(
    r"""(?P<sign>[+-]?)\s*
    (?P<before>[^\d\s.,+-]?)\s*
    (?P<inner>-?)
    (?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)
    (?:(?:[eE]|\s*[x\u00d7]\s*10\^)(?P<exponent>[+-]?\d+))?
    \s*(?P<after>[^\d\s.,+-]?)""",
    re.VERBOSE | re.ASCII,
)
ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
NUMBER_WORDS = (
    {word: str(number) for number, word in enumerate(["zero", *ONES, *TEENS])}
    | {word: f"{tens}0" for tens, word in enumerate(TENS, 2)}
    | {f"{word}-{one}": f"{tens}{digit}" for tens, word in enumerate(TENS, 2) for digit, one in enumerate(ONES, 1)}
)
"""Number words from zero to ninety-nine, with their digits."""


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number and its unit: `%`, a currency sign or nothing; 12.5% has the value 12.5."""

    value: Decimal
    unit: str = ""


def numeric_match(prediction: object, target: object) -> float:
    """Return 1.0 if both arguments are equal numbers, otherwise 0.0.

    The whole text must be one number; `parse_number` describes how it may be written. Whole numbers are compared
    exactly; other numbers are compared with a relative tolerance of 1e-12. A percentage equals its number (12.5% =
    12.5) only if the target is a percentage. Two numbers with different currency signs are unequal; a currency sign on
    one side alone is ignored. An argument that is not a finite number (text, a truth value, infinity, not-a-number) is
    unequal to every argument, even to itself.
    """
    predicted, wanted = parse_number(prediction), parse_number(target)
    if predicted is None or wanted is None:
        return 0.0
    units = {predicted.unit, wanted.unit}
    if len(units) > 1 and ("" not in units or predicted.unit == "%"):
        return 0.0
    one, other = predicted.value, wanted.value
    if one == other:
        return 1.0
    with localcontext(prec=40, Emax=MAX_EMAX, Emin=MIN_EMIN) as context:
        context.clear_traps()
        whole = one == one.to_integral_value() and other == other.to_integral_value()
        return float(not whole and abs(one - other) <= max(abs(one), abs(other)) * ROUNDING)


def parse_number(written: object) -> Number | None:
    """Read a number or its text; return None for anything else.

    A number may have a sign (also Unicode's minus and dashes), a decimal point (.5, 42.) and an exponent (1.5e3,
    1.5x10^3). Commas or no-break spaces may separate thousands (1,234). Digits of any script are read, also
    full-width digits. One currency sign or percent sign and surrounding blanks are allowed. Numbers among words,
    fractions (1/2), decimal commas and other units are not read.
    """
    if isinstance(written, str):
        chars = written.strip().translate(_IN_ASCII)
        text = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in chars)
        return _read_matched_number(match) if (match := _NUMBER.fullmatch(text)) else None
    if isinstance(written, bool) or not isinstance(written, Real):
        return None
    value = Decimal(int(written)) if isinstance(written, Integral) else Decimal(repr(float(written)))
    return Number(value) if value.is_finite() else None


def _read_matched_number(match: re.Match[str]) -> Number | None:
    sign, before, inner, digits, exponent, after = map(str, match.groups(""))
    unit = before or after
    if (before and after) or (sign and inner) or before == "%":
        return None
    if unit not in {"", "%"} and unicodedata.category(unit) != "Sc":
        return None
    try:
        value = Decimal(f"{sign or inner}{digits.replace(',', '')}e{exponent or 0}")
    except InvalidOperation:  # The text is a number, but its exponent has too many digits.
        return None
    return Number(value, unit)
