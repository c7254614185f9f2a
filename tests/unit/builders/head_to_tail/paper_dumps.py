"""A dump in the published format of each source, with just the entities that the paper's mix asks about.

Popularity is all but even, so that head, torso and tail have equally many entities, and a dump of a few hundred of them
has enough for every template. Names are of one length and without digits, so that no question gives its answer away.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalsuite.builders.head_to_tail.mag import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va", "we", "xi")
PREDICATES = 393
SPECIALISTS = 27
"""Every so many people of IMDb have one of the rare lines of work, which makes that template the scarce one."""


def name(number: int, kind: str) -> str:
    """The name of an entity; those of different kinds never stand in one another."""
    parts = []
    for _ in range(4):
        number, rest = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[rest])
    return f"{kind}{''.join(parts)}"


def popularity(number: int) -> int:
    """All but even: the first third of the entities has a little more than a third of it."""
    return 100_000 - number


def imdb() -> dict[str, str]:
    """Six hundred titles, half of them series that are over, and nine hundred people with one profession each."""
    titles = range(600)
    basics = [
        (f"tt{at}", "tvSeries" if at % 2 else "movie", name(at, "Z"), 1960 + at % 50, 2015 if at % 2 else None, 90)
        for at in titles
    ]
    people = [(f"nm{at}", name(at, "Q"), 1930 + at % 9, 2019, _work(at), f"tt{at % 600}") for at in range(900)]
    cast = [(f"tt{at}", 1, f"nm{at}", "actor", json.dumps([name(at, "Y")])) for at in titles]
    return {
        "title.ratings.tsv.gz": _tsv(["tconst", "numVotes"], ((f"tt{at}", popularity(at)) for at in titles)),
        "title.basics.tsv.gz": _tsv(
            ["tconst", "titleType", "primaryTitle", "startYear", "endYear", "runtimeMinutes"], basics
        ),
        "name.basics.tsv.gz": _tsv(
            ["nconst", "primaryName", "birthYear", "deathYear", "primaryProfession", "knownForTitles"], people
        ),
        "title.crew.tsv.gz": _tsv(
            ["tconst", "directors", "writers"], ((f"tt{at}", f"nm{at}", f"nm{at + 1}") for at in titles)
        ),
        "title.principals.tsv.gz": _tsv(["tconst", "ordering", "nconst", "category", "characters"], cast),
    }


def _work(number: int) -> str:
    return "stunts" if number % SPECIALISTS == 0 else ("producer", "art_department")[number % 2]


def goodreads() -> dict[str, str]:
    """Nine hundred books of one edition."""
    books = [
        {
            "book_id": str(at),
            "work_id": str(at),
            "title": name(at, "Z"),
            "publication_year": str(1950 + at % 60),
            "publisher": f"{name(at, 'Q')} Press",
            "num_pages": "300",
            "isbn": f"{at:09}X",
            "isbn13": f"978{at:010}",
            "ratings_count": str(popularity(at)),
            "authors": [{"author_id": str(at), "role": ""}],
        }
        for at in range(900)
    ]
    authors = [{"author_id": str(at), "name": name(at, "Y")} for at in range(900)]
    return {"goodreads_books.json.gz": _lines(books), "goodreads_book_authors.json.gz": _lines(authors)}


def mag() -> dict[str, str]:
    """As many conferences, journals and papers as it takes for a hundred of each in head, torso and tail."""
    each = range(345)
    conferences = [
        {"ConferenceInstanceId": at, "DisplayName": name(at, "Z"), "Location": name(at, "Q"), "StartDate": "2015-05-01"}
        for at in each
    ]
    journals = [
        {"JournalId": at, "DisplayName": name(at, "Y"), "Issn": f"{at:08}", "CreatedDate": "2016-06-24"} for at in each
    ]
    papers = [
        {
            "PaperId": at,
            "Doi": f"10.1000/{at:05}",
            "DocType": "Journal",
            "PaperTitle": name(at, "x"),
            "OriginalTitle": name(at, "X"),
            "Year": 1980 + at % 40,
            "Publisher": name(at, "Q"),
            "OriginalVenue": name(at, "Y"),
        }
        for at in each
    ]
    written = [{"PaperId": at, "AuthorId": at, "AuthorSequenceNumber": 1} for at in each]
    authors = [{"AuthorId": at, "DisplayName": name(at, "W")} for at in each]
    for records in (conferences, journals, papers):
        for at, record in enumerate(records):
            record["CitationCount"] = popularity(at)
    tables: Sequence[Sequence[Mapping[str, object]]] = [conferences, journals, papers, written, authors]
    return {
        file: _headless(columns.split(), records)
        for (file, columns), records in zip(COLUMNS.items(), tables, strict=True)
    }


def dblp() -> dict[str, str]:
    """People with a doctoral and a master's thesis, and so many articles that 47, 94 and 282 of them share the fame."""
    parts, number = [], 0
    for people, articles in ((47, 10), (94, 4), (282, 0)):
        for _ in range(people):
            parts += [_thesis("phdthesis", number, 2005), _thesis("mastersthesis", number, 1999)]
            parts += [_work_of("article", number, f"{at}", 2010) for at in range(articles)]
            number += 1
    head = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<!DOCTYPE dblp SYSTEM "dblp.dtd">\n<dblp>\n'
    return {"dblp.xml": f"{head}{''.join(parts)}</dblp>\n"}


def _thesis(kind: str, person: int, year: int) -> str:
    return _work_of(kind, person, kind, year, f"<school>{name(person, 'Y' if kind[0] == 'p' else 'X')}</school>")


def _work_of(kind: str, person: int, key: str, year: int, school: str = "") -> str:
    title = name(person, "Z" if kind[0] == "p" else "W")
    return (
        f'<{kind} key="x/{person}/{key}">\n<author>{name(person, "Q")}</author>\n<title>{title}.</title>\n'
        f"<year>{year}</year>\n{school}\n</{kind}>\n"
    )


def dbpedia() -> dict[str, str]:
    """Eight or seven triples of each of the paper's number of predicates, in head, torso and tail alike.

    An entity is the value of its neighbour, so that the values change nothing about who is popular.
    """
    lines, templates, rare = [], {}, 0
    for at in range(PREDICATES):
        predicate = f"<http://dbpedia.org/ontology/relation{at}>"
        templates[predicate] = f"To what does _ stand in relation {at}?"
        for place in range(8 if at < 293 else 7):
            famous, half = place, 8 * (at % 2) + place
            lines += [_triple("H", famous, 8, predicate), _triple("T", half, 16, predicate)]
            lines.append(_triple("L", rare, 3044, predicate))
            rare += 1
    return {"mappingbased-objects_lang=en.ttl.bz2": "\n".join(lines) + "\n", "templates.json": json.dumps(templates)}


def _triple(kind: str, at: int, among: int, predicate: str) -> str:
    resource = "<http://dbpedia.org/resource/{}>"
    value = at - at % 8 + (at + 1) % 8 if among < 3000 else (at + 1) % among
    return f"{resource.format(name(at, kind))} {predicate} {resource.format(name(value, kind))} ."


def _tsv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["\t".join("\\N" if cell is None else str(cell) for cell in row) for row in rows]
    return "\n".join(["\t".join(header), *lines]) + "\n"


def _headless(columns: Sequence[str], records: Iterable[Mapping[str, object]]) -> str:
    return "".join("\t".join(str(record.get(column, "")) for column in columns) + "\n" for record in records)


def _lines(records: Iterable[Mapping[str, object]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


DUMPS: Mapping[str, Callable[[], dict[str, str]]] = {
    "imdb": imdb,
    "goodreads": goodreads,
    "mag": mag,
    "dblp": dblp,
    "dbpedia": dbpedia,
}
