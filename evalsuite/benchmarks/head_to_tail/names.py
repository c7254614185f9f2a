"""Persons' names: full, with initials, without middle names, by surname."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SUFFIX = re.compile(r",?\s+(?:jr|sr|ii|iii|iv)\b\.?", re.IGNORECASE)
_DISAMBIGUATION = re.compile(r"\s*\([^)]*\)|\s+\d{4}$")
_INITIALS = re.compile(r"(?:\w\.\s?)+")
# As many words as a person's name may have; a longer answer is something else.
_LONGEST = 6


def person_variants(name: str) -> Iterable[str]:
    """Other ways to write a person's name, including each of its endings, any of which may be the surname.

    (Nolan; van Beethoven and Beethoven; García Márquez and Márquez.) A disambiguation, as DBpedia ("John
    Smith (actor)") and DBLP ("John Smith 0001") have it, and a suffix (Jr.) may be left out. A name of one
    word, or of more than six, has no other variants.
    """
    bare = _DISAMBIGUATION.sub("", name)
    plain = _SUFFIX.sub("", bare)
    yield from (bare, plain)
    words = _words(plain)
    if 2 <= len(words) <= _LONGEST:
        yield from _endings(words)
        yield from _with_initials(words[:-1], words[-1])
        yield f"{words[-1]}, {' '.join(words[:-1])}"


def _words(name: str) -> list[str]:
    """The words of a name; initials written together (J.R.R.) count apart."""
    return _INITIALS.sub(lambda initials: initials[0].replace(".", ". "), name).split()


def _endings(words: Sequence[str]) -> Iterable[str]:
    first = words[0]
    for start in range(1, len(words)):
        ending = " ".join(words[start:])
        yield from (ending, f"{first} {ending}", f"{first[0]}. {ending}")


def _with_initials(first_names: Sequence[str], surname: str) -> Iterable[str]:
    """J. R. R. Tolkien, J.R.R. Tolkien, John R. R. Tolkien, John R.R. Tolkien."""
    initials = [f"{word[0]}." for word in first_names]
    yield " ".join((*initials, surname))
    yield f"{''.join(initials)} {surname}"
    if len(first_names) > 1:
        yield " ".join((first_names[0], *initials[1:], surname))
        yield f"{first_names[0]} {''.join(initials[1:])} {surname}"
