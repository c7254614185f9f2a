r"""The text that LaTeX prints: groups and formatting macros leave what they hold, symbols become characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.grid import tidy
from evalsuite.metrics.tables.readers import latex_macros as macros

if TYPE_CHECKING:
    from evalsuite.metrics.tables.readers.latex_tokens import LatexSource

TABULARS = frozenset({
    "tabular", "tabular*", "tabularx", "tabulary", "xltabular", "longtable", "longtable*", "supertabular",
    "supertabular*", "mpsupertabular", "xtabular", "xtabular*", "mpxtabular", "tabu", "longtabu", "tblr", "longtblr",
    "talltblr", "NiceTabular", "NiceTabular*", "NiceTabularX", "NiceArray", "array", "deluxetable", "deluxetable*",
    "tabbing",
})  # fmt: skip
WIDTH_FIRST = frozenset({
    "tabular*", "tabularx", "tabulary", "xltabular", "supertabular*", "xtabular*", "NiceTabular*", "NiceTabularX",
})  # fmt: skip
TABULARRAY = frozenset({"tblr", "longtblr", "talltblr"})
"""Their cells under a span are written, and blank; their columns may be one of several settings."""
NICE = frozenset({"NiceTabular", "NiceTabular*", "NiceTabularX", "NiceArray"})
"""Their options may stand after their columns."""
COLUMN_SETTING = re.compile(r"colspec\s*=\s*(?:\{((?:[^{}]|\{[^{}]*\})*)\}|([^,]*))")
FARTHEST_COLUMNS = 8
"""Tokens that may stand between `tabu` and its columns: `\\begin{tabu} to 0.5\\textwidth {lc}`."""
DEEPEST_FRACTION = 8


class TextReader:
    """Collects text, token by token.

    Args:
        source: what is read.

    Attributes:
        has_text: whether anything but white space was collected.
    """

    def __init__(self, source: LatexSource) -> None:
        self.source = source
        self._pieces: list[str] = []
        self.has_text = False
        self._accent = ""
        self._fractions = 0

    def take(self) -> str:
        """What was collected, tidy; collecting starts anew."""
        text = tidy("".join(self._pieces))
        self._pieces.clear()
        self._accent, self.has_text = "", False
        return text

    def read_all(self, place: int, end: int) -> str:
        """The text of a range of tokens."""
        while place < end:
            place = self.read(place)
        return self.take()

    def read(self, place: int) -> int:
        """Reads the token at this place, with those of its arguments that are no text.

        Returns:
            The place after them.
        """
        token = self.source.tokens[place]
        if token.kind in {"text", "verbatim"}:
            self._add(token.value)
        elif token.kind in {"blank", "ampersand", "end"}:
            self._add(" ")
        elif token.kind == "sign":
            self._read_sign(token.value)
        elif token.kind == "macro":
            return self._read_macro(token.value, place + 1)
        elif token.kind == "begin":
            self._add(" ")
            return self._after_environment_arguments(token.value, place + 1)
        return place + 1

    def _add(self, text: str) -> None:
        if self._accent and text.strip():
            text, self._accent = text[0] + self._accent + text[1:], ""
        if not self.has_text and text and not text.isspace():
            self.has_text = True
        self._pieces.append(text)

    def _read_sign(self, sign: str) -> None:
        if sign in macros.ACCENTS:
            self._accent = macros.ACCENTS[sign]
        elif sign == "\\" or sign in macros.SIGN_SPACES:
            self._add(" ")
        elif sign not in macros.SIGN_NOTHING:
            self._add(sign)

    def _read_macro(self, name: str, place: int) -> int:
        if (
            name in macros.FRACTIONS
            and self._fractions < DEEPEST_FRACTION
            and (end := self.source.group_end(place)) > place
        ):
            return self._read_fraction(place, end)
        if name in macros.CHARACTERS:
            self._add(macros.CHARACTERS[name])
        elif name in macros.SILENT:
            return self._after_arguments(place, macros.SILENT[name])
        elif name in macros.SWITCHES or name in macros.ROW_END_MACROS:
            self._add(" " if name in macros.SPACES else "")
        elif name in macros.LETTER_ACCENTS:
            self._accent = macros.LETTER_ACCENTS[name]
        else:
            return self._read_unknown(name, place)
        return place

    def _read_fraction(self, place: int, middle: int) -> int:
        """Both arguments with a stroke between them: without it one half would be twelve."""
        end = self.source.group_end(middle)
        self._fractions += 1
        for start, stop in ((place, middle), (middle, end)):
            at = self.source.after_blank(start) + 1
            while at < stop - 1:
                at = self.read(at)
            if start == place:
                self._add("/")
        self._fractions -= 1
        return max(end, middle)

    def _read_unknown(self, name: str, place: int) -> int:
        after = self.source.after_star(place)
        after = self.source.option_end(after)
        if self.source.group_end(after) == after or name in macros.KEPT:
            self._add(f"\\{name} ")
            return place
        return after

    def _after_arguments(self, place: int, groups: int) -> int:
        place = self.source.option_end(self.source.option_end(self.source.after_star(place)), "()")
        for _ in range(groups):
            place = self.source.option_end(self.source.group_end(place))
        return place

    def _after_environment_arguments(self, name: str, place: int) -> int:
        if name in TABULARS:
            return self.after_columns(name, place)[1]
        if name in {"minipage", "adjustbox", "threeparttable"}:
            return self.source.group_end(self.source.option_end(place))
        return place

    def after_columns(self, name: str, place: int) -> tuple[str, int]:
        """The column specification of a tabular, raw, and the place where its body starts."""
        if name == "tabbing":
            return "", place
        place = self.source.option_end(place)
        if name in WIDTH_FIRST:
            place = self.source.option_end(self.source.group_end(place))
        if name in {"tabu", "longtabu"}:
            ahead = range(place, place + FARTHEST_COLUMNS)
            place = next((at for at in ahead if self.source.group_end(at) > at), place)
        columns, end = self.source.group_text(place), self.source.group_end(place)
        if name in TABULARRAY and "=" in columns:
            setting = COLUMN_SETTING.search(columns)
            columns = (setting[1] or setting[2] or "") if setting else ""
        return columns, self.source.option_end(end) if name in NICE else end


def read_caption(source: LatexSource, place: int) -> tuple[str, int]:
    r"""The caption whose macro stands here, and the place after it; `\captionof` names its kind first."""
    reader = TextReader(source)
    start = source.after_star(place + 1)
    if source.tokens[place].value == "captionof":
        start = source.group_end(start)
    start = source.option_end(start)
    end = source.group_end(start)
    return reader.read_all(start, end), max(end, place + 1)
