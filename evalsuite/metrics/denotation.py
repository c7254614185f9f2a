# ruff: noqa: RUF001 - Chinese punctuation
"""Compare answers about tables by their meaning, which may be numbers, dates, truth values, names, or lists.

Values are compared by type, as in the official evaluator of WikiTableQuestions (Pasupat and Liang, ACL 2015). Accents,
letter case, citations, and trailing details in parentheses are ignored. Numbers are equal within 1e-6. If the target
has several values, the answer must give each value. Unlike in the official evaluator, a number may have a unit or a
word such as "million", or be in Chinese numerals. Dates in any usual form and lists with any usual separator are also
read.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from evalsuite.metrics.numbers import parse_number

TOLERANCE = 1e-6
MOST_CHARACTERS, MOST_VALUES = 20_000, 500  # Maximum characters of an answer, and maximum values in a list.
_TRUTHS = dict.fromkeys(["yes", "true", "correct", "right", "是", "是的", "对", "正确", "真"], True)
_TRUTHS |= dict.fromkeys(["no", "false", "incorrect", "wrong", "否", "不", "不是", "错", "错误", "假"], False)
_MAGNITUDES = {
    "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12,
    "万": 1e4, "千": 1e3, "百万": 1e6, "千万": 1e7, "亿": 1e8, "万亿": 1e12,
}  # fmt: skip
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_UNITS = {
    other: unit
    for unit, others in {
        "$": ("usd", "us$", "dollar", "us dollar"), "€": ("eur", "euro"),
        "£": ("gbp", "pound sterling", "pounds sterling", "british pound"),
        "¥": ("元", "rmb", "cny", "yuan", "jpy", "yen"), "%": ("percent", "per cent", "pct"),
        "km": ("kilometer", "kilometre", "公里", "千米"), "m": ("meter", "metre", "米"),
        "cm": ("centimeter", "centimetre"),
        "ft": ("feet", "foot"), "mi": ("mile",), "kg": ("kilogram", "公斤", "千克"),
        "km2": ("sq km", "square kilometer", "square kilometre", "平方公里"),
        "m2": ("sq m", "square meter", "square metre", "平方米"), "mi2": ("sq mi", "square mile"),
    }.items()
    for other in others
}  # fmt: skip
_AMBIGUOUS = {"pound": {"£", "lb"}}
"""Ambiguous words for units, each with the units that it may mean."""
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATES = [
    re.compile(pattern)
    for pattern in (
        r"(?P<year>\d{4}|xx(?:xx)?)[-/.](?P<month>\d{1,2}|xx)[-/.](?P<day>\d{1,2}|xx)(?:[t ]00:00(?::00)?)?",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
        rf"(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)?[ -]{_MONTH}(?:,?[ -](?P<year>\d{{4}}))?",
        rf"{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?",
        rf"{_MONTH},? (?P<year>\d{{4}})",
        r"(?P<year>\d{4})-(?P<month>\d{2})",
        r"(?:(?P<year>\d{4}) ?年 ?)?(?P<month>\d{1,2}) ?月(?: ?(?P<day>\d{1,2}) ?[日号])?",
    )
]
_CHINESE_PART = re.compile(r"[零〇一二三四五六七八九十]{1,4}(?= ?[年月日号])")
_SPACED_THOUSANDS = re.compile(r"^\D{0,4}\d{1,3}(?: \d{3})+(?!\d)")
_AMOUNT = re.compile(
    r"(?:(?:(?:us)?(?P<before>[$€£¥])|(?P<code>usd|eur|gbp|cny|rmb|jpy))\s*)?(?P<number>[+-]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?)"
    r"\s*(?P<scale>thousand|million|mn|billion|bn|trillion|百万|千万|万亿|万|千|亿|(?<=\d)[km](?![a-z]))?\s*(?P<unit>[^\d\s,;][^\d,;]{0,30}(?:(?<=[a-wyz])\^?[23])?)?"
)
_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_PLACES = {"十": 10, "百": 100, "千": 1000}
_COMMA = r"\s*，\s*|\s*(?<!\d),\s*|,\s+|\s*,(?!\d{3}(?!\d))\s*"  # A comma that does not separate thousands.
_SEPARATORS = [re.compile(pattern) for pattern in (r"\n+", r"\t", r"\s*\|\s*", r"\s*[;；]\s*", r"\s*、\s*", _COMMA)]
# Values as Python, NumPy and pandas print them: `['a', 'b']`, `{'a'}`, `['a' 'b']`, `[1 2]`, `array([1, 2])`, a Series.
_PRINTED = re.compile(r"(?:[\w.]{1,30}\()?(?:\[(.*)\]|\((.*)\)|\{(.*)\})(?:, dtype=[^()]{1,30}\))?\)?", re.DOTALL)
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"")
_SERIES_END = re.compile(r"\n(?:Name: [^\n]*, )?(?:Length: \d+, )?dtype: \S+\s*$")
_AND = re.compile(r",?\s+(?:and|or|&)\s+|^(?:and|or)\s+|\s*(?:和|以及)\s*")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)、])\s+")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit; an empty unit matches any unit."""

    value: float
    unit: str = ""


Date = tuple[int | None, int | None, int | None]  # Year, month and day; None marks a part that is not given.


def denotation_match(
    prediction: str, target: str | Sequence[str], *, ordered: bool = False, distinct: bool = False
) -> float:
    """Return 1.0 if an answer denotes the same values as the target, otherwise 0.0.

    Args:
        prediction: the answer. If the target has several values, the answer is read as a list: JSON, lines,
            or values between tabs, bars, semicolons, commas or `、`.
        ordered: whether the values must come in the target's order.
        distinct: whether a repeated value counts only once, as in WikiTableQuestions' evaluator.
    """
    wanted = [target] if isinstance(target, str) else [str(value) for value in target]
    if distinct:
        wanted = _drop_repeated_values(wanted)
    if len(wanted) == 1 and normalise_value(prediction) == normalise_value(wanted[0]):
        # Compare the whole answer first, because the readings below would drop a leading `1.` or `-` as a list marker.
        return 1.0
    readings = _list_value_readings(prediction.strip()[:MOST_CHARACTERS], len(wanted), distinct=distinct)
    return float(any(_have_same_values(values, wanted, ordered=ordered) for values in readings))


def _drop_repeated_values(values: Sequence[str]) -> list[str]:
    texts = [(normalise_value(value), value) for value in values]
    return list({parse_date(text) or parse_amount(text) or text: value for text, value in texts}.values())


def is_same_value(one: str, other: str) -> bool:
    """Check whether two texts denote the same value; two texts with tabs are table rows, compared cell by cell."""
    if "\t" in one.strip() and "\t" in other.strip():
        cells, others = one.split("\t"), other.split("\t")
        return len(cells) == len(others) and all(map(is_same_value, cells, others))
    first, second = normalise_value(one), normalise_value(other)
    # Do not compare a text of several lines as a number, because its second line would be read as a unit.
    return first == second or ("\n" not in one.strip() + other.strip() and _have_equal_typed_values(first, second))


def _have_equal_typed_values(first: str, second: str) -> bool:
    """Tell whether two texts are equal truth values, equal dates or equal amounts."""
    if first in _TRUTHS and second in _TRUTHS:
        return _TRUTHS[first] == _TRUTHS[second]
    days = parse_date(first), parse_date(second)
    if days[0] is not None and days[1] is not None:
        return days[0] == days[1]
    amounts = parse_amount(first), parse_amount(second)
    if amounts[0] is None or amounts[1] is None:
        return False
    left, right = ({amount.unit} | _AMBIGUOUS.get(amount.unit, set()) for amount in amounts if amount)
    return (not left.isdisjoint(right) or "" in left | right) and abs(amounts[0].value - amounts[1].value) < TOLERANCE


def normalise_value(text: str) -> str:
    """Remove insignificant parts of a value: accents, case, quotes, citations, details in parentheses at the end."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))
    text = re.sub(r"[‘’´`]", "'", text)
    text = re.sub(r"[“”]", '"', text)
    text = re.sub(r"[‐‑‒–—−]", "-", text)
    text = re.sub(r"^\s*\*\*([^*]+)\*\*\s*$", r"\1", text)
    before = ""
    while before != text:
        before = text
        text = re.sub(r"(?<!^)(?:\[[^\]\[]{0,100}\]|[•♦†‡*#+])$", "", text.strip())
        text = re.sub(r"(?<=\S)\s*\([^()]{0,200}\)$", "", text.strip())
        text = re.sub(r'^"([^"]*)"$|^\'([^\']*)\'$', lambda match: match[1] or match[2] or "", text.strip())
    return re.sub(r"\s+", " ", text.removesuffix(".").removesuffix("。")).strip().lower()


def parse_date(text: str) -> Date | None:
    """Read a date in any usual form; a year alone is a number, not a date."""
    text = _CHINESE_PART.sub(lambda part: f"{_parse_chinese_number(part[0]):.0f}", text)
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            named = parts.get("name")
            month = _MONTHS.index(named[:3]) + 1 if named else _parse_date_part(parts.get("month"))
            year, day = _parse_date_part(parts.get("year")), _parse_date_part(parts.get("day"))
            return (year, month, day) if (month or 1) <= 12 and (day or 1) <= 31 and (month or day) else None
    return None


def _parse_date_part(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def parse_amount(text: str) -> Quantity | None:
    """Parse an amount such as "$5", "3 million", "7 km", "twelve" or a Chinese numeral; None for other texts."""
    text = _SPACED_THOUSANDS.sub(lambda number: number[0].replace(" ", ""), text)
    if text in _WORDS:
        return Quantity(float(_WORDS.index(text)))
    if text.startswith("百分之"):
        text = f"{text.removeprefix('百分之')}%"
    if (number := parse_number(text)) is not None:
        return Quantity(float(number.value), number.unit)
    match = _AMOUNT.fullmatch(text)
    if match is None:
        value = _parse_chinese_number(text.removesuffix("%"))
        return None if value is None else Quantity(value, "%" if text.endswith("%") else "")
    number = parse_number(match["number"])
    if number is None:
        return None
    written = (match["unit"] or "").strip().replace("^", "")
    unit = _UNITS.get(written) or _UNITS.get(written.rstrip("s"), written.rstrip("s"))
    scale = _MAGNITUDES.get(match["scale"] or "", 1.0)
    return Quantity(float(number.value) * scale, unit or match["before"] or _UNITS.get(match["code"] or "", ""))


def _parse_chinese_number(text: str) -> float | None:
    if len(text) > 1 and all(sign in _DIGITS for sign in text):  # 二〇二一
        return float("".join(str(_DIGITS[sign]) for sign in text))
    total = section = 0
    digit: int | None = None
    for sign in text:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif sign in _PLACES:
            section += (1 if digit is None else digit) * _PLACES[sign]
            digit = None
        elif sign in {"万", "亿"}:
            size, section = int(_MAGNITUDES[sign]), section + (digit or 0)
            if not section and not total:
                return None
            # 亿 multiplies everything before it (一万亿), but 万 multiplies only the part after an 亿 (一亿三千万).
            follows_larger = total % size == 0 and total >= size and section
            total = total + section * size if follows_larger else (total + section) * size
            section, digit = 0, None
        else:
            return None
    return float(total + section + (digit or 0)) if text else None


def _list_value_readings(text: str, count: int, *, distinct: bool) -> list[list[str]]:
    """List all ways to read an answer as exactly `count` values."""
    readings = [[text]] if count == 1 else []
    try:
        read = json.loads(text) if text.startswith("[") else None
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, list):
        readings.append([str(value) for value in read])
    inner, printed = _split_printed_array(text)
    readings.append(printed)
    if count > 1 or distinct:
        for separator in _SEPARATORS:
            parts = [part for part in separator.split(inner) if part.strip()]
            readings.append(parts)
            readings.append([*parts[:-1], *(part for part in _AND.split(parts[-1]) if part)] if parts else [])
    readings = [[_BULLET.sub("", value) for value in values] for values in readings if len(values) <= MOST_VALUES]
    if distinct:
        readings = list(map(_drop_repeated_values, readings))
    return [values for values in readings if len(values) == count]


def _split_printed_array(text: str) -> tuple[str, list[str]]:
    """Split a printed array, collection or pandas Series into the text between the brackets and a list of values."""
    body = _SERIES_END.sub("", re.sub(r"^<\w+>\n", "", text))
    if body != text and not body.startswith("["):
        return text, [parts[1] for line in body.split("\n") if len(parts := re.split(r"\s{2,}", line, maxsplit=1)) > 1]
    match = _PRINTED.fullmatch(body)
    inner = next((part for part in match.groups() if part is not None), "") if match else text
    if not match:
        return text, []
    if not _QUOTED.sub("", inner).strip(" ,\n"):
        return inner, [one or other for one, other in _QUOTED.findall(inner)]
    return inner, inner.split() if "," not in inner and all(map(parse_number, inner.split())) else []


def _have_same_values(values: Sequence[str], wanted: Sequence[str], *, ordered: bool) -> bool:
    if ordered:
        return all(map(is_same_value, values, wanted))
    left = list(values)
    for value in wanted:
        place = next((place for place, other in enumerate(left) if is_same_value(other, value)), None)
        if place is None:
            return False
        del left[place]
    return True
