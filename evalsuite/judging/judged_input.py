"""What is judged, and how a judge gets to see it: texts alone, without any name of who wrote them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.types import Message

PART = re.compile(r"<(/?\s*(?:question|background|reference|answer(?:_[12])?)\s*)>", re.IGNORECASE)
WITHHELD = "[name withheld]"


@dataclass(frozen=True, slots=True)
class JudgedInput:
    """One answer to judge, or two to compare.

    Attributes:
        question: what was asked, or the conversation so far.
        answers: one or two texts.
        background: what a good answer may draw on; empty for nothing.
        reference: an answer known to be right; empty where there is none.
    """

    question: str
    answers: tuple[str, ...]
    background: str = ""
    reference: str = ""

    def shown(self, *, swapped: bool = False) -> str:
        """All parts in marked sections, the answers in their own or in the other order."""
        answers = self.answers[::-1] if swapped else self.answers
        tags = ["answer"] if len(answers) == 1 else ["answer_1", "answer_2"]
        parts = [("question", self.question), ("background", self.background), ("reference", self.reference)]
        given = [(tag, text) for tag, text in parts if text]
        return "\n\n".join(_section(tag, text) for tag, text in (*given, *zip(tags, answers, strict=True)))


def _section(tag: str, text: str) -> str:
    # A text that closes its own section could pass off words of its own as ours.
    harmless = PART.sub(r"[\1]", text).strip()
    return f"<{tag}>\n{harmless}\n</{tag}>"


def without_names(text: str, names: Iterable[str]) -> str:
    """The text with each whole occurrence of a system's name withheld, in whatever case it is written."""
    known = sorted({name for name in names if name}, key=lambda name: (-len(name), name))
    if not known:
        return text
    either = "|".join(map(re.escape, known))
    return re.sub(rf"(?<!\w)(?:{either})(?!\w)", WITHHELD, text, flags=re.IGNORECASE)


def conversation(messages: str | Sequence[Message]) -> str:
    """A sample's input as text: a conversation has one paragraph for each message, led by its role."""
    if isinstance(messages, str):
        return messages
    return "\n\n".join(f"{message.role}: {message.content}" for message in messages)
