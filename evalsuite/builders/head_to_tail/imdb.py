"""IMDb: titles by votes, and people by the votes of the titles they are known for."""

# ruff: noqa: S608 - queries are put together from names of this package, never from what a dump says

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from evalsuite.builders.head_to_tail import imdb_wording as words
from evalsuite.builders.head_to_tail.drawing import (
    draw,
    drawn,
    drawn_for,
    lot_sql,
    new_draw,
    partition,
)
from evalsuite.builders.head_to_tail.dump_reader import locate
from evalsuite.builders.head_to_tail.dumps import tsv
from evalsuite.builders.head_to_tail.imdb_facts import Facts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalsuite.builders.head_to_tail.questions import Draw, QuestionTemplate
    from evalsuite.builders.head_to_tail.workspace import Workspace

FILES = (
    "title.ratings.tsv.gz",
    "title.basics.tsv.gz",
    "name.basics.tsv.gz",
    "title.crew.tsv.gz",
    "title.principals.tsv.gz",
)
_SERIES = ", ".join(f"'{kind}'" for kind in words.SERIES)
# Which titles a template can be asked about, as far as their own columns tell.
_TITLES = {
    words.START_YEAR: f"kind IN ({_SERIES})",
    words.RELEASE_YEAR: f"kind NOT IN ({_SERIES})",
    words.END_YEAR: f"end_year <= {words.LAST_YEAR}",
    # Of a series it may be an episode or all of them: it is not specific.
    words.RUNNING_TIME: f"minutes > 0 AND kind NOT IN ({_SERIES})",
    words.DIRECTOR: "true",
    words.WRITER: "true",
    words.CHARACTER: "true",
}
_PEOPLE = {
    words.BIRTH_YEAR: f"birth_year <= {words.LAST_YEAR}",
    words.DEATH_YEAR: f"death_year <= {words.LAST_YEAR}",
    words.PROFESSION: "",
    words.JOB: "NOT contains(professions, ',')",
    words.DEPARTMENT: "regexp_full_match(professions, '[a-z_]+_department|location_management')",
    words.SPECIALTY: "professions IN ('legal', 'soundtrack', 'special_effects', 'stunts', 'visual_effects')",
    words.KNOWN_FOR: "",
}
# What these need is in other files, and many titles have none of it: so many times more are drawn at once,
# as reading those files again costs more.
_CREDITS = (words.DIRECTOR, words.WRITER, words.CHARACTER)
_MORE = 8


class Imdb:
    """The dump, read into a workspace.

    Args:
        workspace: where to.
        folder: where the files are.

    Raises:
        DatasetError: a file is missing, damaged or of another shape.
    """

    templates = (*_TITLES, words.BIRTH_YEAR, words.DEATH_YEAR, words.PROFESSION, words.KNOWN_FOR)
    paper_templates = (
        *(*_TITLES, words.BIRTH_YEAR, words.DEATH_YEAR),
        *(words.JOB, words.DEPARTMENT, words.SPECIALTY, words.KNOWN_FOR),
    )
    template_popularity: Mapping[str, int] = MappingProxyType({})
    dropped: Mapping[str, str] = MappingProxyType({})

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        self._workspace, self._folder = workspace, folder
        self._credits_read: list[int] = []
        self._read_titles()
        self._read_people()
        self.partitions = {"title": partition(workspace, "asked"), "person": partition(workspace, "fame")}

    def draw(self, sizes: Mapping[QuestionTemplate, int]) -> Draw:
        """Titles and people that may have what the template asks for."""
        new_draw(self._workspace)
        for template, size in sizes.items():
            if template in _TITLES:
                more = _MORE if template in _CREDITS else 1
                pool = f"(FROM asked WHERE {_TITLES[template]})"
                draw(self._workspace, template, pool, self.partitions["title"], size * more)
            else:
                condition = _PEOPLE[template] or "true"
                pool = f"(FROM fame SEMI JOIN (SELECT id FROM person WHERE {condition}) USING (id))"
                draw(self._workspace, template, pool, self.partitions["person"], size)
        wanted = [sizes.get(template, 0) for template in _CREDITS]
        if wanted != self._credits_read:
            self._read_credits()
            self._credits_read = wanted
        return drawn(self._workspace, sizes, Facts(self._workspace, self._folder).ask)

    def _read_titles(self) -> None:
        rating = tsv(
            self._workspace,
            self._file("title.ratings.tsv.gz"),
            {"tconst": "VARCHAR", "numVotes": "UINTEGER"},
        )
        with rating as stream:
            self._workspace.sql(f"CREATE TABLE rating AS SELECT tconst, numVotes AS votes FROM {stream}")
        # A few rows of the real file have words where years and minutes belong; nothing is asked of those.
        wanted = ("tconst", "titleType", "primaryTitle", "startYear", "endYear", "runtimeMinutes")
        basics = tsv(self._workspace, self._file("title.basics.tsv.gz"), dict.fromkeys(wanted, "VARCHAR"))
        with basics as stream:
            self._workspace.sql(f"""
                CREATE TABLE title AS
                SELECT tconst AS id, titleType AS kind, primaryTitle AS name,
                       TRY_CAST(startYear AS INTEGER) AS year, TRY_CAST(endYear AS INTEGER) AS end_year,
                       TRY_CAST(runtimeMinutes AS INTEGER) AS minutes,
                       coalesce(votes, 1) AS popularity, {lot_sql(self._workspace.seed, "tconst")} AS lot
                FROM {stream} LEFT JOIN rating USING (tconst)
                WHERE primaryTitle IS NOT NULL
            """)
        self._workspace.sql(f"CREATE VIEW asked AS FROM title WHERE year <= {words.LAST_YEAR}")

    def _read_people(self) -> None:
        wanted = ("nconst", "primaryName", "birthYear", "deathYear", "primaryProfession", "knownForTitles")
        names = tsv(self._workspace, self._file("name.basics.tsv.gz"), dict.fromkeys(wanted, "VARCHAR"))
        with names as stream:
            self._workspace.sql(f"""
                CREATE TABLE person AS
                SELECT nconst AS id, primaryName AS name, TRY_CAST(birthYear AS INTEGER) AS birth_year,
                       TRY_CAST(deathYear AS INTEGER) AS death_year, primaryProfession AS professions,
                       knownForTitles AS works
                FROM {stream} WHERE primaryName IS NOT NULL
            """)
        self._workspace.sql(f"""
            CREATE TABLE fame AS
            SELECT person AS id, sum(popularity)::BIGINT AS popularity,
                   {lot_sql(self._workspace.seed, "person")} AS lot
            FROM (SELECT id AS person, unnest(string_split(works, ',')) AS id FROM person) JOIN asked USING (id)
            GROUP BY person
        """)

    def _file(self, name: str) -> Path:
        return locate(self._folder, name)

    def _read_credits(self) -> None:
        """Credits of the titles that were drawn for questions about them."""
        wanted = dict.fromkeys(("tconst", "directors", "writers"), "VARCHAR")
        with tsv(self._workspace, self._file("title.crew.tsv.gz"), wanted) as stream:
            self._workspace.sql(f"""
                CREATE OR REPLACE TABLE crew AS
                SELECT tconst AS id, directors, writers
                FROM {stream} SEMI JOIN {drawn_for(words.DIRECTOR, words.WRITER)} ON id = tconst
            """)
        wanted = dict.fromkeys(("tconst", "nconst", "category", "characters"), "VARCHAR") | {
            "ordering": "INTEGER"
        }
        with tsv(self._workspace, self._file("title.principals.tsv.gz"), wanted) as stream:
            self._workspace.sql(f"""
                CREATE OR REPLACE TABLE part AS
                SELECT tconst AS id, ordering, nconst AS person, characters
                FROM {stream} SEMI JOIN {drawn_for(words.CHARACTER)} ON id = tconst
                WHERE category IN ('actor', 'actress') AND characters IS NOT NULL
            """)
