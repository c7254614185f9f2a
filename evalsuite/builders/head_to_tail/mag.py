"""Microsoft Academic Graph: questions about conferences, journals and papers (popularity: citations)."""

# ruff: noqa: S608 - queries consist of names in this package, never of text in a dump

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from evalsuite.builders.head_to_tail.drawing import (
    Answer,
    QuestionMaker,
    QuestionSource,
    QuestionTemplate,
    RawQuestion,
    add_namesake_counts,
    make_drawn_ids_sql,
    write_name,
)
from evalsuite.builders.head_to_tail.workspace import read_tsv

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
_IS_ANSWERED = "answer IS NOT NULL"
LOCATION = QuestionTemplate(
    "conference", "mag-conference-location", 'Where was the conference "{}" held?', _IS_ANSWERED
)
JOURNAL_PUBLISHER = QuestionTemplate("journal", "mag-journal-publisher", 'Who publishes "{}"?', _IS_ANSWERED)
ISSN = QuestionTemplate("journal", "mag-journal-issn", 'What is the ISSN of the journal "{}"?', "issn IS NOT NULL")
YEAR = QuestionTemplate("paper", "mag-paper-year", "In which year did {} appear?")
VENUE = QuestionTemplate(
    "paper", "mag-paper-venue", "In which journal or at which conference did {} appear?", "has_venue"
)
PUBLISHER = QuestionTemplate("paper", "mag-paper-publisher", "Who is the publisher of {}?", "has_publisher")
DOI = QuestionTemplate("paper", "mag-paper-doi", "What is the DOI of {}?", "has_doi")
AUTHOR = QuestionTemplate("paper", "mag-paper-author", "Name an author of {}.")
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


class MagSource(QuestionSource):
    """The dump of Microsoft Academic Graph, read into the database of a `Workspace`."""

    # The file of papers is read twice: to count all papers, and to read the drawn papers.
    files, paper_cap = (*list(COLUMNS)[:3], *list(COLUMNS)[2:]), 100
    templates = (LOCATION, JOURNAL_PUBLISHER, YEAR, VENUE, PUBLISHER, AUTHOR)
    paper_templates = (LOCATION, ISSN, YEAR, VENUE, PUBLISHER, DOI, AUTHOR)

    def _create_tables(self) -> None:
        self._create_venue_table("conference", "ConferenceInstances", "ConferenceInstanceId", "Location", "StartDate")
        self._create_venue_table("journal", "Journals", "JournalId", "Publisher", "CreatedDate", issn_column="Issn")
        # The table of papers has few columns, because there are hundreds of millions of papers.
        wanted = ("PaperId", "PaperTitle", "OriginalTitle", "Publisher", "OriginalVenue", "Doi")
        columns = dict.fromkeys(wanted, "VARCHAR") | {"Year": "INTEGER", "CitationCount": "UINTEGER"}
        query = f"""
            CREATE TABLE all_paper AS
            SELECT PaperId AS id, {_TITLE_HASH_SQL} AS called, Year AS year,
                   coalesce(CitationCount, 0) AS popularity, shuffle_key(PaperId) AS lot,
                   OriginalTitle IS NOT NULL AND coalesce(Year <= {LAST_YEAR}, false) AS up_to_date,
                   OriginalVenue IS NOT NULL AS has_venue, Publisher IS NOT NULL AS has_publisher,
                   Doi IS NOT NULL AS has_doi
            FROM $dump
        """
        self._read_tsv_file("Papers", columns, query)
        for entities in ("conference", "journal", "paper"):
            self._workspace.run_sql(f"CREATE VIEW {entities} AS FROM all_{entities} WHERE up_to_date")

    def _create_venue_table(
        self, entities: str, file: str, id_column: str, answer_column: str, date_column: str, issn_column: str = "NULL"
    ) -> None:
        wanted = ("NormalizedName", "DisplayName", id_column, answer_column, date_column, issn_column)
        query = f"""
            CREATE TABLE all_{entities} AS
            SELECT {id_column} AS id, coalesce(DisplayName, NormalizedName) AS name,
                   {answer_column} AS answer, {issn_column} AS issn,
                   coalesce(CitationCount, 0) AS popularity, shuffle_key({id_column}) AS lot,
                   name IS NOT NULL AND coalesce(regexp_extract({date_column}, '[0-9]{{4}}'), '') <= '{LAST_YEAR}'
                   AS up_to_date
            FROM $dump
        """
        self._read_tsv_file(file, dict.fromkeys(wanted, "VARCHAR") | {"CitationCount": "UINTEGER"}, query)

    def _load_question_maker(self, entity_counts: Mapping[QuestionTemplate, int]) -> QuestionMaker:  # noqa: ARG002 - all templates
        wanted = ("PaperId", "DocType", "PaperTitle", "OriginalTitle", "Publisher", "OriginalVenue", "Doi")
        columns = dict.fromkeys(wanted, "VARCHAR") | {"Year": "INTEGER"}
        query = f"""
            CREATE OR REPLACE TABLE drawn_paper AS
            SELECT PaperId AS id, {_TITLE_HASH_SQL} AS called, OriginalTitle AS name, DocType AS kind, Year AS year,
                   Publisher AS publisher, OriginalVenue AS venue, Doi AS doi
            FROM $dump SEMI JOIN drawn ON drawn.id = PaperId
        """
        self._read_tsv_file("Papers", columns, query)
        counted = add_namesake_counts(self._workspace, "FROM drawn_paper", "all_paper")
        papers = {id_: facts for id_, *facts in counted}
        authors = self._load_authors()
        venues = {}
        for entities in ("conference", "journal"):
            shown = f"""
                SELECT id, name, answer, issn, lower(name) AS called, NULL AS year
                FROM all_{entities} SEMI JOIN drawn USING (id)
            """
            everyone = f"(SELECT lower(name) AS called, NULL AS year FROM all_{entities})"
            found = add_namesake_counts(self._workspace, shown, everyone)
            venues[entities] = {id_: facts for id_, *facts in found}

        def list_questions(template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
            if template.entities == "paper":
                title, kind, year, publisher, venue, doi, namesakes, twins = papers[entity]
                title = title.rstrip(".").strip()
                name = write_name(title, year, namesakes, twins, may_show_year=template != YEAR)
                answers: Mapping[QuestionTemplate, Iterable[Answer | None]] = {
                    YEAR: [year],
                    VENUE: [venue],
                    PUBLISHER: [publisher],
                    DOI: [doi],
                    AUTHOR: authors.get(entity, []),
                }
                paper = f"the {_KINDS.get(kind or '', 'publication')} {name}"
                yield name and template.wording.format(paper), answers[template]
            else:
                name, answer, issn, _, namesakes, _ = venues[template.entities][entity]
                yield template.wording.format(name) if namesakes == 1 else None, [issn if template == ISSN else answer]

        return list_questions

    def _load_authors(self) -> dict[str, list[str | None]]:
        """Map each paper to the names of its authors in order; an empty list if a name is missing."""
        columns = {"PaperId": "VARCHAR", "AuthorId": "VARCHAR", "AuthorSequenceNumber": "INTEGER"}
        # Remove duplicates, because an author with several affiliations has several rows.
        query = f"""
            CREATE OR REPLACE TABLE authorship AS
            SELECT PaperId AS paper, AuthorId AS id, min(AuthorSequenceNumber) AS place
            FROM $dump SEMI JOIN {make_drawn_ids_sql(AUTHOR)} ON id = PaperId
            GROUP BY PaperId, AuthorId
        """
        self._read_tsv_file("PaperAuthorAffiliations", columns, query)
        columns = dict.fromkeys(("AuthorId", "NormalizedName", "DisplayName"), "VARCHAR")
        query = """
            CREATE OR REPLACE TABLE author AS
            SELECT AuthorId AS id, coalesce(DisplayName, NormalizedName) AS name
            FROM $dump SEMI JOIN (SELECT DISTINCT id FROM authorship) AS wanted ON wanted.id = AuthorId
        """
        self._read_tsv_file("Authors", columns, query)
        authors = defaultdict(list)
        query = "SELECT paper, name FROM authorship LEFT JOIN author USING (id) ORDER BY paper, place, id"
        for paper, name in self._workspace.run_sql(query):
            authors[paper].append(name)
        return {paper: [] if None in names else names for paper, names in authors.items()}

    def _read_tsv_file(self, name: str, columns: Mapping[str, str], query: str) -> None:
        file = f"{name}.txt.zst"
        read_tsv(self._workspace, query, self._find_file(file), columns, header=COLUMNS[file].split())
