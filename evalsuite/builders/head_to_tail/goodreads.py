"""Goodreads: questions about books, whose popularity is the number of ratings of all editions."""

# ruff: noqa: S608 - queries consist of names in this package, never of text in a dump

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evalsuite.builders.head_to_tail.drawing import (
    Answer,
    QuestionMaker,
    QuestionSource,
    QuestionTemplate,
    RawQuestion,
    partition_by_popularity,
)
from evalsuite.builders.head_to_tail.dump_reader import find_dump_file
from evalsuite.builders.head_to_tail.workspace import Workspace, stream_json_rows

BOOKS, AUTHORS = ("goodreads_books.json.gz", "goodreads_book_authors.json.gz")
LAST_YEAR = 2015
AUTHOR = QuestionTemplate("goodreads-book-author", "book")
PUBLISHER = QuestionTemplate("goodreads-book-publisher", "book")
YEAR = QuestionTemplate("goodreads-book-year", "book")
PAGES = QuestionTemplate("goodreads-book-pages", "book")
SERIES = QuestionTemplate("goodreads-book-series", "book")
ISBN_13 = QuestionTemplate("goodreads-book-isbn13", "book")
ISBN_10 = QuestionTemplate("goodreads-book-isbn10", "book")
# Maps each template to the SQL condition that a book's best-known edition must meet, and to the question. `called` is
# the name, with the year if other books have the same name.
_BOOK_TEMPLATES = {
    AUTHOR: ("true", "Who is the author of the book {called}?"),
    PUBLISHER: ("publisher IS NOT NULL", "Which publisher brought out {name} in {year}?"),
    YEAR: ("publisher IS NOT NULL", "In which year did {publisher} publish {name}?"),
    PAGES: ("publisher IS NOT NULL AND pages > 0", "How many pages has the {year} edition of {name} by {publisher}?"),
    SERIES: ("series IS NOT NULL", "To which series of books does {called} belong?"),
    ISBN_13: ("isbn13 IS NOT NULL", "What is the ISBN-13 of {name}, as published in {year}?"),
    ISBN_10: ("isbn10 IS NOT NULL", "What is the ISBN-10 of {name}, as published in {year}?"),
}
_TEXT = ("book_id", "work_id", "title", "publication_year", "publisher", "num_pages", "ratings_count", "isbn", "isbn13")
# Splits a title from its series: "The Unschooled Wizard (Sun Wolf and Starhawk, #1-2)".
_IN_SERIES = r"'^(.*\S)\s*\(([^()]*[^(),\s]),?\s*#[^()]*\)\s*$'"


@dataclass(frozen=True, slots=True)
class Edition:
    """One edition of a book; missing values are None."""

    authors: tuple[str, ...]
    name: str
    series: str | None
    year: int | None
    publisher: str | None
    pages: int | None
    isbn13: str | None
    isbn10: str | None

    def has_usable_year(self) -> bool:
        """Tell whether the year is known and not later than `LAST_YEAR`."""
        return self.year is not None and self.year <= LAST_YEAR


@dataclass(frozen=True, slots=True)
class Book:
    """A book in all its editions."""

    main: Edition  # The edition with the most ratings among those with a usable year.
    editions: tuple[Edition, ...]
    namesakes: int  # Number of books with an edition named like `main`, including this book.
    twins: int  # Number of books with an edition that shares name and year with `main`, including this book.

    def write_question(self, template: QuestionTemplate) -> str | None:
        # A question about the year must not reveal the year, so the name must be unique.
        if self.namesakes > 1 and (template == YEAR or self.twins > 1):
            return None
        name, year = f'"{self.main.name}"', self.main.year
        called = name if self.namesakes == 1 else f"{name} ({year})"
        question = _BOOK_TEMPLATES[template][1]
        return question.format(called=called, name=name, year=year, publisher=self.main.publisher)

    def list_answers(self, template: QuestionTemplate, author_names: Mapping[str, str]) -> Iterable[Answer | None]:
        """Return the answers from all fitting editions; return no authors if the name of any author is missing."""
        publisher = (self.main.publisher or "").lower()
        fitting = filter(Edition.has_usable_year, self.editions)
        same_publisher = [each for each in fitting if (each.publisher or "").lower() == publisher]
        same_year = [each for each in self.editions if each.year == self.main.year]
        authors = [author_names.get(author) for author in self.main.authors]
        answers: dict[QuestionTemplate, Iterable[Answer | None]] = {
            AUTHOR: [] if None in authors else authors,
            PUBLISHER: [each.publisher for each in same_year],
            YEAR: [each.year for each in same_publisher],
            PAGES: [each.pages for each in same_publisher if each.year == self.main.year],
            SERIES: [each.series for each in self.editions],
            ISBN_13: [each.isbn13 for each in same_year],
            ISBN_10: [each.isbn10 for each in same_year],
        }
        return answers[template]


class GoodreadsSource(QuestionSource):
    """Goodreads' dump, read into the database of a `Workspace`."""

    files, paper_cap = (BOOKS, AUTHORS), 250
    # Only the paper's mix of questions asks for ISBNs.
    templates = (AUTHOR, PUBLISHER, YEAR, PAGES, SERIES)
    paper_templates = (PUBLISHER, AUTHOR, ISBN_13, ISBN_10)

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        super().__init__(workspace, folder)
        authors = find_dump_file(folder, AUTHORS)
        with stream_json_rows(workspace, authors, {"author_id": "VARCHAR", "name": "VARCHAR"}) as stream:
            workspace.run_sql(f"CREATE TABLE author AS SELECT author_id AS id, name FROM {stream}")
        self._create_book_tables(find_dump_file(folder, BOOKS))
        self.partitions = {"book": partition_by_popularity(workspace, "book")}

    def _make_askable_entities_sql(self, template: QuestionTemplate) -> str:
        return f"(FROM book WHERE {_BOOK_TEMPLATES[template][0]})"

    def _load_question_maker(self, entity_counts: Mapping[QuestionTemplate, int]) -> QuestionMaker:  # noqa: ARG002 - all books
        books = self._load_books_by_id()
        names = dict(
            self._workspace.run_sql("""
                SELECT id, name FROM author
                SEMI JOIN (SELECT DISTINCT unnest(authors) AS id FROM shown) USING (id)
            """)
        )

        def list_questions(template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
            book = books[entity]
            yield book.write_question(template), book.list_answers(template, names)

        return list_questions

    def _create_book_tables(self, path: Path) -> None:
        fields = dict.fromkeys(_TEXT, "VARCHAR") | {"authors": [{"author_id": "VARCHAR", "role": "VARCHAR"}]}
        named = f"regexp_extract(title, {_IN_SERIES}, 1)"
        with stream_json_rows(self._workspace, path, fields) as stream:
            # Goodreads gives authors an empty role, unlike illustrators, translators and others.
            self._workspace.run_sql(f"""
                CREATE TABLE edition AS
                SELECT book_id AS id, coalesce(nullif(work_id, ''), 'book ' || book_id) AS book,
                       coalesce(nullif({named}, ''), trim(title)) AS name,
                       nullif(regexp_extract(title, {_IN_SERIES}, 2), '') AS series,
                       nullif(TRY_CAST(publication_year AS INTEGER), 0) AS year,
                       nullif(trim(publisher), '') AS publisher, TRY_CAST(num_pages AS INTEGER) AS pages,
                       nullif(trim(isbn13), '') AS isbn13, nullif(trim(isbn), '') AS isbn10,
                       coalesce(TRY_CAST(ratings_count AS UINTEGER), 0) AS ratings,
                       ratings::UHUGEINT * (1::UHUGEINT << 64) + {self._make_shuffle_key_sql("book_id")} AS rank,
                       [one.author_id FOR one IN coalesce(authors, []) IF coalesce(one.role, '') = '']
                       AS authors
                FROM {stream} WHERE trim(title) <> ''
            """)
        # Find the best edition by the number `rank`, because the database can move only numeric aggregates to disk.
        self._workspace.run_sql(f"""
            CREATE TABLE book AS
            SELECT book AS id, popularity, {self._make_shuffle_key_sql("book")} AS lot,
                   lower(name) AS called, year, series, publisher, pages, isbn13, isbn10, authors
            FROM edition JOIN (
                SELECT sum(ratings)::BIGINT AS popularity, max(rank) FILTER (year <= {LAST_YEAR}) AS rank
                FROM edition GROUP BY book HAVING min(year) <= {LAST_YEAR}
            ) USING (rank)
        """)

    def _load_books_by_id(self) -> dict[str, Book]:
        self._workspace.run_sql("""
            CREATE OR REPLACE TABLE shown AS
            SELECT id, called, year, authors FROM book SEMI JOIN drawn USING (id)
        """)
        self._workspace.run_sql("""
            CREATE OR REPLACE TABLE namesake AS
            SELECT DISTINCT called, year, book
            FROM (SELECT lower(name) AS called, year, book FROM edition)
                 SEMI JOIN (SELECT DISTINCT called FROM shown) USING (called)
        """)
        editions = defaultdict(list)
        for book, authors, *facts in self._workspace.run_sql("""
            SELECT book, authors, name, series, year, publisher, pages, isbn13, isbn10
            FROM edition SEMI JOIN (SELECT id AS book FROM shown) USING (book) ORDER BY rank DESC
        """):
            editions[book].append(Edition(tuple(authors), *facts))
        rows = self._workspace.run_sql("""
            SELECT shown.id, everyone.many, twin.many
            FROM shown
                 JOIN (SELECT called, count(DISTINCT book) AS many FROM namesake GROUP BY called) AS everyone
                 USING (called)
                 JOIN (SELECT called, year, count(*) AS many FROM namesake GROUP BY called, year) AS twin
                 ON twin.called = shown.called AND twin.year = shown.year
        """)
        # Editions are sorted by ratings, so the main edition is the first edition with a usable year.
        return {
            id_: Book(next(filter(Edition.has_usable_year, editions[id_])), tuple(editions[id_]), namesakes, twins)
            for id_, namesakes, twins in rows
        }
