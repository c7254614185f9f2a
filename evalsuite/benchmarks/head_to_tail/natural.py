"""Tells which questions people are likely to ask, for the study in the paper's Table 10.

The paper leaves out the less natural ones without listing them. Here these are facts that people look up rather
than remember: identifiers, and attributes that a source keeps for its own use. The figures for books in Table 10
agree with leaving out both ISBNs and nothing else.
"""

from __future__ import annotations

_UNNATURAL = {
    # As built here.
    "goodreads-book-isbn10",
    "goodreads-book-isbn13",
    "imdb-person-department",
    "imdb-person-specialty",
    "imdb-title-running-time",
    "mag-journal-issn",
    "mag-paper-doi",
    "mag-paper-publisher",
    # The same in the published scripts.
    "goodreads-book-2",
    "goodreads-book-3",
    "imdb-name-3",
    "imdb-name-4",
    "imdb-title-3",
    "mag-journal-0",
    "mag-paper-2",
    "mag-paper-3",
}


def is_natural(template: str) -> bool:
    """Whether people are likely to ask questions of this template."""
    return template not in _UNNATURAL
