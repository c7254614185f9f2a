from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.builders.head_to_tail.goodreads import GoodreadsSource
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from evalsuite.builders.head_to_tail.workspace import Workspace

    Write = Callable[[Mapping[str, str | bytes]], Path]

BOOKS, AUTHORS = "goodreads_books.json.gz", "goodreads_book_authors.json.gz"


def edition(
    id_: int,
    work: str,
    name: str,
    year: str,
    ratings: str,
    authors: Iterable[tuple[str, str]] = (("1", ""),),
    **more: str,
) -> dict[str, Any]:
    return {
        "isbn": "",
        "isbn13": "",
        "description": "A tab\there and a line\nthere",
        "book_id": str(id_),
        "work_id": work,
        "title": name,
        "publication_year": year,
        "publisher": "",
        "num_pages": "",
        "ratings_count": ratings,
        "authors": [{"author_id": author, "role": role} for author, role in authors],
    } | more


def lines(records: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


# Ratings by book: w1 100, w2 60 and w3 60, w4 5, w5 0, w6 1, w7 1 and 11 of a book without a work: of 238,
# a third is reached within w1, two thirds within w2 and w3, which stay together.
EDITIONS = [
    edition(10, "w1", "Tides (Moon, #1)", "2001", "70", publisher="Orb", num_pages="310"),
    edition(11, "w1", "Tides (Moon, #1)", "2001", "20", publisher="orb", num_pages="312"),
    edition(12, "w1", "Tides (Mond-Reihe, #1)", "2005", "10", publisher="Orb"),
    edition(13, "w1", "Tides", "2017", "0", publisher="Orb"),  # an edition that came too late
    edition(20, "w2", "Grey", "1999", "60", [("2", ""), ("3", "Illustrator")], publisher="Lamp"),
    edition(30, "w3", "grey ", "1990", "60", [("1", ""), ("2", "")]),  # another Grey, of another year
    edition(40, "w4", "Twice", "1980", "5", publisher="Lamp"),  # twice in one year
    edition(41, "w5", "Twice", "1980", "", publisher="Mill"),
    edition(50, "w6", "Late", "2016", "9000", publisher="Orb"),  # too late
    edition(60, "w7", "Undated", "", "9000", publisher="Orb"),  # no year
    edition(70, "w8", "All of Ann Arbor", "1970", "1", publisher="Ann Arbor", num_pages="1970"),
    edition(80, "", "Unknown Hand", "1971", "11", [("9", "")]),  # no work; an author without a name
    edition(90, "w9", "  ", "1971", "9000"),  # no name
    edition(100, "w10", "Bare", "1972", "1", [("3", "Editor")]),  # nobody but an editor
]
FILES = {
    BOOKS: lines(EDITIONS),
    AUTHORS: lines([{"author_id": n, "name": name} for n, name in (("1", "Ann Arbor"), ("2", "Bo Berg"))]),
}
ASKED = {
    ("head", "author", "w1", 'Who is the author of the book "Tides"?', ("Ann Arbor",)),
    ("torso", "author", "w2", 'Who is the author of the book "Grey" (1999)?', ("Bo Berg",)),
    ("torso", "author", "w3", 'Who is the author of the book "grey" (1990)?', ("Ann Arbor", "Bo Berg")),
    ("head", "publisher", "w1", 'Which publisher brought out "Tides" in 2001?', ("Orb", "orb")),
    ("torso", "publisher", "w2", 'Which publisher brought out "Grey" in 1999?', ("Lamp",)),
    ("head", "year", "w1", 'In which year did Orb publish "Tides"?', (2001, 2005)),
    ("tail", "year", "w8", 'In which year did Ann Arbor publish "All of Ann Arbor"?', (1970,)),
    ("head", "pages", "w1", 'How many pages has the 2001 edition of "Tides" by Orb?', (310, 312)),
    ("head", "series", "w1", 'To which series of books does "Tides" belong?', ("Moon", "Mond-Reihe")),
}


def test_all_that_the_rules_allow_is_asked_and_nothing_else(
    dump: Write, workspace: Workspace, candidates: Callable[[GoodreadsSource], set[tuple[object, ...]]]
) -> None:
    found = candidates(GoodreadsSource(workspace, dump(FILES)))
    assert found == {(bucket, f"goodreads-book-{name}", *rest) for bucket, name, *rest in ASKED}


def test_the_paper_s_mix_asks_for_the_isbns_of_every_edition_of_that_year(dump: Write, workspace: Workspace) -> None:
    numbers = {10: ("0312853122", "9780312853129"), 11: ("", "9780312853130"), 12: ("9999999999", "")}
    editions = [
        one | dict(zip(("isbn", "isbn13"), numbers.get(int(one["book_id"]), ("", "")), strict=True)) for one in EDITIONS
    ]
    source = GoodreadsSource(workspace, dump(FILES | {BOOKS: lines(editions)}))
    drawn = source.draw_questions(dict.fromkeys(source.paper_templates, 100))
    assert {template.id.removeprefix("goodreads-book-") for template in drawn} == {
        *("author", "publisher", "isbn10", "isbn13")
    }
    asked = {
        one.question: one.answers
        for template, buckets in drawn.items()
        for found, _ in buckets.values()
        for one in found
        if "isbn" in template.id
    }
    assert asked == {
        'What is the ISBN-10 of "Tides", as published in 2001?': ("0312853122",),
        'What is the ISBN-13 of "Tides", as published in 2001?': ("9780312853129", "9780312853130"),
    }


def test_half_a_character_in_a_field_that_nobody_reads_costs_nothing(
    dump: Write, workspace: Workspace, candidates: Callable[[GoodreadsSource], set[tuple[object, ...]]]
) -> None:
    damaged = [one | {"description": "cut short \ud83d"} for one in EDITIONS]
    found = candidates(GoodreadsSource(workspace, dump(FILES | {BOOKS: lines(damaged)})))
    assert len(found) == len(ASKED)


def test_nothing_is_asked_with_half_a_character_in_it(
    dump: Write, workspace: Workspace, candidates: Callable[[GoodreadsSource], set[tuple[object, ...]]]
) -> None:
    damaged = [one | {"publisher": one["publisher"] + "\udc00"} for one in EDITIONS]
    asked = candidates(GoodreadsSource(workspace, dump(FILES | {BOOKS: lines(damaged)})))
    assert {template for _, template, *_ in asked} == {"goodreads-book-author", "goodreads-book-series"}


def test_popularity_is_the_ratings_of_all_editions_of_books_up_to_2015(dump: Write, workspace: Workspace) -> None:
    shares = GoodreadsSource(workspace, dump(FILES)).partitions["book"].compute_bucket_totals()
    assert shares == {"head": (1, 100), "torso": (2, 120), "tail": (5, 18)}


@pytest.mark.parametrize("ratings", ["-60", "many", "1e40", "9" * 40])
def test_ratings_that_are_no_count_are_none(dump: Write, workspace: Workspace, ratings: str) -> None:
    damaged = [one | {"ratings_count": ratings} if one["work_id"] == "w3" else one for one in EDITIONS]
    shares = (
        GoodreadsSource(workspace, dump(FILES | {BOOKS: lines(damaged)})).partitions["book"].compute_bucket_totals()
    )
    assert sum(popularity for _, popularity in shares.values()) == 238 - 60


def _failure(folder: Path, workspace: Workspace) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        GoodreadsSource(workspace, folder)
    return caught.value


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_of_goodreads_is_named(dump: Write, workspace: Workspace, name: str) -> None:
    folder = dump(FILES)
    (folder / name).unlink()
    assert Path(_failure(folder, workspace).path).name == name


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_of_goodreads_is_named(dump: Write, workspace: Workspace, name: str) -> None:
    folder = dump(FILES)
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-12])
    error = _failure(folder, workspace)
    assert (Path(error.path).name, error.where) == (name, f"byte {len(whole) - 12}")


def test_objects_without_a_field_are_named_with_the_field(dump: Write, workspace: Workspace) -> None:
    books = FILES[BOOKS] + '{"book_id": "1", "title": "x"}\n'
    error = _failure(dump(FILES | {BOOKS: books}), workspace)
    assert (error.where, error.expected) == (f"line {len(EDITIONS) + 1}", "the field 'work_id'")


def test_fields_may_be_null_and_lines_empty(
    dump: Write, workspace: Workspace, candidates: Callable[[GoodreadsSource], set[tuple[object, ...]]]
) -> None:
    nothing = dict.fromkeys(EDITIONS[0], None) | {"book_id": "200", "title": "Nothing Known"}
    books = FILES[BOOKS] + "\n" + lines([nothing]) + "\n"
    assert len(candidates(GoodreadsSource(workspace, dump(FILES | {BOOKS: books})))) == len(ASKED)


@pytest.mark.parametrize(
    ("damaged", "found"),
    [
        (b'{"author_id": "3", "name": ', '\'{"author_id": "3", "name": \''),
        (b'{"author_id": "3", "name": "\xe9"}', "the byte 0xe9 as its byte 29"),
        (b"[1, 2]", "'[1, 2]'"),
        (b"[" * 100_000, repr("[" * 60)),
        (b'{"author_id": "3", "name": "a\x01b"}', '\'{"author_id": "3", "name": "a\\x01b"}\''),
    ],
)
def test_a_damaged_line_of_goodreads_is_named(dump: Write, workspace: Workspace, damaged: bytes, found: str) -> None:
    error = _failure(dump(FILES | {AUTHORS: FILES[AUTHORS].encode() + damaged + b"\n"}), workspace)
    assert (Path(error.path).name, error.where, error.found) == (AUTHORS, "line 3", found)


@pytest.mark.parametrize("authors", ["Ann Arbor", ["Ann Arbor"], [{"author_id": "1"}]])
def test_authors_that_are_no_list_are_named_with_their_line(dump: Write, workspace: Workspace, authors: object) -> None:
    records = [*EDITIONS, EDITIONS[0] | {"authors": authors}]
    error = _failure(dump(FILES | {BOOKS: lines(records)}), workspace)
    assert (error.where, error.expected) == (f"line {len(records)}", "a list of objects of author_id, role")
