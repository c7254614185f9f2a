"""IMDb: questions about titles and people.

A title's popularity is its number of votes; a person's popularity is the number of votes for the person's best-known
titles.
"""

# ruff: noqa: S608 - queries consist of names in this package, never of text in a dump

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from evalsuite.builders.head_to_tail.drawing import (
    Answer,
    QuestionMaker,
    QuestionSource,
    QuestionTemplate,
    RawQuestion,
    add_namesake_counts,
    compute_shuffle_key,
    make_drawn_ids_sql,
    partition_by_popularity,
)
from evalsuite.builders.head_to_tail.dump_reader import find_dump_file
from evalsuite.builders.head_to_tail.workspace import Workspace, stream_tsv
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
START_YEAR = QuestionTemplate("imdb-title-start-year", "title")
RELEASE_YEAR = QuestionTemplate("imdb-title-release-year", "title")
END_YEAR = QuestionTemplate("imdb-title-end-year", "title")
RUNNING_TIME = QuestionTemplate("imdb-title-running-time", "title")
DIRECTOR = QuestionTemplate("imdb-title-director", "title")
WRITER = QuestionTemplate("imdb-title-writer", "title")
CHARACTER = QuestionTemplate("imdb-title-character", "title")
BIRTH_YEAR = QuestionTemplate("imdb-person-birth-year", "person")
DEATH_YEAR = QuestionTemplate("imdb-person-death-year", "person")
PROFESSION = QuestionTemplate("imdb-person-profession", "person")
# The paper's three templates for people with a single profession.
JOB = QuestionTemplate("imdb-person-job", "person")
DEPARTMENT = QuestionTemplate("imdb-person-department", "person")
SPECIALTY = QuestionTemplate("imdb-person-specialty", "person")
KNOWN_FOR = QuestionTemplate("imdb-person-known-for", "person")

# Entries in a person's list of roles that do not name a character.
_NOT_A_CHARACTER = re.compile(
    r"(?:self|himself|herself|themsel(?:f|ves)|itself)\b.*|"
    r"(?:various|additional|other|multiple)(?: (?:characters?|roles?|voices?))?|"
    r"extras?|ensemble|unknown|uncredited",
    re.IGNORECASE,
)
_SPECIALTIES = ("legal", "soundtrack", "special_effects", "stunts", "visual_effects")
# IMDb's professions that are not specific enough for an answer.
_NO_PROFESSIONS = {"archive_footage", "archive_sound", "miscellaneous", "soundtrack"}


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

    def has_usable_year(self) -> bool:
        """Tell whether the year is known and not later than `LAST_YEAR`."""
        return self.year is not None and self.year <= LAST_YEAR

    def format_name(self) -> str | None:
        """Return the name, with the year if the name is ambiguous; None if even name and year are ambiguous."""
        if self.namesakes == 1:
            return f'"{self.name}"'
        return f'"{self.name}" ({self.year})' if self.twins == 1 else None

    def write_question(self, template: QuestionTemplate, role: str = "") -> str | None:
        """Make the question, or None if the title is ambiguous; for the template CHARACTER, `role` is the character."""
        name = self.format_name()
        # A question about a year must not reveal the year, so the name alone must identify the title.
        if name is None or (self.namesakes > 1 and template in {START_YEAR, RELEASE_YEAR, END_YEAR}):
            return None
        return _TITLE_TEMPLATES[template][1].format(kind=KINDS.get(self.kind, "title"), name=name, role=role)


def write_person_question(template: QuestionTemplate, name: str, work: str | None) -> str | None:
    """Make a question that names a person and the best-known work; `work` is None if the work's title is ambiguous."""
    if work is None and template != KNOWN_FOR:
        return None
    return _PERSON_TEMPLATES[template][1].format(name=name, person=f"{name}, known for {work}")


def is_character(role: str) -> bool:
    """Tell whether a role is the name of a character, unlike "himself" or "extra"."""
    return bool(role.strip()) and not _NOT_A_CHARACTER.fullmatch(role.strip())


def parse_professions(professions: str | None) -> list[str]:
    """Convert IMDb's list of professions (`actress,camera_department`) to words; an actress is also an actor."""
    words = [word for word in (professions or "").split(",") if word and word not in _NO_PROFESSIONS]
    if "actress" in words and "actor" not in words:
        words.append("actor")
    return [word.replace("_", " ") for word in words]


def find_only_profession(professions: str | None, template: QuestionTemplate) -> list[str]:
    """Return a person's only profession in a list; return [] if there are several or `template` does not fit."""
    if not professions or "," in professions or professions in _NO_PROFESSIONS - {"soundtrack"}:
        return []
    is_department = professions.endswith("_department") or professions == "location_management"
    kind = SPECIALTY if professions in _SPECIALTIES else DEPARTMENT if is_department else JOB
    return [professions.replace("_", " ")] if kind == template else []


# Maps each template to the SQL condition that a title or a person must meet, and to the question; for titles, also to
# the answer's field in `Title`, or its column in the table of the crew. The conditions contain Python tuples of texts,
# because their `repr` is valid SQL.
_TITLE_TEMPLATES = {
    START_YEAR: (f"kind IN {SERIES}", "In which year did the {kind} {name} first go on air?", "year"),
    RELEASE_YEAR: (f"kind NOT IN {SERIES}", "In which year did the {kind} {name} come out?", "year"),
    END_YEAR: (f"end_year <= {LAST_YEAR}", "In which year did the {kind} {name} end?", "end_year"),
    # Leave out series, because IMDb's running time of a series may mean one episode or all episodes.
    RUNNING_TIME: (f"minutes > 0 AND kind NOT IN {SERIES}", "How many minutes does the {kind} {name} run?", "minutes"),
    DIRECTOR: ("true", "Who directed the {kind} {name}?", "directors"),
    WRITER: ("true", "Who wrote the {kind} {name}?", "writers"),
    CHARACTER: ("true", "Which actor or actress played {role} in the {kind} {name}?", ""),
}
_PERSON_TEMPLATES = {
    BIRTH_YEAR: (f"birth_year <= {LAST_YEAR}", "In which year was {person}, born?"),
    DEATH_YEAR: (f"death_year <= {LAST_YEAR}", "In which year did {person}, die?"),
    PROFESSION: ("true", "What is the profession of {person}?"),
    JOB: ("NOT contains(professions, ',')", "What is the job of {person}?"),
    DEPARTMENT: (
        "regexp_full_match(professions, '[a-z_]+_department|location_management')",
        "In which department does {person}, work?",
    ),
    SPECIALTY: (f"professions IN {_SPECIALTIES}", "What is the line of work of {person}?"),
    KNOWN_FOR: ("true", "Name a work that {name} is known for."),
}
_CREDITS = (DIRECTOR, WRITER, CHARACTER)  # Templates whose answers are in the files of credits.
_MORE = 8  # Oversampling factor for `_CREDITS`: many titles lack credits, and another draw reads large files again.


class ImdbSource(QuestionSource):
    """IMDb's dump, read into the database of a `Workspace`."""

    files = (
        *("title.ratings.tsv.gz", "title.basics.tsv.gz", "name.basics.tsv.gz"),
        *("title.crew.tsv.gz", "title.principals.tsv.gz"),
    )
    paper_cap = 85
    templates = (*_TITLE_TEMPLATES, BIRTH_YEAR, DEATH_YEAR, PROFESSION, KNOWN_FOR)
    paper_templates = (*(*_TITLE_TEMPLATES, BIRTH_YEAR, DEATH_YEAR), *(JOB, DEPARTMENT, SPECIALTY, KNOWN_FOR))

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        super().__init__(workspace, folder)
        self._credits_read: list[int] = []
        self._create_title_tables()
        self._create_person_tables()
        self.partitions = {
            "title": partition_by_popularity(workspace, "asked"),
            "person": partition_by_popularity(workspace, "fame"),
        }

    def _draw_entities(self, entity_counts: Mapping[QuestionTemplate, int]) -> None:
        super()._draw_entities({one: size * (_MORE if one in _CREDITS else 1) for one, size in entity_counts.items()})

    def _make_askable_entities_sql(self, template: QuestionTemplate) -> str:
        if template in _TITLE_TEMPLATES:
            return f"(FROM asked WHERE {_TITLE_TEMPLATES[template][0]})"
        return f"(FROM fame SEMI JOIN (SELECT id FROM person WHERE {_PERSON_TEMPLATES[template][0]}) USING (id))"

    def _load_question_maker(self, entity_counts: Mapping[QuestionTemplate, int]) -> QuestionMaker:
        wanted = [entity_counts.get(template, 0) for template in _CREDITS]
        if wanted != self._credits_read:
            self._create_credit_tables()
            self._credits_read = wanted
        return ImdbQuestionMaker(self._workspace, self._folder).list_questions

    def _create_title_tables(self) -> None:
        with self._stream_tsv_file("title.ratings", {"tconst": "VARCHAR", "numVotes": "UINTEGER"}) as stream:
            self._workspace.run_sql(f"CREATE TABLE rating AS SELECT tconst, numVotes AS votes FROM {stream}")
        # A few rows of the real file have words in the columns of years and minutes; TRY_CAST makes these words null.
        wanted = ("tconst", "titleType", "primaryTitle", "startYear", "endYear", "runtimeMinutes")
        with self._stream_tsv_file("title.basics", dict.fromkeys(wanted, "VARCHAR")) as stream:
            self._workspace.run_sql(f"""
                CREATE TABLE title AS
                SELECT tconst AS id, titleType AS kind, primaryTitle AS name,
                       TRY_CAST(startYear AS INTEGER) AS year, TRY_CAST(endYear AS INTEGER) AS end_year,
                       TRY_CAST(runtimeMinutes AS INTEGER) AS minutes,
                       coalesce(votes, 1) AS popularity, {self._make_shuffle_key_sql("tconst")} AS lot
                FROM {stream} LEFT JOIN rating USING (tconst)
                WHERE primaryTitle IS NOT NULL
            """)
        self._workspace.run_sql(f"CREATE VIEW asked AS FROM title WHERE year <= {LAST_YEAR}")

    def _create_person_tables(self) -> None:
        wanted = ("nconst", "primaryName", "birthYear", "deathYear", "primaryProfession", "knownForTitles")
        with self._stream_tsv_file("name.basics", dict.fromkeys(wanted, "VARCHAR")) as stream:
            self._workspace.run_sql(f"""
                CREATE TABLE person AS
                SELECT nconst AS id, primaryName AS name, TRY_CAST(birthYear AS INTEGER) AS birth_year,
                       TRY_CAST(deathYear AS INTEGER) AS death_year, primaryProfession AS professions,
                       knownForTitles AS works
                FROM {stream} WHERE primaryName IS NOT NULL
            """)
        self._workspace.run_sql(f"""
            CREATE TABLE fame AS
            SELECT person AS id, sum(popularity)::BIGINT AS popularity,
                   {self._make_shuffle_key_sql("person")} AS lot
            FROM (SELECT id AS person, unnest(string_split(works, ',')) AS id FROM person) JOIN asked USING (id)
            GROUP BY person
        """)

    def _stream_tsv_file(self, name: str, columns: Mapping[str, str]) -> AbstractContextManager[str]:
        return stream_tsv(self._workspace, find_dump_file(self._folder, f"{name}.tsv.gz"), columns)

    def _create_credit_tables(self) -> None:
        wanted = dict.fromkeys(("tconst", "directors", "writers"), "VARCHAR")
        with self._stream_tsv_file("title.crew", wanted) as stream:
            self._workspace.run_sql(f"""
                CREATE OR REPLACE TABLE crew AS
                SELECT tconst AS id, directors, writers
                FROM {stream} SEMI JOIN {make_drawn_ids_sql(DIRECTOR, WRITER)} ON id = tconst
            """)
        wanted = dict.fromkeys(("tconst", "nconst", "category", "characters"), "VARCHAR") | {"ordering": "INTEGER"}
        with self._stream_tsv_file("title.principals", wanted) as stream:
            self._workspace.run_sql(f"""
                CREATE OR REPLACE TABLE part AS
                SELECT tconst AS id, ordering, nconst AS person, characters
                FROM {stream} SEMI JOIN {make_drawn_ids_sql(CHARACTER)} ON id = tconst
                WHERE category IN ('actor', 'actress') AND characters IS NOT NULL
            """)


class ImdbQuestionMaker:
    """Makes questions about the drawn titles and people, whose data are read from the database into memory."""

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        self._workspace, self._folder = workspace, folder
        self._works = self._load_works_by_person()
        self._titles = self._load_titles_by_id()
        self._people = self._load_people_by_id()
        crew = workspace.run_sql("SELECT id, directors, writers FROM crew")
        self._crew = {id_: {"directors": directors, "writers": writers} for id_, directors, writers in crew}
        self._parts = self._load_actors_by_title_and_character()
        self._names = dict(
            workspace.run_sql("""
                SELECT id, name FROM person SEMI JOIN (
                    SELECT unnest(string_split(directors, ',')) AS id FROM crew
                    UNION SELECT unnest(string_split(writers, ',')) FROM crew
                    UNION SELECT person FROM part
                ) USING (id)
            """)
        )

    def list_questions(self, template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
        """Yield the questions of a template about a title or a person."""
        if template.entities == "person":
            yield self._make_person_question(template, entity)
        elif template == CHARACTER:
            title, parts, seed = self._titles[entity], self._parts.get(entity, {}), self._workspace.seed
            for role in sorted(parts, key=lambda role: compute_shuffle_key(seed, CHARACTER.id, entity, role)):
                if is_character(role):
                    yield title.write_question(CHARACTER, role), self._list_names(",".join(parts[role]))
        else:
            yield self._make_title_question(template, entity)

    def _make_title_question(self, template: QuestionTemplate, entity: str) -> RawQuestion:
        title, field = self._titles[entity], _TITLE_TEMPLATES[template][2]
        crew = self._crew.get(entity, {})
        answers = self._list_names(crew.get(field)) if template in _CREDITS else [getattr(title, field)]
        return title.write_question(template), answers

    def _make_person_question(self, template: QuestionTemplate, entity: str) -> RawQuestion:
        name, listed, birth_year, death_year, namesakes = self._people[entity]
        if namesakes > 1:
            return None, ()
        works = [self._titles.get(work) for work in self._works[entity]]
        asked = (work for work in works if work and work.has_usable_year())
        best = max(asked, key=lambda title: title.popularity)
        answers: dict[QuestionTemplate, Iterable[Answer | None]] = {
            BIRTH_YEAR: [birth_year],
            DEATH_YEAR: [death_year],
            PROFESSION: parse_professions(listed),
            **{kind: find_only_profession(listed, kind) for kind in (JOB, DEPARTMENT, SPECIALTY)},
            KNOWN_FOR: [] if None in works else [work.name for work in works if work],
        }
        return write_person_question(template, name, best.format_name()), answers[template]

    def _list_names(self, person_ids: str | None) -> list[Answer | None]:
        """Return the people's names; return [] if any name is unknown, because the answers would be incomplete."""
        names = [self._names.get(person) for person in person_ids.split(",")] if person_ids else []
        return [] if None in names else [*names]

    def _load_works_by_person(self) -> dict[str, list[str]]:
        self._workspace.run_sql("""
            CREATE OR REPLACE TABLE work AS
            SELECT id AS person, string_split(works, ',') AS ids FROM person SEMI JOIN drawn USING (id)
        """)
        return dict(self._workspace.run_sql("FROM work"))

    def _load_titles_by_id(self) -> dict[str, Title]:
        shown = """
            SELECT id, popularity, kind, name, year, end_year, minutes, lower(name) AS called
            FROM title SEMI JOIN (SELECT id FROM drawn UNION SELECT unnest(ids) FROM work) USING (id)
        """
        rows = add_namesake_counts(self._workspace, shown, "(SELECT lower(name) AS called, year FROM title)")
        return {id_: Title(*columns) for id_, *columns in rows}

    def _load_people_by_id(self) -> dict[str, tuple[str, str | None, int | None, int | None, int]]:
        shown = """
            SELECT id, name, professions, birth_year, death_year, lower(name) AS called, NULL AS year
            FROM person SEMI JOIN drawn USING (id)
        """
        rows = add_namesake_counts(self._workspace, shown, "(SELECT lower(name) AS called, NULL AS year FROM person)")
        return {id_: (name, listed, born, died, many) for id_, name, listed, born, died, _, many, _ in rows}

    def _load_actors_by_title_and_character(self) -> dict[str, dict[str, list[str]]]:
        parts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        rows = self._workspace.run_sql("SELECT id, person, characters FROM part ORDER BY id, ordering, person")
        for id_, person, characters in rows:
            for role in self._parse_roles(id_, characters):
                parts[id_][" ".join(role.split())].append(person)
        return parts

    def _parse_roles(self, title_id: str, characters: str) -> list[str]:
        try:
            roles = json.loads(characters)
        except (ValueError, RecursionError):
            roles = None
        if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
            path = self._folder / "title.principals.tsv.gz"
            raise DatasetError(path, f"characters of {title_id}", repr(characters[:60]), "a JSON list of names")
        return roles
