"""Goodreads: questions about books, whose popularity is the number of ratings of all editions."""

# ruff: noqa: S608 - queries consist of names in this package, never of text in a dump

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalsuite.builders.head_to_tail.drawing import (
    Answer,
    QuestionMaker,
    QuestionSource,
    QuestionTemplate,
    RawQuestion,
    write_name,
)
from evalsuite.builders.head_to_tail.workspace import read_json_rows

BOOKS, AUTHORS = ("goodreads_books.json.gz", "goodreads_book_authors.json.gz")
LAST_YEAR = 2015


def _ask(name: str, wording: str, condition: str = "true") -> QuestionTemplate:
    return QuestionTemplate("book", f"goodreads-book-{name}", wording, condition)


# The conditions are on a book's best-known edition; `called` is the name, with the year if other books have this name.
AUTHOR = _ask("author", "Who is the author of the book {called}?")
PUBLISHER = _ask("publisher", "Which publisher brought out {name} in {year}?", "publisher IS NOT NULL")
YEAR = _ask("year", "In which year did {publisher} publish {name}?", "publisher IS NOT NULL")
PAGES = _ask(
    "pages", "How many pages has the {year} edition of {name} by {publisher}?", "publisher IS NOT NULL AND pages > 0"
)
SERIES = _ask("series", "To which series of books does {called} belong?", "series IS NOT NULL")
ISBN_13 = _ask("isbn13", "What is the ISBN-13 of {name}, as published in {year}?", "isbn13 IS NOT NULL")
ISBN_10 = _ask("isbn10", "What is the ISBN-10 of {name}, as published in {year}?", "isbn10 IS NOT NULL")
_TEXT = ("book_id", "work_id", "title", "publication_year", "publisher", "num_pages", "ratings_count", "isbn", "isbn13")
# Splits a title from its series: "The Unschooled Wizard (Sun Wolf and Starhawk, #1-2)".
_IN_SERIES = r"'^(.*\S)\s*\(([^()]*[^(),\s]),?\s*#[^()]*\)\s*$'"


@dataclass(frozen=True, slots=True)
class Edition:
    """One edition of a book; missing values are None."""

    authors: Sequence[str]
    name: str
    series: str | None
    year: int | None
    publisher: str | None
    pages: int | None
    isbn13: str | None
    isbn10: str | None


class GoodreadsSource(QuestionSource):
    """Goodreads' dump, read into the database of a `Workspace`."""

    files, paper_cap = (BOOKS, AUTHORS), 250
    # Only the paper's mix of questions asks for ISBNs.
    templates = (AUTHOR, PUBLISHER, YEAR, PAGES, SERIES)
    paper_templates = (PUBLISHER, AUTHOR, ISBN_13, ISBN_10)

    def _create_tables(self) -> None:
        authors = {"author_id": "VARCHAR", "name": "VARCHAR"}
        query = "CREATE TABLE author AS SELECT author_id AS id, name FROM $dump"
        read_json_rows(self._workspace, query, self._find_file(AUTHORS), authors)
        fields = dict.fromkeys(_TEXT, "VARCHAR") | {"authors": [{"author_id": "VARCHAR", "role": "VARCHAR"}]}
        named = f"regexp_extract(title, {_IN_SERIES}, 1)"
        # Goodreads gives authors an empty role, unlike illustrators, translators and others.
        query = f"""
            CREATE TABLE edition AS
            SELECT book_id AS id, coalesce(nullif(work_id, ''), 'book ' || book_id) AS book,
                   coalesce(nullif({named}, ''), trim(title)) AS name,
                   nullif(regexp_extract(title, {_IN_SERIES}, 2), '') AS series,
                   nullif(TRY_CAST(publication_year AS INTEGER), 0) AS year,
                   nullif(trim(publisher), '') AS publisher, TRY_CAST(num_pages AS INTEGER) AS pages,
                   nullif(trim(isbn13), '') AS isbn13, nullif(trim(isbn), '') AS isbn10,
                   coalesce(TRY_CAST(ratings_count AS UINTEGER), 0) AS ratings,
                   ratings::UHUGEINT * (1::UHUGEINT << 64) + shuffle_key(book_id) AS rank,
                   [one.author_id FOR one IN coalesce(authors, []) IF coalesce(one.role, '') = '']
                   AS authors
            FROM $dump WHERE trim(title) <> ''
        """
        read_json_rows(self._workspace, query, self._find_file(BOOKS), fields)
        # Find the best edition by the number `rank`, because the database can move only numeric aggregates to disk.
        self._workspace.run_sql(f"""
            CREATE TABLE book AS
            SELECT book AS id, popularity, shuffle_key(book) AS lot,
                   lower(name) AS called, year, series, publisher, pages, isbn13, isbn10, authors
            FROM edition JOIN (
                SELECT sum(ratings)::BIGINT AS popularity, max(rank) FILTER (year <= {LAST_YEAR}) AS rank
                FROM edition GROUP BY book HAVING min(year) <= {LAST_YEAR}
            ) USING (rank)
        """)

    def _load_question_maker(self, entity_counts: Mapping[QuestionTemplate, int]) -> QuestionMaker:  # noqa: ARG002 - all books
        books = self._load_books_by_id()
        author_names = dict(
            self._workspace.run_sql("""
                SELECT id, name FROM author
                SEMI JOIN (SELECT DISTINCT unnest(authors) AS id FROM shown) USING (id)
            """)
        )

        def list_questions(template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
            editions, namesakes, twins = books[entity]
            # Editions are sorted by ratings, so the main edition is the first one whose year is known and not too late.
            fitting = [each for each in editions if each.year is not None and each.year <= LAST_YEAR]
            main = fitting[0]
            publisher = (main.publisher or "").lower()
            same_publisher = [each for each in fitting if (each.publisher or "").lower() == publisher]
            same_year = [each for each in editions if each.year == main.year]
            # If the name of an author is missing, list no authors, because the answer would be incomplete.
            authors = [author_names.get(author) for author in main.authors]
            answers: dict[QuestionTemplate, Iterable[Answer | None]] = {
                AUTHOR: [] if None in authors else authors,
                PUBLISHER: [each.publisher for each in same_year],
                YEAR: [each.year for each in same_publisher],
                PAGES: [each.pages for each in same_publisher if each.year == main.year],
                SERIES: [each.series for each in editions],
                ISBN_13: [each.isbn13 for each in same_year],
                ISBN_10: [each.isbn10 for each in same_year],
            }
            called = write_name(main.name, main.year, namesakes, twins, may_show_year=template != YEAR)
            question = template.wording.format(
                called=called, name=f'"{main.name}"', year=main.year, publisher=main.publisher
            )
            yield called and question, answers[template]

        return list_questions

    def _load_books_by_id(self) -> dict[str, tuple[list[Edition], int, int]]:
        """Map each drawn book to its editions, the best-known first, and to the numbers of its namesakes and twins."""
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
            editions[book].append(Edition(authors, *facts))
        rows = self._workspace.run_sql("""
            SELECT shown.id, everyone.many, twin.many
            FROM shown
                 JOIN (SELECT called, count(DISTINCT book) AS many FROM namesake GROUP BY called) AS everyone
                 USING (called)
                 JOIN (SELECT called, year, count(*) AS many FROM namesake GROUP BY called, year) AS twin
                 ON twin.called = shown.called AND twin.year = shown.year
        """)
        return {id_: (editions[id_], namesakes, twins) for id_, namesakes, twins in rows}
