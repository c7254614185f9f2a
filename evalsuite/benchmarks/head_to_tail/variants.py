"""Expands acceptable answers by other common ways of writing them.

Which variants belong to an answer depends on what it is: persons' names, numbers, dates and titles each
have their own.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import permutations
from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.dates import date_variants
from evalsuite.benchmarks.head_to_tail.names import person_variants
from evalsuite.benchmarks.head_to_tail.quantities import number_variants

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PERSON = re.compile(
    r"^\W*(?:what/)?who(?:m|se)?\b|\b(?:by|for|from|of|to|with) whom\b"
    r"|^\W*(?:which|what|name (?:a|the)) (?:actor|actress|architect|artist|author|child|composer|director|"
    r"inventor|painter|person|poet|politician|scientist|singer|writer)\b",
    re.IGNORECASE,
)
# These are asked for with "who", too, but are seldom persons. A question may name one in passing ("Who wrote
# Emma (published in 1815)?"): only what is asked for counts.
_COMPANY = re.compile(
    r"^\W*who (?:(?:distribut|develop|maintain|manufactur|publish)(?:ed|es|s)|(?:is|was|are|were) the (?:\w+ )?"
    r"(?:band|club|company|developer|distributor|label|maintainer|manufacturer|organi[sz]ation|publisher|"
    r"studio|team)s?)\b",
    re.IGNORECASE,
)
# Letters that Unicode does not take apart into a plain one and an accent.
_UNDIVIDED = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe"}
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_ARTICLE = re.compile(r"(?:the|an?) (?=\S)", re.IGNORECASE)
_INVERTED = re.compile(r"(?P<rest>.+), (?P<article>the|an?)", re.IGNORECASE)
_SUBTITLE = re.compile(r"\s*(?:: |; | [-\u2013\u2014] | \().*")


def widened(answers: Sequence[str], question: str) -> tuple[str, ...]:
    """The answers and their variants, each once, the answers first.

    Args:
        answers: the acceptable answers.
        question: tells whether a person is asked for, and in which unit.
    """
    persons = asks_for_person(question)
    texts: dict[str, None] = dict.fromkeys(answers)
    for answer in answers:
        texts.update(dict.fromkeys(_variants(answer, question, persons=persons)))
    if persons:
        texts.update(dict.fromkeys(_together(answers)))
    texts.update(dict.fromkeys([_without_accents(text) for text in texts]))
    return tuple(text for text in texts if text in answers or any(map(str.isalnum, text)))


def asks_for_person(question: str) -> bool:
    """Whether the answer should be a person's name."""
    return bool(_PERSON.search(question)) and not _COMPANY.search(question)


def _variants(answer: str, question: str, *, persons: bool) -> Iterable[str]:
    if persons:
        yield from person_variants(answer)
        return
    if others := (*number_variants(answer, question), *date_variants(answer)):
        yield from others
        return
    yield from _title_variants(answer)


def _title_variants(title: str) -> Iterable[str]:
    if inverted := _INVERTED.fullmatch(title):
        yield f"{inverted['article']} {inverted['rest']}"
        yield inverted["rest"]
    for text in (title, _SUBTITLE.sub("", title, count=1)):
        yield text
        yield _ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text


def _together(answers: Sequence[str]) -> Iterable[str]:
    """All persons of a short list together, in any order."""
    if 2 <= len(answers) <= 3:
        for order in permutations(answers):
            yield ", ".join(order)
            yield f"{', '.join(order[:-1])} and {order[-1]}"


def _without_accents(text: str) -> str:
    return _ACCENTS.sub("", unicodedata.normalize("NFD", text)).translate(_UNDIVIDED)
