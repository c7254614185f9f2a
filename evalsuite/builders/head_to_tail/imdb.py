"""IMDb: questions about titles and people.

A title's popularity is its number of votes; a person's popularity is the number of votes for the person's best-known
titles.
"""

# ruff: noqa: S608 - queries consist of names in this package, never of text in a dump

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from evalsuite.builders.head_to_tail.drawing import (
    Answer,
    QuestionMaker,
    QuestionSource,
    QuestionTemplate,
    RawQuestion,
    add_namesake_counts,
    compute_shuffle_key,
    make_drawn_ids_sql,
    write_name,
)
from evalsuite.builders.head_to_tail.workspace import read_tsv
from evalsuite.core.errors import DatasetError

KINDS = {
    "movie": "film",
    "short": "short film",
    "tvEpisode": "TV episode",
    "tvMiniSeries": "TV mini-series",
    "tvMovie": "TV film",
    "tvPilot": "TV pilot",
    "tvSeries": "TV series",
    "tvShort": "short TV film",
    "tvSpecial": "TV special",
    "video": "video",
    "videoGame": "video game",
}
# IMDb's types of titles that have a start and an end year instead of a release year.
SERIES = ("tvSeries", "tvMiniSeries")
LAST_YEAR = 2020
# IMDb's professions that are not specific enough for an answer; the paper's templates ask for "soundtrack".
_NO_PROFESSIONS = ("archive_footage", "archive_sound", "miscellaneous", "soundtrack")
_SPECIALTIES = ("legal", "soundtrack", "special_effects", "stunts", "visual_effects")
_IS_DEPARTMENT = "regexp_full_match(professions, '[^,]*_department|location_management')"


def _ask_about_title(name: str, wording: str, condition: str = "true") -> QuestionTemplate:
    return QuestionTemplate("title", f"imdb-title-{name}", wording, condition)


def _ask_about_person(name: str, wording: str, condition: str = "true") -> QuestionTemplate:
    condition = f"id IN (SELECT id FROM all_person WHERE {condition})"
    return QuestionTemplate("person", f"imdb-person-{name}", wording, condition)


# The conditions contain Python tuples of texts, because their `repr` is valid SQL.
START_YEAR = _ask_about_title("start-year", "In which year did the {kind} {name} first go on air?", f"kind IN {SERIES}")
RELEASE_YEAR = _ask_about_title(
    "release-year", "In which year did the {kind} {name} come out?", f"kind NOT IN {SERIES}"
)
END_YEAR = _ask_about_title("end-year", "In which year did the {kind} {name} end?", f"end_year <= {LAST_YEAR}")
# Leave out series, because IMDb's running time of a series may mean one episode or all episodes.
RUNNING_TIME = _ask_about_title(
    "running-time", "How many minutes does the {kind} {name} run?", f"minutes > 0 AND kind NOT IN {SERIES}"
)
DIRECTOR = _ask_about_title("director", "Who directed the {kind} {name}?")
WRITER = _ask_about_title("writer", "Who wrote the {kind} {name}?")
CHARACTER = _ask_about_title("character", "Which actor or actress played {role} in the {kind} {name}?")
BIRTH_YEAR = _ask_about_person("birth-year", "In which year was {person}, born?", f"birth_year <= {LAST_YEAR}")
DEATH_YEAR = _ask_about_person("death-year", "In which year did {person}, die?", f"death_year <= {LAST_YEAR}")
PROFESSION = _ask_about_person("profession", "What is the profession of {person}?")
# The paper's three templates for people with a single profession.
JOB = _ask_about_person(
    "job",
    "What is the job of {person}?",
    f"NOT contains(professions, ',') AND NOT {_IS_DEPARTMENT} AND professions NOT IN {_SPECIALTIES + _NO_PROFESSIONS}",
)
DEPARTMENT = _ask_about_person("department", "In which department does {person}, work?", _IS_DEPARTMENT)
SPECIALTY = _ask_about_person("specialty", "What is the line of work of {person}?", f"professions IN {_SPECIALTIES}")
KNOWN_FOR = _ask_about_person("known-for", "Name a work that {name} is known for.")
_ABOUT_TITLES = (START_YEAR, RELEASE_YEAR, END_YEAR, RUNNING_TIME, DIRECTOR, WRITER, CHARACTER)
_CREDITS = (DIRECTOR, WRITER, CHARACTER)  # Templates whose answers are in the files of credits.
_MORE = 8  # Oversampling factor for `_CREDITS`: many titles lack credits, and another draw reads large files again.

# Entries in a person's list of roles that do not name a character.
_NOT_A_CHARACTER = re.compile(
    r"(?:self|himself|herself|themsel(?:f|ves)|itself)\b.*|"
    r"(?:various|additional|other|multiple)(?: (?:characters?|roles?|voices?))?|"
    r"extras?|ensemble|unknown|uncredited",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Title:
    """A film, a series or another work in IMDb."""

    popularity: int
    kind: str  # IMDb's type of title.
    name: str
    year: int | None  # The year of release; for a series, the first year; None if unknown.
    end_year: int | None  # The year in which a series ended, if it has ended.
    minutes: int | None
    namesakes: int  # Number of titles with this name, including this title.
    twins: int  # Number of titles with this name and year, including this title.

    def write_name(self, *, may_show_year: bool = True) -> str | None:
        """Quote the name for a question, with the year if needed; None if the title stays ambiguous."""
        return write_name(self.name, self.year, self.namesakes, self.twins, may_show_year=may_show_year)

    def write_question(self, template: QuestionTemplate, role: str = "") -> str | None:
        """Make the question, or None if the title is ambiguous; for the template CHARACTER, `role` is the character."""
        name = self.write_name(may_show_year=template not in {START_YEAR, RELEASE_YEAR, END_YEAR})
        return name and template.wording.format(kind=KINDS.get(self.kind, "title"), name=name, role=role)


def write_person_question(template: QuestionTemplate, name: str, work: str | None) -> str | None:
    """Make a question that names a person and the best-known work; `work` is None if the work's title is ambiguous."""
    if work is None and template != KNOWN_FOR:
        return None
    return template.wording.format(name=name, person=f"{name}, known for {work}")


def is_character(role: str) -> bool:
    """Tell whether a role is the name of a character, unlike "himself" or "extra"."""
    return bool(role.strip()) and not _NOT_A_CHARACTER.fullmatch(role.strip())


def parse_professions(professions: str | None) -> list[str]:
    """Convert IMDb's list of professions (`actress,camera_department`) to words; an actress is also an actor."""
    words = [word for word in (professions or "").split(",") if word and word not in _NO_PROFESSIONS]
    if "actress" in words and "actor" not in words:
        words.append("actor")
    return [word.replace("_", " ") for word in words]


class ImdbSource(QuestionSource):
    """IMDb's dump, read into the database of a `Workspace`."""

    files = (
        *("title.ratings.tsv.gz", "title.basics.tsv.gz", "name.basics.tsv.gz"),
        *("title.crew.tsv.gz", "title.principals.tsv.gz"),
    )
    paper_cap = 85
    templates = (*_ABOUT_TITLES, BIRTH_YEAR, DEATH_YEAR, PROFESSION, KNOWN_FOR)
    paper_templates = (*_ABOUT_TITLES, BIRTH_YEAR, DEATH_YEAR, JOB, DEPARTMENT, SPECIALTY, KNOWN_FOR)
    _credits_read: Mapping[QuestionTemplate, int] | None = None  # The numbers of titles whose credits have been read.

    def _draw_entities(self, entity_counts: Mapping[QuestionTemplate, int]) -> None:
        super()._draw_entities({one: size * (_MORE if one in _CREDITS else 1) for one, size in entity_counts.items()})

    def _load_question_maker(self, entity_counts: Mapping[QuestionTemplate, int]) -> QuestionMaker:
        wanted = {template: entity_counts[template] for template in _CREDITS if template in entity_counts}
        if wanted != self._credits_read:
            self._create_credit_tables()
            self._credits_read = wanted
        self._workspace.run_sql("""
            CREATE OR REPLACE TABLE work AS
            SELECT id AS person, string_split(works, ',') AS ids FROM all_person SEMI JOIN drawn USING (id)
        """)
        self._works = dict(self._workspace.run_sql("FROM work"))
        shown = """
            SELECT id, popularity, kind, name, year, end_year, minutes, lower(name) AS called
            FROM all_title SEMI JOIN (SELECT id FROM drawn UNION SELECT unnest(ids) FROM work) USING (id)
        """
        titles = add_namesake_counts(self._workspace, shown, "(SELECT lower(name) AS called, year FROM all_title)")
        self._titles = {id_: Title(*columns) for id_, *columns in titles}
        shown = """
            SELECT id, name, professions, birth_year, death_year, lower(name) AS called, NULL AS year
            FROM all_person SEMI JOIN drawn USING (id)
        """
        people = "(SELECT lower(name) AS called, NULL AS year FROM all_person)"
        self._people = {id_: facts for id_, *facts in add_namesake_counts(self._workspace, shown, people)}
        self._crew = {id_: people for id_, *people in self._workspace.run_sql("FROM crew")}
        self._parts = self._load_actors_by_title_and_character()
        self._names = dict(
            self._workspace.run_sql("""
                SELECT id, name FROM all_person SEMI JOIN (
                    SELECT unnest(string_split(directors, ',')) AS id FROM crew
                    UNION SELECT unnest(string_split(writers, ',')) FROM crew
                    UNION SELECT person FROM part
                ) USING (id)
            """)
        )
        return self._list_questions

    def _create_tables(self) -> None:
        query = "CREATE TABLE rating AS SELECT tconst, numVotes AS votes FROM $dump"
        self._read_tsv_file("title.ratings", {"tconst": "VARCHAR", "numVotes": "UINTEGER"}, query)
        # A few rows of the real file have words in the columns of years and minutes; TRY_CAST makes these words null.
        wanted = ("tconst", "titleType", "primaryTitle", "startYear", "endYear", "runtimeMinutes")
        query = """
            CREATE TABLE all_title AS
            SELECT tconst AS id, titleType AS kind, primaryTitle AS name,
                   TRY_CAST(startYear AS INTEGER) AS year, TRY_CAST(endYear AS INTEGER) AS end_year,
                   TRY_CAST(runtimeMinutes AS INTEGER) AS minutes,
                   coalesce(votes, 1) AS popularity, shuffle_key(tconst) AS lot
            FROM $dump LEFT JOIN rating USING (tconst)
            WHERE primaryTitle IS NOT NULL
        """
        self._read_tsv_file("title.basics", dict.fromkeys(wanted, "VARCHAR"), query)
        self._workspace.run_sql(f"CREATE VIEW title AS FROM all_title WHERE year <= {LAST_YEAR}")
        wanted = ("nconst", "primaryName", "birthYear", "deathYear", "primaryProfession", "knownForTitles")
        query = """
            CREATE TABLE all_person AS
            SELECT nconst AS id, primaryName AS name, TRY_CAST(birthYear AS INTEGER) AS birth_year,
                   TRY_CAST(deathYear AS INTEGER) AS death_year, primaryProfession AS professions,
                   knownForTitles AS works
            FROM $dump WHERE primaryName IS NOT NULL
        """
        self._read_tsv_file("name.basics", dict.fromkeys(wanted, "VARCHAR"), query)
        self._workspace.run_sql("""
            CREATE TABLE person AS
            SELECT person AS id, sum(popularity)::BIGINT AS popularity, shuffle_key(person) AS lot
            FROM (SELECT id AS person, unnest(string_split(works, ',')) AS id FROM all_person) JOIN title USING (id)
            GROUP BY person
        """)

    def _read_tsv_file(self, name: str, columns: Mapping[str, str], query: str) -> None:
        read_tsv(self._workspace, query, self._find_file(f"{name}.tsv.gz"), columns)

    def _create_credit_tables(self) -> None:
        wanted = dict.fromkeys(("tconst", "directors", "writers"), "VARCHAR")
        query = f"""
            CREATE OR REPLACE TABLE crew AS
            SELECT tconst AS id, directors, writers
            FROM $dump SEMI JOIN {make_drawn_ids_sql(DIRECTOR, WRITER)} ON id = tconst
        """
        self._read_tsv_file("title.crew", wanted, query)
        wanted = dict.fromkeys(("tconst", "nconst", "category", "characters"), "VARCHAR") | {"ordering": "INTEGER"}
        query = f"""
            CREATE OR REPLACE TABLE part AS
            SELECT tconst AS id, ordering, nconst AS person, characters
            FROM $dump SEMI JOIN {make_drawn_ids_sql(CHARACTER)} ON id = tconst
            WHERE category IN ('actor', 'actress') AND characters IS NOT NULL
        """
        self._read_tsv_file("title.principals", wanted, query)

    def _list_questions(self, template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
        if template.entities == "person":
            yield self._make_person_question(template, entity)
            return
        title = self._titles[entity]
        if template == CHARACTER:
            parts, seed = self._parts.get(entity, {}), self._workspace.seed
            for role in sorted(parts, key=lambda role: compute_shuffle_key(seed, CHARACTER.id, entity, role)):
                if is_character(role):
                    yield title.write_question(CHARACTER, role), self._list_names(",".join(parts[role]))
            return
        directors, writers = self._crew.get(entity, (None, None))
        answers: dict[QuestionTemplate, Iterable[Answer | None]] = {
            START_YEAR: [title.year],
            RELEASE_YEAR: [title.year],
            END_YEAR: [title.end_year],
            RUNNING_TIME: [title.minutes],
            DIRECTOR: self._list_names(directors),
            WRITER: self._list_names(writers),
        }
        yield title.write_question(template), answers[template]

    def _make_person_question(self, template: QuestionTemplate, entity: str) -> RawQuestion:
        name, professions, birth_year, death_year, _, namesakes, _ = self._people[entity]
        if namesakes > 1:
            return None, ()
        works = [self._titles.get(work) for work in self._works[entity]]
        asked = (work for work in works if work and work.year is not None and work.year <= LAST_YEAR)
        best = max(asked, key=lambda title: title.popularity)
        answers: dict[QuestionTemplate, Iterable[Answer | None]] = {
            BIRTH_YEAR: [birth_year],
            DEATH_YEAR: [death_year],
            PROFESSION: parse_professions(professions),
            KNOWN_FOR: [] if None in works else [work.name for work in works if work],
        }
        only_profession = [(professions or "").replace("_", " ")]
        return write_person_question(template, name, best.write_name()), answers.get(template, only_profession)

    def _list_names(self, person_ids: str | None) -> list[Answer | None]:
        """Return the people's names; return [] if any name is unknown, because the answers would be incomplete."""
        names = [self._names.get(person) for person in person_ids.split(",")] if person_ids else []
        return [] if None in names else [*names]

    def _load_actors_by_title_and_character(self) -> dict[str, dict[str, list[str]]]:
        parts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        rows = self._workspace.run_sql("SELECT id, person, characters FROM part ORDER BY id, ordering, person")
        for id_, person, characters in rows:
            try:
                roles = json.loads(characters)
            except (ValueError, RecursionError):
                roles = None
            if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
                path = self._folder / "title.principals.tsv.gz"
                raise DatasetError(path, f"characters of {id_}", repr(characters[:60]), "a JSON list of names")
            for role in roles:
                parts[id_][" ".join(role.split())].append(person)
        return parts
