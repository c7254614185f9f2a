"""The wording of questions about titles and people of IMDb."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evalsuite.builders.head_to_tail.questions import QuestionTemplate

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
# Kinds with a start and an end instead of a release.
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

# Roles that are not characters.
_NOBODY = re.compile(
    r"(?:self|himself|herself|themsel(?:f|ves)|itself)\b.*|"
    r"(?:various|additional|other|multiple)(?: (?:characters?|roles?|voices?))?|"
    r"extras?|ensemble|unknown|uncredited",
    re.IGNORECASE,
)
_SPECIALTIES = ("legal", "soundtrack", "special_effects", "stunts", "visual_effects")
# Credits that are not a specific profession.
_NO_PROFESSIONS = {"archive_footage", "archive_sound", "miscellaneous", "soundtrack"}


@dataclass(frozen=True, slots=True)
class Title:
    """A title.

    Attributes:
        kind: IMDb's type of title.
        year: year of release, or of a series' start, if known.
        end_year: year of a series' end, if it has ended.
        namesakes: number of titles with this name, this one included.
        twins: number of titles with this name and year.
    """

    kind: str
    name: str
    year: int | None
    end_year: int | None
    minutes: int | None
    namesakes: int
    twins: int

    def is_asked(self) -> bool:
        """Tell whether it was released by the last year of the questions."""
        return self.year is not None and self.year <= LAST_YEAR

    @property
    def work(self) -> str:
        """Return the kind of work in words."""
        return KINDS.get(self.kind, "title")

    def known_as(self) -> str | None:
        """Return the name, with the year if others share the name; None if that is ambiguous, too."""
        if self.namesakes == 1:
            return f'"{self.name}"'
        return f'"{self.name}" ({self.year})' if self.twins == 1 else None

    def question(self, template: QuestionTemplate, role: str = "") -> str | None:
        """Make the question (about a role, if given), or None if the title is ambiguous."""
        if template in {START_YEAR, RELEASE_YEAR, END_YEAR}:
            # The question must not reveal the year, so the name must be unique.
            verb = {START_YEAR: "first go on air", RELEASE_YEAR: "come out", END_YEAR: "end"}[template]
            return f'In which year did the {self.work} "{self.name}" {verb}?' if self.namesakes == 1 else None
        name = self.known_as()
        if name is None:
            return None
        if template == RUNNING_TIME:
            return f"How many minutes does the {self.work} {name} run?"
        if template == CHARACTER:
            return f"Which actor or actress played {role} in the {self.work} {name}?"
        return f"Who {'directed' if template == DIRECTOR else 'wrote'} the {self.work} {name}?"


@dataclass(frozen=True, slots=True)
class Person:
    """A person with a unique name, and the best known work, or None if the work is ambiguous."""

    name: str
    work: str | None

    def question(self, template: QuestionTemplate) -> str | None:
        """Make the question, or None if no work identifies the person."""
        if template == KNOWN_FOR:
            return f"Name a work that {self.name} is known for."
        if self.work is None:
            return None
        person = f"{self.name}, known for {self.work}"
        return {
            PROFESSION: f"What is the profession of {person}?",
            JOB: f"What is the job of {person}?",
            DEPARTMENT: f"In which department does {person}, work?",
            SPECIALTY: f"What is the line of work of {person}?",
            BIRTH_YEAR: f"In which year was {person}, born?",
            DEATH_YEAR: f"In which year did {person}, die?",
        }[template]


def is_somebody(role: str) -> bool:
    """Tell whether a role's name is that of a character."""
    return bool(role.strip()) and not _NOBODY.fullmatch(role.strip())


def professions(listed: str | None) -> list[str]:
    """Write IMDb's list of professions (`actress,camera_department`) in words; an actress is also an actor."""
    words = [word for word in (listed or "").split(",") if word and word not in _NO_PROFESSIONS]
    if "actress" in words and "actor" not in words:
        words.append("actor")
    return [word.replace("_", " ") for word in words]


def only_profession(listed: str | None, template: QuestionTemplate) -> list[str]:
    """Return the profession of a person who has only one, if the template asks for its kind."""
    if not listed or "," in listed or listed in _NO_PROFESSIONS - {"soundtrack"}:
        return []
    kind = SPECIALTY if listed in _SPECIALTIES else DEPARTMENT if _is_department(listed) else JOB
    return [listed.replace("_", " ")] if kind == template else []


def _is_department(profession: str) -> bool:
    return profession.endswith("_department") or profession == "location_management"
