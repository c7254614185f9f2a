"""DBLP: people of computer science by the number of their works, asked about their theses."""

# ruff: noqa: S608 - queries are put together from names of this package, never from what a dump says

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from evalsuite.builders.head_to_tail.dblp_xml import works
from evalsuite.builders.head_to_tail.drawing import draw, drawn, lot_sql, new_draw, partition
from evalsuite.builders.head_to_tail.dump_reader import decompressed, locate
from evalsuite.builders.head_to_tail.dumps import records
from evalsuite.builders.head_to_tail.questions import QuestionTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from evalsuite.builders.head_to_tail.dblp_xml import Work
    from evalsuite.builders.head_to_tail.questions import Answer, Draw, RawQuestion
    from evalsuite.builders.head_to_tail.workspace import Workspace

FILES = ("dblp.xml",)
LAST_YEAR = 2020
THESES = {"phdthesis": ("phd", "Ph.D. thesis"), "mastersthesis": ("masters", "master's thesis")}
_ASKED = ("title", "year", "school")
TEMPLATES = {
    QuestionTemplate(f"dblp-person-{short}-{asked}", "person"): (kind, asked)
    for kind, (short, _) in THESES.items()
    for asked in _ASKED
}
# dblp numbers people who share a name: Wei Wang 0001.
_PLAIN = r"regexp_replace(name, ' \d{4}$', '')"
# Between the schools of one thesis; it stands in no XML document.
_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class Thesis:
    """The only thesis of its kind that a person wrote."""

    person: str
    kind: str
    title: str
    year: int
    schools: tuple[str, ...]

    def asked(self, subject: str) -> RawQuestion:
        """The question about its title, year or school, and the answers."""
        word = THESES[self.kind][1]
        school = f" ({self.schools[0]})" if self.schools else ""
        questions: dict[str, tuple[str, Iterable[Answer | None]]] = {
            "title": (
                f"What is the title of the {word} that {self.person} wrote in {self.year}{school}?",
                [self.title],
            ),
            "year": (f"In which year did {self.person} complete a {word}{school}?", [self.year]),
            "school": (
                f'At which institution did {self.person} write the {word} "{self.title}"?',
                self.schools,
            ),
        }
        return questions[subject]


class Dblp:
    """The dump, read into a workspace.

    Args:
        workspace: where to.
        folder: where the file is.

    Raises:
        DatasetError: it is missing, damaged or of another shape.
    """

    templates = paper_templates = tuple(TEMPLATES)
    template_popularity: Mapping[str, int] = MappingProxyType({})
    dropped: Mapping[str, str] = MappingProxyType({})

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        self._workspace = workspace
        self._read(locate(folder, FILES[0]))
        self.partitions = {"person": partition(workspace, "person")}

    def draw(self, sizes: Mapping[QuestionTemplate, int]) -> Draw:
        """Entities who wrote a thesis of the template's kind."""
        new_draw(self._workspace)
        for template in sizes:
            kind, _ = TEMPLATES[template]
            pool = f"(FROM person SEMI JOIN (FROM thesis WHERE kind = '{kind}') USING (id))"
            draw(self._workspace, template, pool, self.partitions["person"], sizes[template])
        theses = self._theses_drawn()

        def ask(template: QuestionTemplate, entity: str) -> Iterator[RawQuestion]:
            kind, subject = TEMPLATES[template]
            if thesis := theses.get((entity, kind)):
                yield thesis.asked(subject)

        return drawn(self._workspace, sizes, ask)

    def _read(self, path: Path) -> None:
        self._workspace.progress.begin(path.name)
        blocks = decompressed(path, self._workspace.progress.advance)
        columns = dict.fromkeys(("name", "kind", "title", "schools"), "VARCHAR") | {"year": "INTEGER"}
        with records(self._workspace, _credits(works(blocks, path)), columns) as stream:
            self._workspace.sql(f"CREATE TABLE credited AS FROM {stream}")
        self._workspace.sql(f"""
            CREATE TABLE person AS
            SELECT name AS id, count(*) AS popularity, {lot_sql(self._workspace.seed, "name")} AS lot
            FROM credited GROUP BY name
        """)
        # A second thesis of a kind, or a second person of the name, and it is not clear which is meant.
        self._workspace.sql(f"""
            CREATE TABLE thesis AS
            WITH author AS (
                     SELECT name AS id, {_PLAIN} AS name, kind, title, year, schools
                     FROM credited WHERE kind IS NOT NULL
                 ),
                 namesake AS (
                     SELECT called, count(*) AS many
                     FROM (SELECT lower({_PLAIN}) AS called FROM (SELECT id AS name FROM person))
                          SEMI JOIN (SELECT DISTINCT lower(name) AS called FROM author) USING (called)
                     GROUP BY called
                 )
            SELECT id, kind, min(name) AS name, min(title) AS title, min(year) AS year, min(schools) AS schools
            FROM author JOIN namesake ON lower(name) = called
            WHERE many = 1
            GROUP BY id, kind HAVING count(*) = 1
        """)

    def _theses_drawn(self) -> dict[tuple[str, str], Thesis]:
        rows = self._workspace.sql("""
            SELECT id, name, kind, title, year, schools
            FROM thesis SEMI JOIN drawn USING (id)
        """)
        return {
            (id_, kind): Thesis(name, kind, title, year, tuple(schools.split(_SEPARATOR) if schools else ()))
            for id_, name, kind, title, year, schools in rows
        }


def _credits(works: Iterable[Work]) -> Iterator[tuple[str | int | None, ...]]:
    """A row for each person of each work up to the last year; that of a thesis by one person says more."""
    for work in works:
        if work.year is None or work.year > LAST_YEAR:
            continue
        if work.kind in THESES and len(work.people) == 1 and work.title:
            schools = _SEPARATOR.join(work.schools) or None
            yield work.people[0], work.kind, work.title, schools, work.year
        else:
            for person in work.people:
                yield person, None, None, None, None
