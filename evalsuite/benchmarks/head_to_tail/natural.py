"""Which questions people may well ask, for the study of the paper's Table 10.

The paper takes the less natural ones out without listing them. Here they are what nobody keeps in mind but looks
up: identifiers, and attributes that a source has for its own bookkeeping. Its Table 10 for books fits that: by
its numbers, both ISBNs are out and nothing else is.
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
    """Whether people may well ask questions of this template."""
    return template not in _UNNATURAL
