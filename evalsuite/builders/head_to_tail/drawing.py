"""Make possible questions (candidates) by the paper's rules, and choose among them at random by popularity bucket."""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.builders.head_to_tail.workspace import Workspace, find_dump_file, quote_sql

Answer = str | int
RawQuestion = tuple["str | None", "Iterable[Answer | None]"]  # A question (None if ambiguous) and its raw answers.
QuestionMaker = Callable[["QuestionTemplate", str], "Iterable[RawQuestion]"]  # Makes questions about one entity.
MOST_ANSWERS = 12  # A question with more right answers is not specific enough.
_ADDRESS = re.compile(r"(?:https?|ftp)://|www\.", re.IGNORECASE)
REPLACEMENT_CHARACTER = "\ufffd"  # Unicode's replacement character, which marks a character that a dump has lost.


@dataclass(frozen=True, slots=True)
class QuestionTemplate:
    """A kind of question about the entities of one type, such as the release years of films."""

    entities: str  # The type of entities, also the name of their SQL relation; each type has its own buckets.
    id: str  # The template's id in the output file.
    wording: str = ""  # The question, with placeholders.
    condition: str = "true"  # The SQL condition that an entity must meet.


@dataclass(frozen=True, slots=True)
class CandidateQuestion:
    """A possible question about an entity; a template's candidates are sorted by `turn`, then by `lot`."""

    entity: str
    popularity: int
    turn: int  # Index of this candidate among those with the same template and entity.
    lot: int  # The entity's pseudorandom number, computed from the seed.
    question: str
    answers: tuple[Answer, ...]  # All right answers.


# The possible questions of each template and bucket, sorted, and whether no further questions exist.
Draw = dict[QuestionTemplate, Mapping[str, tuple[Sequence[CandidateQuestion], bool]]]


def is_suitable_question(question: str, answers: Sequence[Answer]) -> bool:
    """Tell whether a question has 1 to `MOST_ANSWERS` answers that are all text and do not occur in the question.

    A text has a letter or digit, no replacement character, and is not a URL. An answer occurs in the question even if
    it is a part of a word there, or differs in case, accents and punctuation.
    """
    texts, plain, spelt = list(map(str, answers)), question.casefold(), _fold_case_accents_punctuation(question)
    return (
        0 < len(texts) <= MOST_ANSWERS
        and not any(REPLACEMENT_CHARACTER in text for text in (question, *texts))
        and all(re.search(r"\w", text) and not _ADDRESS.match(text) for text in texts)
        and not any(text.casefold() in plain or _fold_case_accents_punctuation(text) in spelt for text in texts)
    )


def _fold_case_accents_punctuation(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.casefold())
    return " ".join(re.findall(r"\w+", "".join(mark for mark in apart if not unicodedata.combining(mark))))


def drop_repeated_answers(answers: Iterable[Answer | None]) -> tuple[Answer, ...]:
    """Remove missing and repeated answers, keeping the order."""
    cleaned = (" ".join(answer.split()) if isinstance(answer, str) else answer for answer in answers)
    return tuple(dict.fromkeys(answer for answer in cleaned if answer not in {None, ""}))


# ruff: noqa: S608 - queries consist of names in this package, never of text in a dump


_MOST_IN_ORDER = 1_000_000  # A draw of at least this many entities takes all entities, without sorting them.


def compute_shuffle_key(seed: int, *parts: str) -> int:
    """Compute a 64-bit pseudorandom number from a seed and texts; entities are shuffled by sorting by this number."""
    text = ":".join((str(seed), *parts)).encode()
    return int.from_bytes(hashlib.md5(text, usedforsecurity=False).digest()[8:], "little")


def write_name(name: str, year: int | None, namesakes: int, twins: int, *, may_show_year: bool) -> str | None:
    """Quote an entity's name, with its year if the name is ambiguous; None if the year is ambiguous, too, or hidden.

    A question for a year must not show it, so the name alone must identify the entity. `namesakes` entities have this
    name, and `twins` of them have this name and year; both numbers include this entity.
    """
    if namesakes == 1:
        return f'"{name}"'
    return f'"{name}" ({year})' if may_show_year and twins == 1 else None


def draw_entities(
    workspace: Workspace, pool: str, partition: "PopularityPartition", entity_counts: Mapping[QuestionTemplate, int]
) -> None:
    """Add to the table `drawn` the first `entity_counts[template]` entities of each template and bucket.

    `pool` is a relation with the columns `template` (a template's id), `id`, `popularity` and `lot`.
    """
    salts = ", ".join(
        f"({quote_sql(template.id)}, {compute_shuffle_key(workspace.seed, template.id)}::UBIGINT, {size})"
        for template, size in entity_counts.items()
    )
    salted = f"(FROM {pool} JOIN (VALUES {salts}) AS salts (template, salt, size) USING (template))"
    cases = " ".join(
        f"WHEN popularity >= {partition.find_lowest_popularity(bucket)} THEN '{bucket}'" for bucket in BUCKETS[:-1]
    )
    bucket = f"CASE {cases} ELSE '{BUCKETS[-1]}' END"
    pool = f"(SELECT *, xor(lot, salt) AS ticket, {bucket} AS bucket FROM {salted})"
    if max(entity_counts.values()) < _MOST_IN_ORDER:
        workspace.run_sql(f"""
            CREATE OR REPLACE TEMP TABLE first AS
            SELECT template, bucket, count(*) <= any_value(size) AS exhausted,
                   min_by({{'id': id, 'popularity': popularity, 'lot': ticket}}, ticket, size) AS entities
            FROM {pool} GROUP BY template, bucket
        """)
        workspace.run_sql("""
            INSERT INTO drawn
            SELECT DISTINCT template, bucket, entity.id, entity.popularity, entity.lot
            FROM (SELECT template, bucket, unnest(entities) AS entity FROM first)
        """)
        workspace.run_sql("INSERT INTO pools SELECT template, bucket, exhausted FROM first")
    else:
        workspace.run_sql(f"INSERT INTO drawn SELECT DISTINCT template, bucket, id, popularity, ticket FROM {pool}")
        workspace.run_sql("INSERT INTO pools SELECT DISTINCT template, bucket, true FROM drawn")


def make_drawn_ids_sql(*templates: QuestionTemplate) -> str:
    """Write SQL that selects the `id`s of all entities drawn for these templates."""
    names = ", ".join(quote_sql(template.id) for template in templates)
    return f"(SELECT DISTINCT id FROM drawn WHERE template IN ({names}))"


def add_namesake_counts(workspace: Workspace, query: str, entities: str) -> list[tuple[Any, ...]]:
    """Add two counts to each row of a query: entities with the row's name, and entities with the row's name and year.

    `query` and `entities` have the columns `called` (equal for equal names) and `year`.
    """
    workspace.run_sql(f"CREATE OR REPLACE TABLE shown AS {query}")
    workspace.run_sql(f"""
        CREATE OR REPLACE TABLE namesake AS
        SELECT called, year, count(*) AS many
        FROM {entities} SEMI JOIN (SELECT DISTINCT called FROM shown) USING (called)
        GROUP BY called, year
    """)
    return workspace.run_sql("""
        SELECT shown.* EXCLUDE (called), everyone.many, twin.many
        FROM shown
             JOIN (SELECT called, sum(many)::BIGINT AS many FROM namesake GROUP BY called) AS everyone USING (called)
             JOIN namesake AS twin ON twin.called = shown.called AND twin.year IS NOT DISTINCT FROM shown.year
    """)


class PopularityPartition:
    """Entities of one type in three buckets, each with about a third of all popularity.

    By the paper's rule, entities are sorted by popularity, most popular first. The head is the shortest prefix with at
    least a third of the total popularity. The torso extends to two thirds of the total popularity, and the tail
    contains all other entities. Entities of equal popularity are in the same bucket. If every entity has the popularity
    zero, all entities are in the tail.
    """

    def __init__(self, entities: Mapping[int, int]) -> None:
        self._entities = dict(sorted(entities.items(), reverse=True))
        sums = accumulate(each * count for each, count in self._entities.items())
        self._until = dict(zip(self._entities, sums, strict=True))
        self.total = max(self._until.values(), default=0)

    def compute_share_above(self, popularity: int) -> Fraction:
        """Return the share of total popularity, in [0, 1], that belongs to more popular entities."""
        own = popularity * self._entities[popularity]
        return Fraction(self._until[popularity] - own, self.total) if self.total else Fraction(1)

    def find_bucket(self, popularity: int) -> str:
        return BUCKETS[min(int(3 * self.compute_share_above(popularity)), 2)]

    def find_lowest_popularity(self, bucket: str) -> int:
        """Return the lowest popularity in a bucket or more popular ones; the maximum plus one if they are all empty."""
        rank = BUCKETS.index(bucket)
        reached = (each for each in self._entities if BUCKETS.index(self.find_bucket(each)) <= rank)
        return min(reached, default=max(self._entities, default=0) + 1)

    def compute_bucket_totals(self) -> dict[str, tuple[int, int]]:
        """Return each bucket's number of entities, and the sum of their popularity."""
        totals = dict.fromkeys(BUCKETS, (0, 0))
        for each, count in self._entities.items():
            entities, popularity = totals[self.find_bucket(each)]
            totals[self.find_bucket(each)] = entities + count, popularity + each * count
        return totals


GROWTH = 4  # If a draw yields too few questions, the next draw is larger by this factor.


class QuestionSource:
    """A source of questions: a dump whose entities are in the tables of a workspace."""

    files: Sequence[str]  # File names in reading order; a file that is read twice appears twice.
    target = 1000  # Number of questions per bucket unless a number per template is given.
    paper_cap: int  # Maximum number of questions per template and bucket, as in the paper's scripts.
    # The default templates. If two templates make the same question, only the earlier template keeps it.
    templates: Sequence[QuestionTemplate]
    paper_templates: Sequence[QuestionTemplate]  # The paper's templates.
    # Templates of the user that are not used, by id, with the reason.
    dropped: Mapping[str, str] = MappingProxyType({})
    partitions: Mapping[str, PopularityPartition]  # The popularity buckets of each type of entity.
    # Maps a template's id to the popularity of the predicate that the template asks for; empty if unknown.
    template_popularity: Mapping[str, int] = MappingProxyType({})

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        self._workspace, self._folder = workspace, folder
        self._create_tables()
        types = dict.fromkeys(template.entities for template in self.templates)
        self.partitions = {entities: self._partition(entities) for entities in types}

    def _create_tables(self) -> None:
        """Read the dump into tables; each type of entity needs a relation with `id`, `popularity` and `lot`."""
        raise NotImplementedError

    def _partition(self, entities: str) -> PopularityPartition:
        counts = self._workspace.run_sql(f"SELECT popularity, count(*) FROM {entities} GROUP BY popularity")
        return PopularityPartition(dict(counts))

    def _find_file(self, name: str) -> Path:
        return find_dump_file(self._folder, name)

    def draw_questions(self, entity_counts: Mapping[QuestionTemplate, int]) -> Draw:
        """Draw at least `entity_counts[template]` entities per bucket, or all, and make the questions about them."""
        self._workspace.run_sql("""
            CREATE OR REPLACE TABLE drawn
            (template VARCHAR, bucket VARCHAR, id VARCHAR, popularity BIGINT, lot UBIGINT)
        """)
        self._workspace.run_sql("CREATE OR REPLACE TABLE pools (template VARCHAR, bucket VARCHAR, exhausted BOOLEAN)")
        self._draw_entities(entity_counts)
        make_questions = self._load_question_maker(entity_counts)
        left = {(template, bucket) for template, bucket, done in self._workspace.run_sql("FROM pools") if not done}
        candidates: dict[tuple[str, str], list[CandidateQuestion]] = defaultdict(list)
        by_id = {template.id: template for template in entity_counts}
        for name, bucket, entity, popularity, ticket in self._workspace.run_sql("FROM drawn"):
            cleaned = ((asked, drop_repeated_answers(given)) for asked, given in make_questions(by_id[name], entity))
            fitting = ((asked, answers) for asked, answers in cleaned if asked and is_suitable_question(asked, answers))
            # While further entities can be drawn, take one question per entity, so that questions cover many entities.
            for turn, words in enumerate(islice(fitting, 1 if (name, bucket) in left else None)):
                candidates[name, bucket].append(CandidateQuestion(entity, popularity, turn, ticket, *words))
        for those in candidates.values():
            those.sort(key=lambda each: (each.turn, each.lot, each.entity))
        return {
            template: {bucket: (candidates[name, bucket], (name, bucket) not in left) for bucket in BUCKETS}
            for name, template in by_id.items()
        }

    def _draw_entities(self, entity_counts: Mapping[QuestionTemplate, int]) -> None:
        for template, size in entity_counts.items():
            named = f"SELECT *, {quote_sql(template.id)} AS template"
            pool = f"({named} FROM {template.entities} WHERE {template.condition})"
            draw_entities(self._workspace, pool, self.partitions[template.entities], {template: size})

    def _load_question_maker(self, entity_counts: Mapping[QuestionTemplate, int]) -> QuestionMaker:
        """Read the data about the drawn entities, and return a function that yields an entity's questions."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen questions; each template has the same number of questions in every bucket."""

    # Maps a template, then a bucket, to the chosen questions.
    questions: Mapping[QuestionTemplate, Mapping[str, Sequence[CandidateQuestion]]]
    cap: int  # Maximum number of questions of a template in a bucket.
    # Templates without chosen questions, with those buckets for which no question could be made.
    empty: Mapping[QuestionTemplate, Sequence[str]]


def choose_questions(
    source: QuestionSource, templates: Sequence[QuestionTemplate], *, per_template: int | None, target: int
) -> Selection:
    """Draw questions until every template has its maximum number, or no further questions exist.

    `per_template` is the maximum per template and bucket. If `per_template` is None, use the smallest maximum with
    which all templates together give `target` questions per bucket.
    """
    guess = per_template or -(-target // max(len(templates), 1))
    entity_counts = dict.fromkeys(templates, 4 * guess + 100)
    while True:
        drawn = source.draw_questions(entity_counts)
        fewest = {template: min(len(found) for found, _ in buckets.values()) for template, buckets in drawn.items()}
        cap = per_template or find_question_cap(list(fewest.values()), target)
        lacking = [
            template
            for template, buckets in drawn.items()
            if fewest[template] < min([cap, *(len(found) for found, exhausted in buckets.values() if exhausted)])
        ]
        if not lacking:
            return _select_questions(drawn, cap)
        entity_counts |= {template: entity_counts[template] * GROWTH for template in lacking}


def find_question_cap(available: Sequence[int], target: int) -> int:
    """Find the least `cap` with `sum(min(cap, n) for n in available) >= target`; if none exists, return `target`."""
    enough = (cap for cap in range(1, target) if sum(min(cap, each) for each in available) >= target)
    return next(enough, target)


def _select_questions(drawn: Draw, cap: int) -> Selection:
    """Choose the first possible questions of each template; skip questions that an earlier template asks."""
    asked: set[str] = set()
    chosen, empty = {}, {}
    for template, buckets in drawn.items():
        seen = set(asked)
        fresh: dict[str, dict[str, CandidateQuestion]] = {bucket: {} for bucket in BUCKETS}
        for bucket, unseen in fresh.items():
            for candidate in buckets[bucket][0]:
                # Questions that differ only in case and spacing are equal.
                key = " ".join(candidate.question.casefold().split())
                if key not in seen:
                    seen.add(key)
                    unseen[key] = candidate
        count = min(cap, *map(len, fresh.values()))
        chosen[template] = {bucket: list(unseen.values())[:count] for bucket, unseen in fresh.items()}
        if not count:
            empty[template] = [bucket for bucket in BUCKETS if not fresh[bucket]]
        asked.update(key for unseen in fresh.values() for key in list(unseen)[:count])
    return Selection(chosen, cap, empty)
