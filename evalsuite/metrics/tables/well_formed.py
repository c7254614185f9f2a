"""Whether markup is complete, as far as it can be told without a browser or a TeX."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.metrics.tables.any_markup import MarkupReading

PAIRED_TAG = re.compile(
    r"<(/?)(table|thead|tbody|caption|b|strong|i|em|a|sup|sub|span|div)\b[^<>]*?(/?)>", re.IGNORECASE
)
LATEX_PIECE = re.compile(
    r"\\(begin|end)\s*\{([^{}]*)\}|(?<!\\)(?:\\\\)*%[^\n]*|\\verb\*?([^a-zA-Z\s]).*?\3|\\.|([{}])|(\$\$?)",
    re.DOTALL,
)
NAMES = re.compile(
    r"\\(?:label|[a-zA-Z]*ref|cite[a-z]*|url|href|includegraphics|input|bibliography)\*?(?:\[[^\]]*\])*\s*\{[^{}]*\}"
)
"""Arguments in which an underscore is a letter."""
FORMULA = re.compile(r"(?<!\\)(\$\$?)(?:\\.|[^$\\])*\1", re.DOTALL)
OTHER_FORMULA = re.compile(
    r"\\[(\[]|\\ensuremath|\\begin\s*\{(?:NiceA|a)rray|\\begin\s*\{(?:equation|align|gather|math|displaymath)"
)
FORMULA_SIGN = re.compile(r"(?<!\\)[_^#]")
VERBATIM_OR_COMMENT = re.compile(r"\\verb\*?([^a-zA-Z\s]).*?\1|(?<!\\)%[^\n]*")
NO_COLUMNS = re.compile(r"\\begin\s*\{(tabular|longtable|array)\}\s*+(?:\[[^\]]*\]\s*+)?+(?!\{)")


def faults(reading: MarkupReading) -> list[str]:
    """What is wrong with the markup of an answer, each in a few words; empty where nothing is."""
    check = {"html": _html_faults, "latex": _latex_faults, "markdown": _markdown_faults}[reading.markup]
    return list(check(reading))


def _html_faults(reading: MarkupReading) -> Iterator[str]:
    opened: Counter[str] = Counter()
    for ends, tag, itself in PAIRED_TAG.findall(reading.text):
        if not itself:
            opened[tag.lower()] += -1 if ends else 1
    # These may be left out by HTML's own rules.
    yield from (
        f"<{tag}> is not balanced" for tag, count in opened.items() if count and tag not in {"thead", "tbody"}
    )


def _latex_faults(reading: MarkupReading) -> Iterator[str]:
    yield from _pairs_unbalanced(reading.text)
    for table in reading.tables:
        if table.alignment and table.width > len(table.alignment):
            yield f"a row of {table.width} cells in {len(table.alignment)} columns"


def what_tex_refuses(reading: MarkupReading) -> Iterator[str]:
    """What is complete LaTeX but would not compile, each in a few words.

    Where HTML or raw text was wanted nobody compiles anything, so it is asked for LaTeX alone.
    """
    if reading.markup != "latex":
        return
    if environment := NO_COLUMNS.search(reading.text):
        yield f"{environment[1]} without its columns"
    if not OTHER_FORMULA.search(reading.text) and (sign := _sign_outside_formulas(reading.text)):
        yield f"{sign} outside of a formula"
    if any(table.stray_rules for table in reading.tables):
        yield "a horizontal rule within a row"


def _pairs_unbalanced(text: str) -> Iterator[str]:
    """Environments, braces and formulas that do not end, or end where they did not begin."""
    open_: list[str] = []
    formulas: Counter[str] = Counter()
    for match in LATEX_PIECE.finditer(text):
        opens, name, _, brace, dollar = match.groups()
        if dollar:
            formulas[dollar] += 1
        elif brace == "{" or opens == "begin":
            open_.append(name or "{")
        elif brace or opens == "end":
            expected = name or "{"
            if not open_ or open_.pop() != expected:
                yield f"{expected!r} ends where it did not begin"
                return
    if open_:
        yield f"{open_[-1]!r} does not end"
    yield from (f"a formula does not end ({sign})" for sign, count in formulas.items() if count % 2)


def _sign_outside_formulas(text: str) -> str:
    """The first sign of a subscript, superscript or parameter where TeX refuses it; empty without any."""
    plain = VERBATIM_OR_COMMENT.sub("", NAMES.sub("", text))
    match = FORMULA_SIGN.search(FORMULA.sub("", plain))
    return match[0] if match else ""


def _markdown_faults(reading: MarkupReading) -> Iterator[str]:
    for table in reading.tables:
        if len({len(row) for row in table.rows}) > 1:
            yield "rows of different lengths"
