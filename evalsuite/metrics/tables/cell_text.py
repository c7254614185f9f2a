"""What a cell says, apart from how its markup writes it: emphasis, entities and formulas become plain text."""

# ruff: noqa: RUF001 - characters that look like others are what this is about

from __future__ import annotations

import html
import re
from functools import lru_cache

from evalsuite.metrics.tables.cell_values import value_of

EMPHASIS = re.compile(r"(\*\*|__|~~|`)(?=\S)(.+?)(?<=\S)\1")
ESCAPE = re.compile(r"\\([*_`~#|<>&%$\[\](){}+.!-])")
FORMULA = re.compile(r"\$[^$]+\$|\\[a-zA-Z(\[]|[_^]\{")
DELIMITER = re.compile(r"\$+|\\[()\[\]]")
POWER = re.compile(r"(?<=\d)\s?[×·]\s?10\s?\^\s?\{?([-+−]?\d{1,2})\b\}?")
SCRIPT = re.compile(r"[_^](?=\S)")
BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
ROUND = str.maketrans({"∗": "*", "⋆": "*", "ˆ": "^", "⁄": "/", "∕": "/", "µ": "μ"})
LONGEST_CELL = 2_000
"""Characters of a cell that are compared; no cell of a table that people read has more."""


@lru_cache(maxsize=65_536)
def cell_value(text: str) -> str:
    r"""What is compared of a cell: equal values are equal strings, and a blank cell's is empty.

    Read from any markup: `12.3 $\pm$ 0.1` and `$12.3\pm0.1$` are equal, as are `**7**` and 7, H$_2$O and
    H<sub>2</sub>O, `$\gamma$` and the letter itself; for words and numbers see `value_of`.
    """
    return value_of(plain_text(text[:LONGEST_CELL]))


def plain_text(text: str) -> str:
    """The text of a cell without markup of any of the three kinds."""
    if text.isalnum():
        return text
    if "<" in text:
        text = TAG.sub("", BREAK.sub(" ", text))
    if "](" in text:
        text = LINK.sub(r"\1", text)
    if "&" in text:
        text = html.unescape(text)
    if FORMULA.search(text):
        text = _read_formula(text)
    elif "\\" in text:
        text = ESCAPE.sub(r"\1", text)
    text = EMPHASIS.sub(r"\2", text)
    if "^" in text:
        text = POWER.sub(r"e\1", text)
    return SCRIPT.sub("", text).translate(ROUND)


def _read_formula(text: str) -> str:
    from evalsuite.metrics.tables.readers.latex_text import TextReader
    from evalsuite.metrics.tables.readers.latex_tokens import LatexSource

    # A percent sign outside of LaTeX begins no comment.
    source = LatexSource(re.sub(r"(?<!\\)%", r"\%", DELIMITER.sub("", text)))
    return TextReader(source).read_all(0, len(source.tokens))
