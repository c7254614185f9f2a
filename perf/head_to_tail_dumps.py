"""Synthetic dumps in the exact format of each knowledge source, with popularity that follows a power law.

    python perf/head_to_tail_dumps.py imdb DIR --scale 2000000

The scale is the number of titles, books, papers, works or triples. IMDb gets 7.5 principals and 1.5 names a
title, as many as make 15 million and 3 million of 2 million titles. The same scale gives the same dump.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import zstandard

from evalsuite.builders.head_to_tail.dbpedia import TEMPLATES
from evalsuite.builders.head_to_tail.mag import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# fmt: off
SYLLABLES = (
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu",
    "na", "pe", "ri", "so", "tu", "va", "we", "xi", "yo", "zu",
)
WORDS = (
    "Silent", "Golden", "Broken", "Hidden", "Last", "First", "Wild", "Empty", "Distant", "Burning",
    "Frozen", "Crooked", "Secret", "Quiet", "Bright", "Harbour", "River", "Garden", "Window", "Mountain",
    "Letter", "Winter", "Summer", "Street", "Mirror", "Island", "Station", "Journey", "Café", "Élan",
)
# fmt: on


def imdb(folder: Path, titles: int) -> None:
    """Five files, written by the database, which is quick at it."""
    people, principals = titles * 3 // 2, titles * 15 // 2
    base = duckdb.connect(config={"memory_limit": "2GB"})
    words = "[" + ", ".join(f"'{word}'" for word in WORDS) + "]"
    parts = "[" + ", ".join(f"'{part}'" for part in SYLLABLES) + "]"
    # Of a key and a salt: a number below n, evenly; and one that prefers small numbers, as fame does.
    base.execute("CREATE MACRO even(key, salt, n) AS (hash(key * 1000 + salt) % n)::BIGINT")
    base.execute("CREATE MACRO steep(key, salt, n) AS (n * pow(even(key, salt, 1000000) / 1e6, 3))::BIGINT")
    base.execute(f"CREATE MACRO word(key, salt) AS {words}[1 + even(key, salt, {len(WORDS)})]")
    base.execute(f"CREATE MACRO syllable(key, salt) AS {parts}[1 + even(key, salt, {len(SYLLABLES)})]")
    base.execute("""
        CREATE MACRO surname(key, salt) AS upper(syllable(key, salt)[1]) || syllable(key, salt)[2:] ||
            syllable(key, salt + 1) || syllable(key, salt + 2)
    """)
    base.execute("CREATE MACRO person(key, salt) AS word(key, salt) || ' ' || surname(key, salt + 5)")
    base.execute("CREATE MACRO title_id(number) AS printf('tt%07d', number)")
    base.execute("CREATE MACRO name_id(number) AS printf('nm%07d', number)")

    def copy(name: str, query: str) -> None:
        form = "format csv, delimiter '\t', quote '', escape '', nullstr '\\N', header, compression gzip"
        base.execute(f"COPY ({query}) TO '{folder / name}' ({form})")

    copy(
        "title.basics.tsv.gz",
        f"""
        SELECT title_id(i) AS tconst,
               CASE WHEN kind < 60 THEN 'tvEpisode' WHEN kind < 72 THEN 'movie' WHEN kind < 82 THEN 'short'
                    WHEN kind < 90 THEN 'tvSeries' WHEN kind < 93 THEN 'tvMiniSeries' WHEN kind < 96
                    THEN 'video' WHEN kind < 98 THEN 'tvMovie' ELSE 'videoGame' END AS titleType,
               CASE WHEN kind < 15 THEN printf('Episode #%d.%d', 1 + even(i, 2, 9), 1 + even(i, 3, 30))
                    ELSE 'The ' || word(i, 4) || ' ' || word(i, 5) || ' of ' || surname(i, 6) END
                    AS primaryTitle,
               primaryTitle AS originalTitle, 0 AS isAdult,
               CASE WHEN even(i, 9, 20) > 0 THEN 2024 - steep(i, 10, 120) END AS startYear,
               CASE WHEN kind BETWEEN 82 AND 92 AND even(i, 11, 3) > 0
                    THEN startYear + even(i, 12, 12) END AS endYear,
               CASE WHEN even(i, 13, 10) < 4 THEN 5 + even(i, 14, 150) END AS runtimeMinutes,
               'Drama,Comedy' AS genres
        FROM (SELECT i, even(i, 1, 100) AS kind FROM range(1, {titles + 1}) numbers(i))
    """,
    )
    copy(
        "title.ratings.tsv.gz",
        f"""
        SELECT title_id(i) AS tconst, 1 + even(i, 21, 90) / 10.0 AS averageRating,
               5 + (6e7 / (100 + rank))::BIGINT AS numVotes
        FROM (SELECT i, even(i, 20, {titles}) * 2e6 / {titles} AS rank FROM range(1, {titles + 1}) numbers(i))
        WHERE even(i, 22, 8) = 0
    """,
    )
    copy(
        "title.crew.tsv.gz",
        f"""
        SELECT title_id(i) AS tconst,
               CASE WHEN even(i, 31, 2) > 0 THEN name_id(1 + steep(i, 32, {people - 1})) ||
                    CASE WHEN even(i, 33, 10) = 0 THEN ',' || name_id(1 + steep(i, 34, {people - 1}))
                    ELSE '' END END AS directors,
               CASE WHEN even(i, 35, 3) > 0 THEN name_id(1 + steep(i, 36, {people - 1})) END AS writers
        FROM range(1, {titles + 1}) numbers(i)
    """,
    )
    copy(
        "title.principals.tsv.gz",
        f"""
        SELECT title_id(1 + i * {titles} // {principals}) AS tconst, 1 + i % 8 AS ordering,
               name_id(1 + steep(i, 41, {people - 1})) AS nconst,
               CASE WHEN kind < 4 THEN 'actor' WHEN kind < 7 THEN 'actress' WHEN kind < 9 THEN 'self'
                    WHEN kind < 12 THEN 'director' WHEN kind < 15 THEN 'writer' WHEN kind < 18
                    THEN 'producer' ELSE 'composer' END AS category,
               CASE WHEN kind BETWEEN 15 AND 17 THEN 'executive producer' END AS job,
               CASE WHEN kind < 7 THEN '["' || person(i, 42) || '"]' WHEN kind < 9 THEN '["Self"]' END
                    AS characters
        FROM (SELECT i, even(i, 40, 20) AS kind FROM range(0, {principals}) numbers(i))
    """,
    )
    copy(
        "name.basics.tsv.gz",
        f"""
        SELECT name_id(i) AS nconst, person(i, 51) || ' ' || surname(i, 57) AS primaryName,
               CASE WHEN even(i, 61, 5) = 0 THEN 1900 + even(i, 62, 110) END AS birthYear,
               CASE WHEN even(i, 61, 15) = 0 THEN 1975 + even(i, 63, 50) END AS deathYear,
               ['actor', 'actress,producer', 'camera_department', 'miscellaneous', 'editor,writer',
                'sound_department', NULL][1 + even(i, 64, 7)] AS primaryProfession,
               CASE WHEN even(i, 65, 10) > 0 THEN
                    list_aggregate([title_id(1 + even(i, 66 + place, {titles}))
                                    FOR place IN range(1 + even(i, 65, 4))], 'string_agg', ',') END
                    AS knownForTitles
        FROM range(1, {people + 1}) numbers(i)
    """,
    )


def goodreads(folder: Path, books: int) -> None:
    chance = random.Random(books)
    with gzip.open(folder / "goodreads_book_authors.json.gz", "wt", 1, encoding="utf-8") as file:
        for number in range(books // 3 + 1):
            file.write(json.dumps({"author_id": str(number), "name": _name(chance), "ratings_count": "5"}) + "\n")
    with gzip.open(folder / "goodreads_books.json.gz", "wt", 1, encoding="utf-8") as file:
        for number in range(books):
            series = f" ({_words(chance, 2)}, #{chance.randint(1, 9)})" if chance.random() < 0.3 else ""
            record = {
                "book_id": str(number),
                "work_id": str(int(books * 0.7 * chance.random())),
                "title": f"{_words(chance, 3)} of {_surname(chance)}{series}",
                "publication_year": str(2020 - int(100 * chance.random() ** 3)) if chance.random() < 0.8 else "",
                "publisher": f"{_surname(chance)} Press" if chance.random() < 0.7 else "",
                "num_pages": str(chance.randint(20, 900)) if chance.random() < 0.7 else "",
                "isbn": f"{number:09}X" if number % 3 else "",
                "isbn13": f"978{number:010}" if number % 4 else "",
                "ratings_count": str(_steep(chance, 3_000_000)),
                "authors": [{"author_id": str(int(books / 3 * chance.random() ** 2)), "role": ""}],
                "description": _words(chance, 60),
                "popular_shelves": [{"count": "3", "name": "to-read"}] * 20,
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def mag(folder: Path, papers: int) -> None:
    chance = random.Random(papers)

    def write(name: str, records: Iterable[Mapping[str, object]]) -> None:
        columns = COLUMNS[name].split()
        with zstandard.open(folder / name, "wt", encoding="utf-8") as file:
            for record in records:
                file.write("\t".join(str(record.get(column, "")) for column in columns) + "\t\n")

    conferences, journals, papers_, authorships, authors = COLUMNS
    write(
        conferences,
        (
            {
                "ConferenceInstanceId": number, "DisplayName": f"{_surname(chance).upper()} {1980 + number % 45}",
                "Location": f"{_surname(chance)}, {_surname(chance)}", "StartDate": f"{1980 + number % 45}-05-01",
                "CitationCount": _steep(chance, 100_000), "CreatedDate": "2016-06-24",
            }
            for number in range(papers // 100 + 1)
        ),
    )  # fmt: skip
    write(
        journals,
        (
            {
                "JournalId": number, "DisplayName": f"Journal of {_words(chance, 2)} {_surname(chance)}",
                "Issn": f"{number:08}", "Publisher": f"{_surname(chance)} Press",
                "CitationCount": _steep(chance, 10_000_000),
                "CreatedDate": "2016-06-24",
            }
            for number in range(papers // 200 + 1)
        ),
    )  # fmt: skip
    write(papers_, (_paper(chance, number) for number in range(papers)))
    write(
        authorships,
        (
            {
                "PaperId": number, "AuthorId": int(papers * chance.random() ** 2),
                "AuthorSequenceNumber": place + 1, "OriginalAuthor": "", "OriginalAffiliation": "",
            }
            for number in range(papers)
            for place in range(chance.randint(1, 5))
        ),
    )  # fmt: skip
    write(authors, ({"AuthorId": number, "DisplayName": _name(chance)} for number in range(papers)))


def _paper(chance: random.Random, number: int) -> dict[str, object]:
    title = f"{_words(chance, 4)} in {_surname(chance)} {_surname(chance)}"
    return {
        "PaperId": number, "Doi": f"10.1000/{number}" if number % 3 else "",
        "DocType": chance.choice(["Journal", "Conference", "Patent", "Book", ""]),
        "PaperTitle": title.lower(), "OriginalTitle": title, "Year": 2024 - int(90 * chance.random() ** 3),
        "Publisher": f"{_surname(chance)} Press" if chance.random() < 0.5 else "",
        "CitationCount": _steep(chance, 50_000),
        "OriginalVenue": f"Journal of {_words(chance, 2)}" if chance.random() < 0.7 else "",
    }  # fmt: skip


def dblp(folder: Path, works: int) -> None:
    chance = random.Random(works)
    people = [_name(chance).replace("é", "&eacute;").replace("É", "&Eacute;") for _ in range(works // 3 + 1)]
    with (folder / "dblp.xml").open("w", encoding="ascii") as file:
        file.write('<?xml version="1.0" encoding="ISO-8859-1"?>\n<!DOCTYPE dblp SYSTEM "dblp.dtd">\n<dblp>\n')
        for number in range(works):
            kind = chance.choice(["article", "inproceedings", "inproceedings", "phdthesis", "mastersthesis"])
            thesis = kind.endswith("thesis")
            count = 1 if thesis else chance.randint(1, 5)
            names = {people[int(len(people) * chance.random() ** 3)] for _ in range(count)}
            authors = "".join(f"<author>{name}</author>\n" for name in sorted(names))
            school = f"<school>University of {_surname(chance)}</school>\n" if thesis else ""
            title = f"{_words(chance, 5)} of <i>{_surname(chance)}</i>.".replace("é", "&eacute;")
            file.write(
                f'<{kind} mdate="2017-05-28" key="x/{number}">\n{authors}<title>{title.replace("É", "&Eacute;")}'
                f"</title>\n<year>{2023 - int(50 * chance.random() ** 2)}</year>\n{school}</{kind}>\n"
            )
        file.write("</dblp>\n")


def dbpedia(folder: Path, triples: int) -> None:
    """Not compressed: that takes bz2 longer than all the rest, and the builder reads both."""
    chance = random.Random(triples)
    predicates = [
        *json.loads(TEMPLATES.read_text(encoding="utf-8")),
        *(f"<http://example.org/p{n}>" for n in range(99)),
    ]
    resource = "<http://dbpedia.org/resource/{}>"
    with (folder / "mappingbased-objects_lang=en.ttl").open("w", encoding="utf-8") as file:
        file.write("# started 2022-03-24T17:26:03Z\n")
        for _ in range(triples):
            subject, value = (
                f"{WORDS[n % len(WORDS)]}_{WORDS[n // 7 % len(WORDS)]}_{n}"
                for n in (int(triples / 3 * chance.random() ** power) for power in (2, 4))
            )
            predicate = predicates[int(len(predicates) * chance.random() ** 2)]
            file.write(f"{resource.format(subject)} {predicate} {resource.format(value)} .\n")
        file.write("# completed 2022-03-24T17:28:41Z\n")


def _steep(chance: random.Random, most: int) -> int:
    """A popularity of a power law: half are 1, a tenth 9 and more, a thousandth 999 and more."""
    return min(int(1 / (1 - chance.random())), most)


def _words(chance: random.Random, count: int) -> str:
    return " ".join(chance.choices(WORDS, k=count))


def _surname(chance: random.Random) -> str:
    return "".join(chance.choices(SYLLABLES, k=3)).capitalize()


def _name(chance: random.Random) -> str:
    return f"{chance.choice(WORDS)} {_surname(chance)} {_surname(chance)}"


SOURCES = {"imdb": imdb, "goodreads": goodreads, "mag": mag, "dblp": dblp, "dbpedia": dbpedia}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", choices=sorted(SOURCES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, required=True)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    SOURCES[args.source](args.folder, args.scale)


if __name__ == "__main__":
    main()
