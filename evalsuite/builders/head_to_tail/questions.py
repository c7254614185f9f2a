"""Candidate questions, and the paper's rules that depend on their wording."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Answer = str | int
# A question, or None if its subject would be ambiguous, and the raw answers.
RawQuestion = tuple["str | None", "Iterable[Answer | None]"]
# Maximum number of right answers of a specific question.
MOST_ANSWERS = 12
# The replacement for a character that a dump has lost.
LOST = "\ufffd"


@dataclass(frozen=True, slots=True)
class QuestionTemplate:
    """A kind of question, by its id in the file; the type of entity determines the buckets."""

    id: str
    entities: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that the data can answer.

    Attributes:
        turn: number of the template's earlier questions about the entity.
        lot: the entity's lot by the seed; low turns, then low lots are asked first.
        answers: all right answers.
    """

    entity: str
    popularity: int
    turn: int
    lot: int
    question: str
    answers: tuple[Answer, ...]

    @property
    def key(self) -> str:
        """Return a key that is equal for questions that differ in case and spacing only."""
        return " ".join(self.question.casefold().split())


@dataclass(frozen=True, slots=True)
class Drawn:
    """The candidates of one template and bucket in order; `exhausted` if the data have no further ones."""

    candidates: tuple[Candidate, ...]
    exhausted: bool


# By template, then by bucket.
Draw = dict[QuestionTemplate, "Mapping[str, Drawn]"]


def is_fit(question: str, answers: Sequence[Answer]) -> bool:
    """Tell whether a question has few, textual answers and does not reveal them."""
    return (
        0 < len(answers) <= MOST_ANSWERS
        and LOST not in question
        and all(is_textual(answer) for answer in answers)
        and not gives_away(question, answers)
    )


def gives_away(question: str, answers: Iterable[Answer]) -> bool:
    """Tell whether the question contains an answer, ignoring case, accents and punctuation.

    As in the published scripts, parts of words count: a question about Disneyland reveals Disney.
    """
    plain, spelt = question.casefold(), _letters(question)
    texts = [str(answer) for answer in answers]
    return any(text.casefold() in plain or _letters(text) in spelt for text in texts)


def is_textual(answer: Answer) -> bool:
    """Tell whether an answer is text: it has a letter or a digit, no lost character, and is not an address."""
    text = str(answer)
    is_address = re.match(r"(?:https?|ftp)://|www\.", text, re.IGNORECASE)
    return bool(re.search(r"\w", text)) and not is_address and LOST not in text


def _letters(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.casefold())
    return " ".join(re.findall(r"\w+", "".join(mark for mark in apart if not unicodedata.combining(mark))))


def distinct(answers: Iterable[Answer | None]) -> tuple[Answer, ...]:
    """Remove missing and repeated answers, keeping the order."""
    cleaned = (" ".join(answer.split()) if isinstance(answer, str) else answer for answer in answers)
    return tuple(dict.fromkeys(answer for answer in cleaned if answer not in {None, ""}))
