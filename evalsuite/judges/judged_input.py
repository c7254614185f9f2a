"""What is judged, as a judge is shown it: texts alone, without the names of those who wrote them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.judges.marks import marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.core.types import Message
    from evalsuite.judges.marks import Part

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

    def parts(self, *, swapped: bool = False) -> list[Part]:
        """Every part that is not empty, the answers in their own or in the other order."""
        answers = self.answers[::-1] if swapped else self.answers
        names = ["answer"] if len(answers) == 1 else ["answer_1", "answer_2"]
        context = [
            ("question", self.question),
            ("background", self.background),
            ("reference", self.reference),
        ]
        return [*((name, text) for name, text in context if text), *zip(names, answers, strict=True)]

    def shown(self, *, swapped: bool = False) -> str:
        """All parts in marked sections."""
        return marked(self.parts(swapped=swapped))


def without_names(text: str, names: Iterable[str]) -> str:
    """The text with each whole occurrence of a system's name withheld, in whatever case it is written."""
    longest_first = sorted({name for name in names if name}, key=lambda name: (-len(name), name))
    if not longest_first:
        return text
    either = "|".join(map(re.escape, longest_first))
    return re.sub(rf"(?<!\w)(?:{either})(?!\w)", WITHHELD, text, flags=re.IGNORECASE)


def conversation(messages: str | Sequence[Message]) -> str:
    """A sample's input as text: a conversation has one paragraph for each message, led by its role."""
    if isinstance(messages, str):
        return messages
    return "\n\n".join(f"{message.role}: {message.content}" for message in messages)
