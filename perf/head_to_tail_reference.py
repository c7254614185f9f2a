"""The straightforward way to build IMDb's questions: every file into dictionaries, in one Python process.

    python perf/head_to_tail_reference.py DIR FILE

It shares wording and lots with the package, which are not in question, and nothing else: reading, popularity,
buckets and selection are written anew, so that a comparison of the two files checks those of the package.
"""

from __future__ import annotations

import gzip
import heapq
import json
import sys
from collections import Counter, defaultdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.builders.head_to_tail import imdb as words
from evalsuite.builders.head_to_tail.drawing import (
    QuestionTemplate,
    compute_shuffle_key,
    drop_repeated_answers,
    is_suitable_question,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TARGET = 1000
BUCKETS = ("head", "torso", "tail")


def rows(path: Path) -> Iterator[list[Any]]:
    """The cells of each line, as texts; missing cells are None."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        next(file)
        for line in file:
            yield [None if cell == "\\N" else cell for cell in line.rstrip("\n").split("\t")]


def number(text: str | None) -> int | None:
    return int(text) if text is not None else None


class Dump:
    """All files, each in a dictionary."""

    def __init__(self, folder: Path) -> None:
        self.votes = {row[0]: int(row[2]) for row in rows(folder / "title.ratings.tsv.gz")}
        self.titles = {}
        for id_, kind, name, _, _, year, end, minutes, _ in rows(folder / "title.basics.tsv.gz"):
            self.titles[id_] = (kind, name, number(year), number(end), number(minutes))
        self.crew = {id_: credited for id_, *credited in rows(folder / "title.crew.tsv.gz")}
        self.parts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for id_, _, person, category, _, characters in rows(folder / "title.principals.tsv.gz"):
            if characters and category in {"actor", "actress"}:
                for role in json.loads(characters):
                    self.parts[id_][" ".join(role.split())].append(person)
        self.people = {}
        for id_, name, born, died, listed, works in rows(folder / "name.basics.tsv.gz"):
            self.people[id_] = (name, number(born), number(died), listed, works.split(",") if works else [])
        self.namesakes = Counter(title[1].lower() for title in self.titles.values())
        self.twins = Counter((title[1].lower(), title[2]) for title in self.titles.values())
        self.people_namesakes = Counter(person[0].lower() for person in self.people.values())
        self.asked = {id_: self.votes.get(id_, 1) for id_, title in self.titles.items() if up_to_last_year(title[2])}
        self.fame = {}
        for id_, (*_, works) in self.people.items():
            if fame := sum(self.asked.get(work, 0) for work in works):
                self.fame[id_] = fame

    def title(self, id_: str) -> words.Title:
        """A title with what it takes to call it by its name."""
        kind, name, year, end, minutes = self.titles[id_]
        twins = self.twins[name.lower(), year]
        return words.Title(self.votes.get(id_, 1), kind, name, year, end, minutes, self.namesakes[name.lower()], twins)

    def named(self, people: list[str]) -> list[str]:
        """The names of all these people, or none."""
        names: list[Any] = [self.people[person][0] if person in self.people else None for person in people]
        return [] if None in names else names

    def credited(self, id_: str, column: int) -> list[str]:
        """Directors (column 0) or writers (1)."""
        listed = self.crew.get(id_, (None, None))[column]
        return self.named(listed.split(",")) if listed else []

    def about_title(self, template: QuestionTemplate, id_: str) -> Iterator[tuple[Any, ...]]:
        """The question of a template about a title, and its answers."""
        _kind, _name, year, end, minutes = self.titles[id_]
        if template == words.CHARACTER:
            roles = self.parts.get(id_, {})
            for role in sorted(roles, key=lambda role: compute_shuffle_key(0, template.id, id_, role)):
                if words.is_character(role):
                    yield self.title(id_).write_question(template, role), self.named(roles[role])
            return
        answers: Callable[[], object] = {
            words.END_YEAR: lambda: [end],
            words.RUNNING_TIME: lambda: [minutes],
            words.DIRECTOR: lambda: self.credited(id_, 0),
            words.WRITER: lambda: self.credited(id_, 1),
        }.get(template, lambda: [year])
        yield self.title(id_).write_question(template), answers()

    def about_person(self, template: QuestionTemplate, id_: str) -> Iterator[tuple[Any, ...]]:
        """The question of a template about a person, and its answers."""
        name, born, died, listed, works = self.people[id_]
        if self.people_namesakes[name.lower()] > 1:
            return
        known = [work for work in works if work in self.titles]
        best = max((work for work in known if work in self.asked), key=lambda work: self.asked[work])
        answers = {
            words.BIRTH_YEAR: [born],
            words.DEATH_YEAR: [died],
            words.PROFESSION: words.parse_professions(listed),
            words.KNOWN_FOR: [self.titles[work][1] for work in known] if len(known) == len(works) else [],
        }
        yield words.write_person_question(template, name, self.title(best).write_name()), answers[template]

    def pools(self) -> dict[QuestionTemplate, Callable[[str], object]]:
        """Which titles and people each template can be asked about, as far as a look at them tells."""
        titles, people = self.titles, self.people
        return {
            words.START_YEAR: lambda id_: titles[id_][0] in words.SERIES,
            words.RELEASE_YEAR: lambda id_: titles[id_][0] not in words.SERIES,
            words.END_YEAR: lambda id_: up_to_last_year(titles[id_][3]),
            words.RUNNING_TIME: lambda id_: titles[id_][4] and titles[id_][0] not in words.SERIES,
            words.DIRECTOR: self.crew.__contains__,
            words.WRITER: self.crew.__contains__,
            words.CHARACTER: self.parts.__contains__,
            words.BIRTH_YEAR: lambda id_: up_to_last_year(people[id_][1]),
            words.DEATH_YEAR: lambda id_: up_to_last_year(people[id_][2]),
            words.PROFESSION: lambda id_: people[id_][3],
            words.KNOWN_FOR: lambda id_: people[id_][4],
        }


def up_to_last_year(year: int | None) -> bool:
    return year is not None and year <= words.LAST_YEAR


def cut(popularity: dict[str, int]) -> tuple[dict[str, str], dict[str, float]]:
    """For each entity its bucket, and what share of all popularity is above it."""
    whole, above, place, share = sum(popularity.values()), 0, {}, {}
    tied: list[str] = []
    for id_ in sorted(popularity, key=lambda id_: -popularity[id_]):
        if tied and popularity[tied[0]] != popularity[id_]:
            above += popularity[tied[0]] * len(tied)
            tied = []
        tied.append(id_)
        place[id_] = BUCKETS[0] if 3 * above < whole else BUCKETS[1] if 3 * above < 2 * whole else BUCKETS[2]
        share[id_] = above / whole
    return place, share


def first(
    template: QuestionTemplate, pool: list[str], ask: Callable[[str], Iterator[tuple[Any, ...]]], lots: dict[str, int]
) -> list[tuple[Any, ...]]:
    """As many candidates as can be needed, in the order of their lots."""
    salt, size = compute_shuffle_key(0, template.id), 4 * TARGET
    while True:
        chosen = heapq.nsmallest(size, pool, key=lambda id_: lots[id_] ^ salt)
        # While there are entities left, nobody is asked about a second time.
        turns = 1 if len(chosen) < len(pool) else None
        candidates = []
        for id_ in chosen:
            asked = ((question, drop_repeated_answers(answers)) for question, answers in ask(id_) if question)
            fitting = islice((one for one in asked if is_suitable_question(*one)), turns)
            candidates += [(turn, lots[id_] ^ salt, id_, *one) for turn, one in enumerate(fitting)]
        if len(candidates) >= TARGET or len(chosen) == len(pool):
            return sorted(candidates)[:TARGET]
        size *= 4


def main(folder: Path, target: Path) -> None:
    dump = Dump(folder)
    cuts = {"title": cut(dump.asked), "person": cut(dump.fame)}
    lots = {id_: compute_shuffle_key(0, id_) for place, _ in cuts.values() for id_ in place}
    found = {}
    for template, qualifies in dump.pools().items():
        pools: dict[str, list[str]] = {bucket: [] for bucket in BUCKETS}
        for id_, bucket in cuts[template.entities][0].items():
            if qualifies(id_):
                pools[bucket].append(id_)
        about = dump.about_title if template.entities == "title" else dump.about_person
        ask = partial(about, template)
        found[template] = {bucket: first(template, pool, ask, lots) for bucket, pool in pools.items()}
    scarcest = {template: min(map(len, buckets.values())) for template, buckets in found.items()}
    enough = (cap for cap in range(1, TARGET + 1) if sum(min(cap, n) for n in scarcest.values()) >= TARGET)
    cap = next(enough, TARGET)
    output: dict[str, list[Any]] = {bucket: [] for bucket in BUCKETS}
    for template, buckets in found.items():
        share = cuts[template.entities][1]
        for bucket, candidates in buckets.items():
            for turn, _, id_, question, answers in candidates[: min(cap, scarcest[template])]:
                answer = answers[0] if len(answers) == 1 else list(answers)
                output[bucket].append((share[id_], id_, template.id, turn, [id_, template.id, question, answer]))
    for bucket, asked in output.items():
        output[bucket] = [entry[-1] for entry in sorted(asked, key=lambda entry: entry[:4])]
    target.write_text(json.dumps(output, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
