"""Microsoft Academic Graph: questions about conferences, journals and papers (popularity: citations)."""

# ruff: noqa: S608 - queries consist of names in this package, never of text in a dump

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from evalsuite.builders.head_to_tail.drawing import (
    QuestionMaker,
    QuestionSource,
    QuestionTemplate,
    RawQuestion,
    add_namesake_counts,
    make_drawn_ids_sql,
    partition_by_popularity,
)
from evalsuite.builders.head_to_tail.dump_reader import find_dump_file
from evalsuite.builders.head_to_tail.workspace import Workspace, stream_tsv

LAST_YEAR = 2020
# Names of the first columns of each file, from MAG's schema, because the files have no header.
COLUMNS = {
    "ConferenceInstances.txt.zst": (
        "ConferenceInstanceId NormalizedName DisplayName ConferenceSeriesId Location OfficialUrl StartDate"
        " EndDate AbstractRegistrationDate SubmissionDeadlineDate NotificationDueDate FinalVersionDueDate"
        " PaperCount PaperFamilyCount CitationCount Latitude Longitude CreatedDate"
    ),
    "Journals.txt.zst": (
        "JournalId Rank NormalizedName DisplayName Issn Publisher Webpage PaperCount PaperFamilyCount"
        " CitationCount CreatedDate"
    ),
    "Papers.txt.zst": (
        "PaperId Rank Doi DocType PaperTitle OriginalTitle BookTitle Year Date OnlineDate Publisher JournalId"
        " ConferenceSeriesId ConferenceInstanceId Volume Issue FirstPage LastPage ReferenceCount"
        " CitationCount EstimatedCitation OriginalVenue"
    ),
    "PaperAuthorAffiliations.txt.zst": "PaperId AuthorId AffiliationId AuthorSequenceNumber",
    "Authors.txt.zst": "AuthorId Rank NormalizedName DisplayName",
}
LOCATION = QuestionTemplate("mag-conference-location", "conference")
JOURNAL_PUBLISHER = QuestionTemplate("mag-journal-publisher", "journal")
YEAR = QuestionTemplate("mag-paper-year", "paper")
VENUE = QuestionTemplate("mag-paper-venue", "paper")
PUBLISHER = QuestionTemplate("mag-paper-publisher", "paper")
DOI = QuestionTemplate("mag-paper-doi", "paper")
AUTHOR = QuestionTemplate("mag-paper-author", "paper")
ISSN = QuestionTemplate("mag-journal-issn", "journal")
# Maps each template about papers to the SQL condition that a paper must meet, the question, and the answer's field in
# `MagPaper` (none for authors).
_PAPER_QUESTIONS = {
    YEAR: ("true", "In which year did {} appear?", "year"),
    VENUE: ("has_venue", "In which journal or at which conference did {} appear?", "venue"),
    PUBLISHER: ("has_publisher", "Who is the publisher of {}?", "publisher"),
    DOI: ("has_doi", "What is the DOI of {}?", "doi"),
    AUTHOR: ("true", "Name an author of {}.", ""),
}
# Maps each template about conferences or journals to a tuple: SQL condition, question, and the column of the answer.
_VENUE_QUESTIONS = {
    LOCATION: ("answer IS NOT NULL", 'Where was the conference "{}" held?', "answer"),
    JOURNAL_PUBLISHER: ("answer IS NOT NULL", 'Who publishes "{}"?', "answer"),
    ISSN: ("issn IS NOT NULL", 'What is the ISSN of the journal "{}"?', "issn"),
}
_KINDS = {
    "Book": "book",
    "BookChapter": "book chapter",
    "Conference": "paper",
    "Dataset": "dataset",
    "Journal": "paper",
    "Patent": "patent",
    "Repository": "preprint",
    "Thesis": "thesis",
}
# To save memory, titles are compared by a hash; two titles collide with a probability of about 1 in 10^19. The hash is
# computed from MAG's normalised title (lower case, without punctuation).
_TITLE_HASH_SQL = "hash(coalesce(PaperTitle, lower(OriginalTitle)))"


@dataclass(frozen=True, slots=True)
class MagPaper:
    """A paper or another document in the Microsoft Academic Graph."""

    name: str
    kind: str | None  # The type of document in the Microsoft Academic Graph; None if unknown.
    year: int
    publisher: str | None
    venue: str | None
    doi: str | None
    namesakes: int  # Number of papers with this title, including this paper.
    twins: int  # Number of papers with this title and year, including this paper.

    def write_question(self, template: QuestionTemplate) -> str | None:
        # A question about the year must not reveal the year, so the title must be unique.
        if self.namesakes > 1 and (template == YEAR or self.twins > 1):
            return None
        name = self.name.rstrip(".").strip()
        year = "" if self.namesakes == 1 else f" ({self.year})"
        paper = f'the {_KINDS.get(self.kind or "", "publication")} "{name}"{year}'
        return _PAPER_QUESTIONS[template][1].format(paper)


class MagSource(QuestionSource):
    """The dump of Microsoft Academic Graph, read into the database of a `Workspace`."""

    # The file of papers is read twice: to count all papers, and to read the drawn papers.
    files, paper_cap = (*list(COLUMNS)[:3], *list(COLUMNS)[2:]), 100
    templates = (LOCATION, JOURNAL_PUBLISHER, YEAR, VENUE, PUBLISHER, AUTHOR)
    paper_templates = (LOCATION, ISSN, YEAR, VENUE, PUBLISHER, DOI, AUTHOR)

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        super().__init__(workspace, folder)
        self._create_venue_table("conference", "ConferenceInstances", "Location", "StartDate")
        self._create_venue_table("journal", "Journals", "Publisher", "CreatedDate")
        self._create_paper_table()
        self.partitions = {
            entities: partition_by_popularity(workspace, f"(FROM {entities} WHERE up_to_date)")
            for entities in ("conference", "journal", "paper")
        }

    def _make_askable_entities_sql(self, template: QuestionTemplate) -> str:
        condition = (_PAPER_QUESTIONS | _VENUE_QUESTIONS)[template][0]
        return f"(FROM {template.entities} WHERE up_to_date AND {condition})"

    def _load_question_maker(self, entity_counts: Mapping[QuestionTemplate, int]) -> QuestionMaker:
        papers, authors = self._load_papers_by_id(), self._load_authors()
        venues = {template: self._load_venues(template) for template in _VENUE_QUESTIONS if template in entity_counts}

        def list_questions(template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
            if template.entities == "paper":
                paper = papers[entity]
                field = _PAPER_QUESTIONS[template][2]
                yield paper.write_question(template), [getattr(paper, field)] if field else authors.get(entity, [])
            else:
                name, answer, namesakes = venues[template][entity]
                yield _VENUE_QUESTIONS[template][1].format(name) if namesakes == 1 else None, [answer]

        return list_questions

    def _create_venue_table(self, entities: str, file: str, answer_column: str, date_column: str) -> None:
        issn = "Issn" if entities == "journal" else answer_column
        wanted = dict.fromkeys(("NormalizedName", "DisplayName", answer_column, issn, date_column), "VARCHAR")
        number = f"{entities.capitalize()}{'InstanceId' if entities == 'conference' else 'Id'}"
        with self._stream_tsv_file(file, wanted | {number: "VARCHAR", "CitationCount": "UINTEGER"}) as stream:
            self._workspace.run_sql(f"""
                CREATE TABLE {entities} AS
                SELECT {number} AS id, coalesce(DisplayName, NormalizedName) AS name,
                       {answer_column} AS answer, {issn} AS issn,
                       coalesce(CitationCount, 0) AS popularity, {self._make_shuffle_key_sql(number)} AS lot,
                       name IS NOT NULL AND coalesce(regexp_extract({date_column}, '[0-9]{{4}}'), '') <= '{LAST_YEAR}'
                       AS up_to_date
                FROM {stream}
            """)

    def _create_paper_table(self) -> None:
        """Create a table of papers with few columns, because there are hundreds of millions of papers."""
        wanted = ("PaperId", "PaperTitle", "OriginalTitle", "Publisher", "OriginalVenue", "Doi")
        columns = dict.fromkeys(wanted, "VARCHAR") | {"Year": "INTEGER", "CitationCount": "UINTEGER"}
        with self._stream_tsv_file("Papers", columns) as stream:
            self._workspace.run_sql(f"""
                CREATE TABLE paper AS
                SELECT PaperId AS id, {_TITLE_HASH_SQL} AS called, Year AS year,
                       coalesce(CitationCount, 0) AS popularity,
                       {self._make_shuffle_key_sql("PaperId")} AS lot,
                       OriginalTitle IS NOT NULL AND coalesce(Year <= {LAST_YEAR}, false) AS up_to_date,
                       OriginalVenue IS NOT NULL AS has_venue, Publisher IS NOT NULL AS has_publisher,
                       Doi IS NOT NULL AS has_doi
                FROM {stream}
            """)

    def _load_papers_by_id(self) -> dict[str, MagPaper]:
        wanted = ("PaperId", "DocType", "PaperTitle", "OriginalTitle", "Publisher", "OriginalVenue", "Doi")
        columns = dict.fromkeys(wanted, "VARCHAR") | {"Year": "INTEGER"}
        with self._stream_tsv_file("Papers", columns) as stream:
            shown = f"""
                SELECT PaperId AS id, {_TITLE_HASH_SQL} AS called, OriginalTitle AS name, DocType AS kind, Year AS year,
                       Publisher AS publisher, OriginalVenue AS venue, Doi AS doi
                FROM {stream} SEMI JOIN {make_drawn_ids_sql(*_PAPER_QUESTIONS)} ON id = PaperId
            """
            rows = add_namesake_counts(self._workspace, shown, "paper")
        return {id_: MagPaper(*columns) for id_, *columns in rows}

    def _load_authors(self) -> dict[str, list[str | None]]:
        """Map each paper to the names of its authors in order; an empty list if a name is missing."""
        columns = {"PaperId": "VARCHAR", "AuthorId": "VARCHAR", "AuthorSequenceNumber": "INTEGER"}
        with self._stream_tsv_file("PaperAuthorAffiliations", columns) as stream:
            # Remove duplicates, because an author with several affiliations has several rows.
            self._workspace.run_sql(f"""
                CREATE OR REPLACE TABLE authorship AS
                SELECT PaperId AS paper, AuthorId AS id, min(AuthorSequenceNumber) AS place
                FROM {stream} SEMI JOIN {make_drawn_ids_sql(AUTHOR)} ON id = PaperId
                GROUP BY PaperId, AuthorId
            """)
        columns = dict.fromkeys(("AuthorId", "NormalizedName", "DisplayName"), "VARCHAR")
        with self._stream_tsv_file("Authors", columns) as stream:
            self._workspace.run_sql(f"""
                CREATE OR REPLACE TABLE author AS
                SELECT AuthorId AS id, coalesce(DisplayName, NormalizedName) AS name
                FROM {stream} SEMI JOIN (SELECT DISTINCT id FROM authorship) AS wanted ON wanted.id = AuthorId
            """)
        authors = defaultdict(list)
        query = "SELECT paper, name FROM authorship LEFT JOIN author USING (id) ORDER BY paper, place, id"
        for paper, name in self._workspace.run_sql(query):
            authors[paper].append(name)
        return {paper: [] if None in names else names for paper, names in authors.items()}

    def _load_venues(self, template: QuestionTemplate) -> dict[str, tuple[str, str, int]]:
        """Map each drawn entity to its name, its answer, and the number of entities with this name."""
        shown = f"""
            SELECT id, name, {_VENUE_QUESTIONS[template][2]} AS answer, lower(name) AS called, NULL AS year
            FROM {template.entities} SEMI JOIN {make_drawn_ids_sql(template)} USING (id)
        """
        everyone = f"(SELECT lower(name) AS called, NULL AS year FROM {template.entities})"
        rows = add_namesake_counts(self._workspace, shown, everyone)
        return {id_: (name, answer, namesakes) for id_, name, answer, _, namesakes, _ in rows}

    def _stream_tsv_file(self, name: str, columns: Mapping[str, str]) -> AbstractContextManager[str]:
        file = f"{name}.txt.zst"
        return stream_tsv(self._workspace, find_dump_file(self._folder, file), columns, header=COLUMNS[file].split())
