r"""LaTeX cut into tokens, with the partner of each brace and environment, in one pass and whatever is broken.

A brace or `\end` without partner is passed over; an environment that never ends reaches to the end of the
text or of the environment around it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

TokenKind = Literal[
    "begin", "end", "macro", "sign", "open", "close", "ampersand", "text", "verbatim", "blank"
]
TOKEN = re.compile(
    r"""(?P<comment>%[^\n]*(?:\n[ \t]*)?)
    |\\begin[ \t]*\{(?P<begin>[^{}\\]*)\}
    |\\end[ \t]*\{(?P<end>[^{}\\]*)\}
    |\\verb\*?(?P<bar>[^a-zA-Z@\s*{}\\])(?P<verbatim>[^\n]{0,200}?)(?P=bar)
    |\\(?P<macro>[a-zA-Z@]+)[ \t]*\n?
    |\\(?P<sign>.)
    |(?P<open>\{)
    |(?P<close>\})
    |(?P<ampersand>&)
    |(?P<dollar>\$+)
    |(?P<blank>[~\s]+)
    |(?P<text>[^\\%{}&$~\s\[\]()]+|[\[\]()]|\\)
    """,
    re.VERBOSE | re.DOTALL,
)
IGNORED = frozenset({"comment", "dollar"})
PAIRED = frozenset({"begin", "end", "open", "close"})
LONGEST_OPTION = 40


class Token(NamedTuple):
    """A piece of LaTeX.

    Attributes:
        kind: `sign` is a macro of one character that is no letter; a bracket is a `text` of its own.
        value: of macros the name without backslash, of `begin` and `end` that of the environment, else the
            characters themselves.
        start: its place in the text.
        end: the place after it.
    """

    kind: TokenKind
    value: str
    start: int
    end: int


@dataclass(slots=True)
class LatexSource:
    """A text in tokens.

    Attributes:
        text: the whole.
        tokens: without comments and dollar signs.
        partner: the place of the closing token for each opening one that has one, and the other way round;
            for an environment that does not end, where it is taken to end.
    """

    text: str
    tokens: list[Token] = field(init=False)
    partner: dict[int, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.tokens = list(_tokens(self.text))
        self._pair()

    def _pair(self) -> None:
        waiting: list[int] = []
        environments: Counter[str] = Counter()
        for place, token in enumerate(self.tokens):
            if token.kind not in PAIRED:
                continue
            if token.kind in {"open", "begin"}:
                waiting.append(place)
                environments[token.value] += 1
            elif token.kind == "close" and waiting and self.tokens[waiting[-1]].kind == "open":
                environments["{"] -= 1
                self._join(waiting.pop(), place)
            elif token.kind == "end" and environments[token.value]:
                self._close(waiting, environments, place)
        for begin in waiting:
            if self.tokens[begin].kind == "begin":
                self.partner[begin] = len(self.tokens)

    def _close(self, waiting: list[int], environments: Counter[str], end: int) -> None:
        """Ends an environment, and those within it that were not ended."""
        while True:
            begin = waiting.pop()
            opening = self.tokens[begin]
            environments[opening.value] -= 1
            if opening.kind == "begin" and opening.value == self.tokens[end].value:
                self._join(begin, end)
                return
            if opening.kind == "begin":
                self.partner[begin] = end

    def _join(self, first: int, last: int) -> None:
        self.partner[first], self.partner[last] = last, first

    def is_mention(self, place: int) -> bool:
        """Whether the environment that begins here is only spoken of: it has no argument and no end."""
        return self.group_end(place + 1) == place + 1 and self.partner.get(self.partner[place]) != place

    def group_end(self, place: int) -> int:
        """The place after the group that starts here, blanks before it skipped; `place` itself if none does."""
        at = self.after_blank(place)
        if at < len(self.tokens) and self.tokens[at].kind == "open" and at in self.partner:
            return self.partner[at] + 1
        return place

    def group_text(self, place: int) -> str:
        """The raw text of the group that starts here, without its braces; empty if none does."""
        end = self.group_end(place)
        if end == place:
            return ""
        return self.text[self.tokens[self.after_blank(place)].end : self.tokens[end - 1].start]

    def arguments(self, place: int, count: int) -> tuple[list[str], int]:
        r"""The raw texts of this many arguments, empty where one is missing, and the place after them.

        Optional ones before and after are passed over. An argument of one character needs no braces: the star
        of `\multirow{2}*{...}` is one.
        """
        texts: list[str] = []
        place = self.option_end(place)
        while len(texts) < count:
            at, end = self.after_blank(place), self.group_end(place)
            if end > place:
                texts.append(self.group_text(place))
            elif self._is_text_of(at, count - len(texts)):
                texts, end = [*texts, *self.tokens[at].value], at + 1
            else:
                break
            place = self.option_end(end)
        return [*texts, *[""] * (count - len(texts))], place

    def _is_text_of(self, place: int, longest: int) -> bool:
        """Whether the token here is text of so few characters that each can be an argument."""
        if place >= len(self.tokens) or self.tokens[place].kind != "text":
            return False
        return len(self.tokens[place].value) <= longest

    def option_end(self, place: int, brackets: str = "[]") -> int:
        """The place after the optional argument that starts here; `place` itself if none does.

        It must end within a few tokens: a bracket that stays open is text.
        """
        at = self.after_blank(place)
        if at >= len(self.tokens) or self.tokens[at].value != brackets[0]:
            return place
        for _ in range(LONGEST_OPTION):
            at += 1
            if at >= len(self.tokens) or self.tokens[at].kind in {"ampersand", "begin", "end"}:
                break
            if self.tokens[at].value == brackets[1]:
                return at + 1
            if self.tokens[at].kind == "open":
                at = self.partner.get(at, at)
        return place

    def after_star(self, place: int) -> int:
        """This place, or the next if a star stands here."""
        return place + (place < len(self.tokens) and self.tokens[place].value == "*")

    def after_blank(self, place: int) -> int:
        """This place, or the next if white space stands here."""
        return place + (place < len(self.tokens) and self.tokens[place].kind == "blank")


def _tokens(text: str) -> Iterator[Token]:
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind and kind not in IGNORED:
            yield Token(cast("TokenKind", kind), match[kind].strip() or " ", match.start(), match.end())
