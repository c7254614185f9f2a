"""Read and compare cells regardless of their markup: emphasis, entities and formulas become plain text."""

# ruff: noqa: RUF001 - this module compares characters that look like others

import html
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from evalsuite.metrics.numbers import NUMBER_WORDS, ONES, TENS

EMPHASIS = re.compile(r"(\*\*|__|~~|`)(?=\S)(.+?)(?<=\S)\1")
ESCAPE = re.compile(r"\\([*_`~#|<>&%$\[\](){}+.!-])")
FORMULA = re.compile(r"""\$[^$]+\$|\\[a-zA-Z(\[]|\\['"`^]\{?[a-zA-Z]|[_^]\{""")
POWER = re.compile(r"(?<=\d)\s?[×·]\s?10\s?\^\s?\{?([-+−]?\d{1,2})\b\}?")
SCRIPT = re.compile(r"[_^](?=\S)")
SUPERSCRIPT = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b]+")
SUBSCRIPT = re.compile("[\u2080-\u2089]+")
BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
HTML_SCRIPT = re.compile(r"(?<=\w)<(su[pb])\b[^<>]*>(?=[-+\u2212]?\d)", re.IGNORECASE)
"""Matches the start of a superscript or subscript with a number, because 10<sup>3</sup> is not 103."""
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
LOOK_ALIKE = (
    "-‐‑‒–—―−﹘﹣", "'’‘ʼ′´", '"“”„‟', "✓✔☑✅🗸", "✗✘✖✕☒❌❎╳🗙", "∘○◦⚬◯", "·•⋅∙‧●", "→➔➜➝⟶", "←⟵", "↑⬆", "↓⬇", "⇒⟹",
    "⇐⟸", "*∗⋆", "^ˆ", "/⁄∕", "μµ", "Δ∆", "×⨯", "∥‖", "|∣", ":∶", "~∼˜", "≤⩽≦", "≥⩾≧", "⟨〈", "⟩〉",
)  # fmt: skip
"""Groups of characters that look alike; each character is replaced by the first of its group."""
SAME_SIGN = str.maketrans(
    {char: group[0] for group in LOOK_ALIKE for char in group[1:]} | {"″": "''", "\ufe0e": "", "\ufe0f": ""}
)
MARKUP = re.compile(r"[<&\\$*_~`^]|\]\(")  # A character that may be ASCII markup.
LONGEST_CELL = 2_000  # Maximum compared characters of a cell; cells in usual tables are shorter.


@lru_cache(maxsize=65_536)
def normalise_cell(text: str) -> str:
    r"""Return a cell's value without markup, normalised so that equal values give equal texts; empty for a blank cell.

    Markup of any kind is removed: `12.3 $\pm$ 0.1` equals `$12.3\pm0.1$`, `**7**` equals 7, H$_2$O equals
    H<sub>2</sub>O, and `$\gamma$` equals the letter itself. `read_cell_value` also normalises words and numbers.
    """
    if text[:1].isdigit() and PLAIN_NUMBER.fullmatch(text):
        return _shorten_number(text)
    text = text[:LONGEST_CELL]
    if text.isascii() and text.replace(" ", "").isalpha():
        words = " ".join([NUMBER_WORDS.get(word, word) for word in text.lower().split()])
        return ABSENT_VALUE if words in ABSENT else words
    plain = strip_cell_markup(text)
    if plain.strip().casefold() in ABSENT:
        return ABSENT_VALUE
    return "✗" if plain.strip() == "×" else read_cell_value(plain)


def strip_cell_markup(text: str) -> str:
    """Remove all markup from a cell's text."""
    return SCRIPT.sub("", _strip_markup_except_scripts(text)) if _may_have_markup(text) else text


def _may_have_markup(text: str) -> bool:
    return not text.isascii() or MARKUP.search(text) is not None


def _strip_markup_except_scripts(text: str) -> str:
    """Remove the markup, but keep `_` and `^` as marks of subscripts and superscripts."""
    if not _may_have_markup(text):
        return text
    text = HTML_SCRIPT.sub(lambda script: "^" if script[1].lower() == "sup" else "_", text)
    text = TAG.sub("", BREAK.sub(" ", text))
    text = html.unescape(LINK.sub(r"\1", text))
    if FORMULA.search(text):
        from evalsuite.metrics.tables.latex_text import LatexSource, TextReader

        # Outside of LaTeX, a percent sign does not begin a comment.
        source = LatexSource(re.sub(r"(?<!\\)%", r"\%", text))
        text = TextReader(source).read_text_of_tokens(0, len(source.tokens))
    elif "\\" in text:
        text = ESCAPE.sub(r"\1", text)
    text = EMPHASIS.sub(r"\2", text)
    if not text.isascii():
        text = SUPERSCRIPT.sub(lambda match: f"^{unicodedata.normalize('NFKC', match[0])}", text)
        text = SUBSCRIPT.sub(lambda match: f"_{unicodedata.normalize('NFKC', match[0])}", text)
        text = text.replace("^′", "′").translate(SAME_SIGN)
    return POWER.sub(r"e\1", text)


BLANK = frozenset({"", "-", "--", "---", "\u2013", "\u2014", "n/a", "na", "none", "null", "nan", "?"})
"""Texts that stand for a missing value, in lower case."""
ABSENT = frozenset({"n/a", "na", "none", "null", "nan", "?"})
"""Texts that state that a value is missing, unlike a blank cell or a dash."""
ABSENT_VALUE = "n/a"
ACCENT = r"[\u0300-\u036f\u20d0-\u20f0]"  # Characters that combine with the letter before them.
TOKEN = re.compile(
    r"(?P<time>(?<!\d)\d{1,2}:\d\d(?::\d\d)?(?![\d:]))"
    r"|(?P<minus>\bminus\s+[$\u20ac\u00a3]?(?=[\d.]))?(?:(?P<scientific>(?<![\w.])\d+(?:\.\d+)?(?:e|\s?e\s?[-+\u2212]\s?)\d{1,2}(?![\w.]))"
    r"|(?P<number>\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+))"
    # Grades such as A+, because A+ differs from A.
    r"|(?P<mark>(?<!\w)[^\W\d_](?:[+#]+|[-\u2212](?!\w)))"
    rf"|(?P<word>(?<![^\W\d_])(?:{'|'.join(TENS)})-(?:{'|'.join(ONES)})(?![^\W\d_])|(?:[^\W\d_]|{ACCENT})+)"
    r"|(?P<bound>[<>\u2264\u2265])"
)
SIGNED = re.compile(r"(?:^|(?<=[\s(=$\u20ac\u00a3]))[-\u2212\u2013](?=[$\u20ac\u00a3]?[\d.])")
GROUPED = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?:[ '\u2019]\d{3})+(?![ '\u2019]?\d|\w)")
FIXED_SPACE = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
"""Spaces that separate thousands between digits. An ordinary space is excluded: it may separate two numbers."""
PLAIN_NUMBER = re.compile(r"[0-9]{1,14}(?:\.[0-9]{1,14})?")
TWO_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)? [0-9]+(?:\.[0-9]+)?")
LONGEST_NUMBER = 28  # Maximum digits of a number; a longer number is compared as text, because it would be rounded.


def is_blank(cell: str) -> bool:
    """Tell whether a cell has no value: it is empty, a dash, or a word like "null"."""
    return cell.strip().casefold() in BLANK


@lru_cache(maxsize=65_536)
def read_cell_value(cell: str) -> str:
    """Normalise a cell's value so that equal values give equal texts, whatever their form; empty for a blank cell.

    Words lose case and punctuation, and their accents are composed. Numbers lose thousands separators, trailing zeros,
    currency signs and percent signs. Number words up to ninety-nine become digits, and a full hour such as 12:00
    becomes 12. For example, 50, "50.0%" and "fifty" are equal, as are 12, "12:00" and "12.0", or 1200 and "1.2e3".
    Signs that change the meaning are kept: 5 differs from "< 5", and A from "A+".
    """
    if is_blank(cell):
        return ""
    # Use the text itself if a cell (such as a tick) has neither words nor numbers.
    ungrouped = GROUPED.sub(lambda number: re.sub(r"\D", "", number[0]), cell)
    return " ".join(_split_normalised_tokens(ungrouped)) or " ".join(unicodedata.normalize("NFKC", cell).split())


class SearchedText:
    """A text that can be searched for the values of cells."""

    def __init__(self, text: str) -> None:
        self._tokens = f" {' '.join(_split_normalised_tokens(text))} "
        self._distinct = frozenset(self._tokens.split())

    def contains_value(self, cell: str) -> bool:
        """Tell whether the text contains the cell's value as whole words and numbers, in the cell's order.

        A cell with neither words nor numbers (such as a tick) counts as contained, because it cannot be searched for.
        """
        tokens = " ".join(_split_normalised_tokens(cell))
        # Also search for the separate tokens, because `read_cell_value` may join two numbers as separated thousands.
        return not tokens or any(f" {value} " in self._tokens for value in (read_cell_value(cell), tokens))

    def contains_all_words(self, cell: str) -> bool:
        """Tell whether the text contains the cell's value, or at least all of its words and numbers in any order."""
        return self.contains_value(cell) or self._distinct.issuperset(_split_normalised_tokens(cell))


def _split_normalised_tokens(text: str) -> Iterator[str]:
    composed = unicodedata.normalize("NFKC", FIXED_SPACE.sub(",", text))
    plain = SIGNED.sub(" minus ", composed.casefold())
    for match in TOKEN.finditer(plain):
        if match["time"]:
            hours, *rest = match["time"].split(":")
            while rest and rest[-1] == "00":
                rest.pop()
            yield ":".join([str(int(hours)), *rest])
        elif number := match["number"] or match["scientific"]:
            yield _normalise_number("".join(number.replace("\u2212", "-").split()), "-" if match["minus"] else "")
        elif match["word"]:
            yield NUMBER_WORDS.get(match["word"], match["word"])
        else:
            yield match[0].replace("\u2212", "-")


def _normalise_number(digits: str, sign: str) -> str:
    if len(digits) > LONGEST_NUMBER:
        return sign + digits
    plain = digits.replace(",", "")
    number = f"{Decimal(plain):f}" if "e" in plain else plain
    shortest = _shorten_number(number)
    return shortest if shortest == "0" else sign + shortest


def _shorten_number(number: str) -> str:
    """Remove the zeros that do not change a number's value."""
    whole, _, fraction = number.partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


CellVerdict = Literal["same", "other form", "sign missing", "differs", "missing", "unwanted", "blank"]
"""`sign missing`: the values are equal, but one side lacks a sign. `missing`: the cell is blank although a value was
wanted. `unwanted`: the cell has a value although a blank was wanted. `blank`: both cells are blank.
"""
EQUAL: frozenset[CellVerdict] = frozenset({"same", "other form", "blank"})
"""Verdicts of cells that do not lower the content score."""
INCOMPLETE = 0.5  # Score of a cell with the right value that lacks a sign, a row name, a column name or a spanned copy.
EMPHASIZED = re.compile(r"(?<![\w*])\*(?=\S)([^*]+)(?<=\S)\*(?![\w*])")
SIGNS = (re.compile(r"[*†‡]+(?!\w)"), re.compile(r"(?<![\w'])[^\W\d_]('+)(?!\w)"))
"""Marks of significance, and primes of letters."""
ARROWS = frozenset("↑↓→←⇑⇓⇒⇐")
KINDS = dict.fromkeys("%‰#", "Sc") | dict.fromkeys("✓✗°©®™", "")
"""Exceptions to Unicode's categories: `%‰#` count as signs of currency; the others are not signs of a value."""
IN_ACCOUNTS = re.compile(r"\(\s*[$€£]?\s*(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?\s*%?\s*\)")
"""A number in parentheses, which is negative in accounting."""
POWER_OF_NUMBER = re.compile(r"\d\s*\^[{\s]*[-+\u2212]?\d")


def compare_cells(predicted: str, wanted: str) -> CellVerdict:
    """Compare a predicted cell with the wanted cell, and return the verdict; the cells may contain markup."""
    value, target = normalise_cell(predicted), normalise_cell(wanted)
    blank = {"", ABSENT_VALUE}
    if target in blank and value not in blank:
        return "unwanted"
    if value in blank and target not in blank:
        return "missing"
    if value != target:
        return "sign missing" if _differ_in_accents_or_blankness(value, target) else "differs"
    signs = _compare_signs(predicted, wanted)
    if signs < 1.0:
        return "sign missing" if signs else "differs"
    if strip_cell_markup(predicted).split() != strip_cell_markup(wanted).split():
        return "other form"
    return "blank" if target in blank else "same"


@lru_cache(maxsize=65_536)
def measure_cell_similarity(one: str, other: str) -> float:
    """Measure the similarity of two cells, from 0 to 1: compare their values, then signs such as units and arrows.

    Cells with equal values and equal signs count 1.0. Cells count at least `INCOMPLETE` if only one has a sign (an
    arrow, stars of significance, a unit, a power, a prime, accents, accounting parentheses). If the cells have
    contradictory signs, they count 0.0, because their meanings differ.

    A missing or unwanted value counts 0. For other different values, twice the length of the longest common subsequence
    is divided by both cells' total length. Cells without letters are compared number by number, because a number is
    right or wrong, and in order (the result 3-2 is not 2-3). Cells with letters are compared by characters: quotients
    from 1/2 to 1 are mapped to [0, 1]. Smaller quotients count 0, because unrelated words reach them.
    """
    value, target = normalise_cell(one), normalise_cell(other)
    if value == target:
        return _compare_signs(one, other)
    if TWO_NUMBERS.fullmatch(f"{value} {target}"):
        return 0.0
    import Levenshtein

    if not value or not target:
        alike = 0.0
    elif value[0].isalpha() or any(map(str.isalpha, value + target)):
        alike = max(0.0, 2 * Levenshtein.ratio(value, target, score_cutoff=0.5) - 1)
    else:
        alike = Levenshtein.ratio(value.split(), target.split())
    return INCOMPLETE if alike < INCOMPLETE and _differ_in_accents_or_blankness(value, target) else alike


def _differ_in_accents_or_blankness(value: str, target: str) -> bool:
    """Tell whether one value is the other without accents, or one is blank and the other is a word such as "n/a"."""
    if value.isascii() and target.isascii():
        return not (value and target) and ABSENT_VALUE in (value, target)
    plain = {re.sub(ACCENT, "", unicodedata.normalize("NFD", side)) for side in (value, target)}
    return plain in ({value}, {target}, {"", ABSENT_VALUE})


def _compare_signs(one: str, other: str) -> float:
    """Return 1.0 for equal signs, `INCOMPLETE` if one cell lacks signs, and 0.0 for contradictory signs."""
    if one == other:
        return 1.0
    first, second = (_strip_markup_except_scripts(side[:LONGEST_CELL]) for side in (one, other))
    lacks = (IN_ACCOUNTS.fullmatch(first.strip()) is None) != (IN_ACCOUNTS.fullmatch(second.strip()) is None)
    scripts = [sorted(SCRIPT.findall(text)) for text in (first, second)]
    if len(scripts[0]) == len(scripts[1]) and scripts[0] != scripts[1]:
        return 0.0
    lacks |= scripts[0] != scripts[1] and any(
        POWER_OF_NUMBER.search(text) and not there for text, there in ((first, scripts[1]), (second, scripts[0]))
    )
    for signs, others in zip(_list_signs(first), _list_signs(second), strict=True):
        if signs != others:
            if signs and others and len(signs) == len(others):
                return 0.0
            lacks = True
    return INCOMPLETE if lacks else 1.0


def _list_signs(text: str) -> list[list[str]]:
    """List a cell's signs, one list per kind: symbols, units, marks of significance and primes."""
    plain = EMPHASIZED.sub(r"\1", text)
    kinds = [(char, KINDS.get(char, unicodedata.category(char))) for char in plain if not char.isalnum()]
    symbols = [char for char, kind in kinds if kind == "So" or char in ARROWS]
    units = [char for char, kind in kinds if kind == "Sc"]
    return [symbols, units, *(group.findall(plain) for group in SIGNS)]
