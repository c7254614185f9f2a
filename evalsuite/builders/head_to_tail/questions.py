"""A question that could be asked, and the rules of the paper that can be read off its words."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Answer = str | int
# A question, or None where it would not be clear what is meant, and the answers as the data have them.
RawQuestion = tuple["str | None", "Iterable[Answer | None]"]
# More right answers than this, and the question is unspecific: whatever one says may be right.
MOST_ANSWERS = 12
# Stands for a character that a dump has lost.
LOST = "\ufffd"


@dataclass(frozen=True, slots=True)
class QuestionTemplate:
    """A kind of question.

    Attributes:
        id: as it stands in the file.
        entities: the type of entity asked about, whose partition gives the bucket.
    """

    id: str
    entities: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that the data can answer.

    Attributes:
        entity: the source's identifier of what is asked about.
        popularity: of the entity.
        turn: how many other questions the template has about the entity that come before this one.
        lot: drawn for the entity by the seed. Where there are more questions than wanted, those of the
            first turn and the smallest lots are asked.
        question: in full.
        answers: all that are right.
    """

    entity: str
    popularity: int
    turn: int
    lot: int
    question: str
    answers: tuple[Answer, ...]

    @property
    def key(self) -> str:
        """Equal where two questions are the same but for letter case and spacing."""
        return " ".join(self.question.casefold().split())


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn of one template and bucket.

    Attributes:
        candidates: in the order in which they are to be asked.
        exhausted: whether the data hold no further candidate.
    """

    candidates: tuple[Candidate, ...]
    exhausted: bool


# By template, then by bucket.
Draw = dict[QuestionTemplate, "Mapping[str, Drawn]"]


def is_fit(question: str, answers: Sequence[Answer]) -> bool:
    """Whether a question asks for something, in words, and does not say it."""
    return (
        0 < len(answers) <= MOST_ANSWERS
        and LOST not in question
        and all(is_textual(answer) for answer in answers)
        and not gives_away(question, answers)
    )


def gives_away(question: str, answers: Iterable[Answer]) -> bool:
    """Whether the question contains an answer, whatever its letter case, accents and punctuation.

    As in the published scripts, a part of a word counts too: who asks about Disneyland gives away Disney.
    """
    plain, spelt = question.casefold(), _letters(question)
    texts = [str(answer) for answer in answers]
    return any(text.casefold() in plain or _letters(text) in spelt for text in texts)


def is_textual(answer: Answer) -> bool:
    """Whether an answer can be said in words: it has a letter or a digit, is whole, and is not an address."""
    text = str(answer)
    is_address = re.match(r"(?:https?|ftp)://|www\.", text, re.IGNORECASE)
    return bool(re.search(r"\w", text)) and not is_address and LOST not in text


def _letters(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.casefold())
    return " ".join(re.findall(r"\w+", "".join(mark for mark in apart if not unicodedata.combining(mark))))


def distinct(answers: Iterable[Answer | None]) -> tuple[Answer, ...]:
    """Answers without those that are missing, and each one once, in the order of first appearance."""
    cleaned = (" ".join(answer.split()) if isinstance(answer, str) else answer for answer in answers)
    return tuple(dict.fromkeys(answer for answer in cleaned if answer not in {None, ""}))
