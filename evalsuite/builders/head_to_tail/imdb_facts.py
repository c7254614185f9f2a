"""What is known of the titles and people of IMDb that were drawn, and the questions made of it."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from evalsuite.builders.head_to_tail import imdb_wording as words
from evalsuite.builders.head_to_tail.drawing import lot
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from evalsuite.builders.head_to_tail.questions import Answer, QuestionTemplate, RawQuestion
    from evalsuite.builders.head_to_tail.workspace import Workspace


class Facts:
    """Everything about what stands in the tables `drawn`, `crew` and `part`, held in memory: it is little.

    Args:
        workspace: where the tables are.
        folder: where the files are, for the words of an error.
    """

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        self._workspace, self._folder = workspace, folder
        self._works = self._known_works()
        self._titles, self._popularity = self._titles_shown()
        self._people = self._people_shown()
        self._crew = {id_: people for id_, *people in workspace.sql("FROM crew")}
        self._parts = self._characters()
        self._names = self._names_credited()

    def ask(self, template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
        """The questions of a template about a title or a person."""
        if template.entities == "person":
            yield self._about_person(template, entity)
        elif template == words.CHARACTER:
            yield from self._about_characters(entity)
        else:
            yield self._about_title(template, entity)

    def _about_title(self, template: QuestionTemplate, entity: str) -> RawQuestion:
        title = self._titles[entity]
        answers: Iterable[Answer | None]
        if template == words.RUNNING_TIME:
            answers = [title.minutes]
        elif template == words.END_YEAR:
            answers = [title.end_year]
        elif template in {words.DIRECTOR, words.WRITER}:
            directors, writers = self._crew.get(entity, (None, None))
            answers = self._all_named(directors if template == words.DIRECTOR else writers)
        else:
            answers = [title.year]
        return title.asked(template), answers

    def _about_characters(self, entity: str) -> Iterator[RawQuestion]:
        title, parts = self._titles[entity], self._parts.get(entity, {})
        seed = self._workspace.seed
        for role in sorted(parts, key=lambda role: lot(seed, words.CHARACTER.id, entity, role)):
            if words.is_somebody(role):
                yield title.asked(words.CHARACTER, role), self._all_named(",".join(parts[role]))

    def _about_person(self, template: QuestionTemplate, entity: str) -> RawQuestion:
        name, listed, birth_year, death_year, namesakes = self._people[entity]
        if namesakes > 1:
            return None, ()
        works = [self._titles.get(work) for work in self._works[entity]]
        listed_works = [work for work in self._works[entity] if work in self._titles]
        asked = (work for work in listed_works if self._titles[work].is_asked())
        best = max(asked, key=lambda work: self._popularity[work])
        answers: dict[str, Iterable[Answer | None]] = {
            words.BIRTH_YEAR.id: [birth_year],
            words.DEATH_YEAR.id: [death_year],
            words.PROFESSION.id: words.professions(listed),
            **{
                kind.id: words.only_profession(listed, kind)
                for kind in (words.JOB, words.DEPARTMENT, words.SPECIALTY)
            },
            words.KNOWN_FOR.id: [] if None in works else [work.name for work in works if work],
        }
        return words.Person(name, self._titles[best].known_as()).asked(template), answers[template.id]

    def _all_named(self, people: str | None) -> list[Answer | None]:
        """The names of a list of people; none where one is missing, as its name would be right too."""
        names = [self._names.get(person) for person in people.split(",")] if people else []
        return [] if None in names else [*names]

    def _known_works(self) -> dict[str, list[str]]:
        self._workspace.sql("""
            CREATE OR REPLACE TABLE work AS
            SELECT id AS person, unnest(string_split(works, ',')) AS id,
                   generate_subscripts(string_split(works, ','), 1) AS place
            FROM person SEMI JOIN drawn USING (id)
        """)
        works = defaultdict(list)
        for person, work in self._workspace.sql("SELECT person, id FROM work ORDER BY person, place"):
            works[person].append(work)
        return works

    def _titles_shown(self) -> tuple[dict[str, words.Title], dict[str, int]]:
        """Titles that were drawn or that drawn people are known for, and how popular they are."""
        self._workspace.sql("""
            CREATE OR REPLACE TABLE shown AS
            SELECT *, lower(name) AS called
            FROM title SEMI JOIN (SELECT id FROM drawn UNION SELECT id FROM work) USING (id)
        """)
        self._workspace.sql("""
            CREATE OR REPLACE TABLE namesake AS
            SELECT called, year, count(*) AS many
            FROM (SELECT lower(name) AS called, year FROM title)
                 SEMI JOIN (SELECT DISTINCT called FROM shown) USING (called)
            GROUP BY called, year
        """)
        rows = self._workspace.sql("""
            SELECT id, popularity, kind, name, shown.year, end_year, minutes, everyone.many, twin.many
            FROM shown
                 JOIN (SELECT called, sum(many)::BIGINT AS many FROM namesake GROUP BY called) AS everyone
                 USING (called)
                 JOIN namesake AS twin
                 ON twin.called = shown.called AND twin.year IS NOT DISTINCT FROM shown.year
        """)
        titles = {id_: words.Title(*rest) for id_, _, *rest in rows}
        return titles, {id_: popularity for id_, popularity, *_ in rows}

    def _people_shown(self) -> dict[str, tuple[str, str | None, int | None, int | None, int]]:
        rows = self._workspace.sql("""
            WITH shown AS (SELECT *, lower(name) AS called FROM person SEMI JOIN drawn USING (id))
            SELECT id, name, professions, birth_year, death_year, many
            FROM shown JOIN (
                SELECT called, count(*) AS many
                FROM (SELECT lower(name) AS called FROM person)
                     SEMI JOIN (SELECT DISTINCT called FROM shown) USING (called)
                GROUP BY called
            ) USING (called)
        """)
        return {id_: (name, listed, born, died, many) for id_, name, listed, born, died, many in rows}

    def _characters(self) -> dict[str, dict[str, list[str]]]:
        """By title and character, who played it, in the order of the credits."""
        parts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for id_, person, characters in self._workspace.sql(
            "SELECT id, person, characters FROM part ORDER BY id, ordering, person"
        ):
            for role in self._roles(id_, characters):
                parts[id_][" ".join(role.split())].append(person)
        return parts

    def _roles(self, id_: str, characters: str) -> list[str]:
        try:
            roles = json.loads(characters)
        except (ValueError, RecursionError):
            roles = None
        if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
            path = self._folder / "title.principals.tsv.gz"
            raise DatasetError(path, f"characters of {id_}", repr(characters[:60]), "a JSON list of names")
        return roles

    def _names_credited(self) -> dict[str, str]:
        rows = self._workspace.sql("""
            SELECT id, name FROM person SEMI JOIN (
                SELECT unnest(string_split(directors, ',')) AS id FROM crew
                UNION SELECT unnest(string_split(writers, ',')) FROM crew
                UNION SELECT person FROM part
            ) USING (id)
        """)
        return dict(rows)
