"""Candidate questions, the paper's rules for their wording, and the choice among them by popularity and lot."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.builders.head_to_tail.workspace import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalsuite.builders.head_to_tail.workspace import Workspace

Answer = str | int
# A question, or None if its subject would be ambiguous, and the raw answers.
RawQuestion = tuple["str | None", "Iterable[Answer | None]"]
# Maximum number of right answers of a specific question.
MOST_ANSWERS = 12
# The replacement for a character that a dump has lost.
LOST = "\ufffd"


@dataclass(frozen=True, slots=True)
class QuestionTemplate:
    """A kind of question, by its id in the file; the type of entity determines the buckets."""

    id: str
    entities: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that the data can answer."""

    entity: str
    popularity: int
    turn: int  # number of the template's earlier questions about the entity
    lot: int  # the entity's lot by the seed; low turns, then low lots are asked first
    question: str
    answers: tuple[Answer, ...]  # all right answers

    @property
    def key(self) -> str:
        """Return a key that is equal for questions that differ in case and spacing only."""
        return " ".join(self.question.casefold().split())


@dataclass(frozen=True, slots=True)
class Drawn:
    """The candidates of one template and bucket in order; `exhausted` if the data have no further ones."""

    candidates: tuple[Candidate, ...]
    exhausted: bool


# By template, then by bucket.
Draw = dict[QuestionTemplate, "Mapping[str, Drawn]"]


def is_fit(question: str, answers: Sequence[Answer]) -> bool:
    """Tell whether a question has few, textual answers and does not reveal them."""
    return (
        0 < len(answers) <= MOST_ANSWERS
        and LOST not in question
        and all(is_textual(answer) for answer in answers)
        and not gives_away(question, answers)
    )


def gives_away(question: str, answers: Iterable[Answer]) -> bool:
    """Tell whether the question contains an answer, ignoring case, accents and punctuation.

    As in the published scripts, parts of words count: a question about Disneyland reveals Disney.
    """
    plain, spelt = question.casefold(), _letters(question)
    texts = [str(answer) for answer in answers]
    return any(text.casefold() in plain or _letters(text) in spelt for text in texts)


def is_textual(answer: Answer) -> bool:
    """Tell whether an answer is text: it has a letter or a digit, no lost character, and is not an address."""
    text = str(answer)
    is_address = re.match(r"(?:https?|ftp)://|www\.", text, re.IGNORECASE)
    return bool(re.search(r"\w", text)) and not is_address and LOST not in text


def _letters(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.casefold())
    return " ".join(re.findall(r"\w+", "".join(mark for mark in apart if not unicodedata.combining(mark))))


def distinct(answers: Iterable[Answer | None]) -> tuple[Answer, ...]:
    """Remove missing and repeated answers, keeping the order."""
    cleaned = (" ".join(answer.split()) if isinstance(answer, str) else answer for answer in answers)
    return tuple(dict.fromkeys(answer for answer in cleaned if answer not in {None, ""}))


# ruff: noqa: S608 - queries are put together from names of this package, never from what a dump says


# Maximum number of entities that the database keeps in order; for a larger draw, all are taken.
_MOST_IN_ORDER = 1_000_000


def lot(seed: int, *parts: str) -> int:
    """Compute the lot of an entity, or the salt of a template: 64 bits."""
    return int.from_bytes(hashlib.md5(_text(seed, parts), usedforsecurity=False).digest()[8:], "little")


def lot_sql(seed: int, expression: str) -> str:
    """Write the SQL of `lot` for an SQL expression of type text."""
    # This function reads the second half of the sum's 16 bytes as a little-endian number.
    return f"md5_number_lower('{seed}:' || {expression})"


def _bucket_sql(cut: Partition) -> str:
    """Write the SQL that finds the bucket by the column `popularity`."""
    floors = [(bucket, cut.floor(bucket)) for bucket in BUCKETS[:-1]]
    cases = " ".join(f"WHEN popularity >= {floor} THEN '{bucket}'" for bucket, floor in floors)
    return f"CASE {cases} ELSE '{BUCKETS[-1]}' END"


def cut_by_popularity(workspace: Workspace, entities: str) -> Partition:
    """Cut the entities of a relation by their column `popularity`."""
    rows = workspace.sql(f"SELECT popularity, count(*) FROM {entities} GROUP BY popularity")
    return Partition(dict(rows))


def start_draw(workspace: Workspace) -> None:
    """Create the empty tables `drawn`, and `pools`, which marks exhausted pools."""
    workspace.sql(
        "CREATE OR REPLACE TABLE drawn (template VARCHAR, bucket VARCHAR, id VARCHAR, popularity BIGINT, lot UBIGINT)"
    )
    workspace.sql("CREATE OR REPLACE TABLE pools (template VARCHAR, bucket VARCHAR, exhausted BOOLEAN)")


def draw(workspace: Workspace, template: QuestionTemplate, pool: str, cut: Partition, size: int) -> None:
    """Add to `drawn` the first `size` entities of a pool in each bucket.

    The pool is a relation with the columns `id`, `popularity` and `lot`; `cut` is the partition of its type of entity.
    """
    columns = f"{quote(template.id)} AS template, {lot(workspace.seed, template.id)}::UBIGINT AS salt"
    _draw(workspace, f"(SELECT *, {columns}, {size} AS size FROM {pool})", cut, size)


def draw_all(workspace: Workspace, pool: str, cut: Partition, sizes: Mapping[QuestionTemplate, int]) -> None:
    """Do what `draw` does, for many templates at once; the pool also has a column `template` with the template's id."""
    salts = ", ".join(
        f"({quote(template.id)}, {lot(workspace.seed, template.id)}::UBIGINT, {size})"
        for template, size in sizes.items()
    )
    salted = f"(FROM {pool} JOIN (VALUES {salts}) AS salts (template, salt, size) USING (template))"
    _draw(workspace, salted, cut, max(sizes.values()))


def _draw(workspace: Workspace, salted: str, cut: Partition, size: int) -> None:
    pool = f"(SELECT *, xor(lot, salt) AS ticket, {_bucket_sql(cut)} AS bucket FROM {salted})"
    if size < _MOST_IN_ORDER:
        workspace.sql(f"""
            CREATE OR REPLACE TEMP TABLE first AS
            SELECT template, bucket, count(*) <= any_value(size) AS exhausted,
                   min_by({{'id': id, 'popularity': popularity, 'lot': ticket}}, ticket, size) AS entities
            FROM {pool} GROUP BY template, bucket
        """)
        workspace.sql("""
            INSERT INTO drawn
            SELECT DISTINCT template, bucket, entity.id, entity.popularity, entity.lot
            FROM (SELECT template, bucket, unnest(entities) AS entity FROM first)
        """)
        workspace.sql("INSERT INTO pools SELECT template, bucket, exhausted FROM first")
    else:
        workspace.sql(f"INSERT INTO drawn SELECT DISTINCT template, bucket, id, popularity, ticket FROM {pool}")
        workspace.sql("INSERT INTO pools SELECT DISTINCT template, bucket, true FROM drawn")


def ids_drawn_for(*templates: QuestionTemplate) -> str:
    """Write the SQL of a relation of the `id` of every entity that was drawn for one of these templates."""
    names = ", ".join(quote(template.id) for template in templates)
    return f"(SELECT DISTINCT id FROM drawn WHERE template IN ({names}))"


def candidates_drawn(
    workspace: Workspace,
    templates: Iterable[QuestionTemplate],
    ask: Callable[[QuestionTemplate, str], Iterable[RawQuestion]],
) -> Draw:
    """Make the candidates of all entities drawn; `ask` makes a template's questions about an entity."""
    left = {(template, bucket) for template, bucket, done in workspace.sql("FROM pools") if not done}
    candidates: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    by_id = {template.id: template for template in templates}
    for name, bucket, entity, popularity, ticket in workspace.sql("FROM drawn"):
        # Unless the pool is exhausted, take one question per entity, because more entities can be drawn.
        turns = 1 if (name, bucket) in left else None
        fitting = islice(_fitting(ask(by_id[name], entity)), turns)
        candidates[name, bucket] += [
            Candidate(entity, popularity, turn, ticket, *words) for turn, words in enumerate(fitting)
        ]
    for those in candidates.values():
        those.sort(key=lambda each: (each.turn, each.lot, each.entity))
    return {
        template: {bucket: Drawn(tuple(candidates[name, bucket]), (name, bucket) not in left) for bucket in BUCKETS}
        for name, template in by_id.items()
    }


def _fitting(asked: Iterable[RawQuestion]) -> Iterator[tuple[str, tuple[Answer, ...]]]:
    for question, answers in asked:
        clean = distinct(answers)
        if question and is_fit(question, clean):
            yield question, clean


def _text(seed: int, parts: tuple[str, ...]) -> bytes:
    return ":".join((str(seed), *parts)).encode()


@dataclass(frozen=True, slots=True)
class Share:
    """The number of a bucket's entities and the sum of their popularity."""

    entities: int = 0
    popularity: int = 0


class Partition:
    """Entities of one type in three buckets, each with about a third of all popularity.

    By the paper's rule, entities are sorted by popularity, most popular first. The head is the shortest prefix with at
    least a third of the total popularity, the torso goes on to two thirds, the tail is the rest. Entities of equal
    popularity are in one bucket. If all popularity is zero, all are in the tail.
    """

    def __init__(self, entities: Mapping[int, int]) -> None:
        self._entities = dict(sorted(entities.items(), reverse=True))
        sums = accumulate(each * count for each, count in self._entities.items())
        self._until = dict(zip(self._entities, sums, strict=True))
        self.total = max(self._until.values(), default=0)

    def above(self, popularity: int) -> Fraction:
        """Return the share in [0, 1] of all popularity that more popular entities have; 0 for the top."""
        own = popularity * self._entities[popularity]
        return Fraction(self._until[popularity] - own, self.total) if self.total else Fraction(1)

    def bucket(self, popularity: int) -> str:
        """Return the bucket of entities of this popularity."""
        return BUCKETS[min(int(3 * self.above(popularity)), 2)]

    def floor(self, bucket: str) -> int:
        """Return the least popularity in this bucket or a higher one.

        If these buckets are empty, it is greater than all popularities.
        """
        rank = BUCKETS.index(bucket)
        reached = (each for each in self._entities if BUCKETS.index(self.bucket(each)) <= rank)
        return min(reached, default=max(self._entities, default=0) + 1)

    def shares(self) -> dict[str, Share]:
        """Return the share of each bucket."""
        shares = dict.fromkeys(BUCKETS, Share())
        for each, count in self._entities.items():
            name = self.bucket(each)
            old = shares[name]
            shares[name] = Share(old.entities + count, old.popularity + each * count)
        return shares


# Growth of a template's draw if its candidates do not suffice.
GROWTH = 4


class QuestionSource(ABC):
    """A dump that has been read, from which questions can be drawn."""

    # the default templates; if two make the same question, the earlier one keeps it
    templates: Sequence[QuestionTemplate]
    paper_templates: Sequence[QuestionTemplate]  # the paper's templates
    # the reason for each of the user's templates that is not used, by id
    dropped: Mapping[str, str] = MappingProxyType({})
    partitions: Mapping[str, Partition]  # the partition of each type of entity
    # the popularity of what a template asks for, by its id, where it is known
    template_popularity: Mapping[str, int] = MappingProxyType({})

    @abstractmethod
    def draw(self, sizes: Mapping[QuestionTemplate, int]) -> Draw:
        """Draw questions about at least so many entities in each bucket, or all of them, in the order of the seed."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen questions."""

    # by template and bucket; a template has equally many in each bucket
    questions: Mapping[QuestionTemplate, Mapping[str, Sequence[Candidate]]]
    cap: int  # maximum number of questions of a template in a bucket
    empty: Mapping[QuestionTemplate, Sequence[str]]  # the buckets without a question, by template without questions


def choose(
    source: QuestionSource, templates: Sequence[QuestionTemplate], *, per_template: int | None, target: int
) -> Selection:
    """Draw until every template has all questions that it may ask, or all that exist.

    A template asks at most `per_template` questions in a bucket, or, if that is None, as many as it takes to reach
    `target` questions in a bucket over all templates.
    """
    guess = per_template or -(-target // max(len(templates), 1))
    sizes = dict.fromkeys(templates, 4 * guess + 100)
    while True:
        drawn = source.draw(sizes)
        cap = per_template or find_cap([_scarcest(buckets) for buckets in drawn.values()], target)
        lacking = [template for template, buckets in drawn.items() if _lacks(buckets, cap)]
        if not lacking:
            return _select(drawn, cap)
        sizes |= {template: sizes[template] * GROWTH for template in lacking}


def find_cap(available: Sequence[int], target: int) -> int:
    """Find the least `cap` with `sum(min(cap, n) for n in available) >= target`; the target if no cap is enough."""
    for cap in sorted(each for each in {*available, target} if each):
        reached = sum(min(cap, each) for each in available)
        if reached >= target:
            # Just below this cap, each template with at least `cap` questions contributes one per step.
            return cap - (reached - target) // sum(each >= cap for each in available)
    return target


def _scarcest(buckets: Mapping[str, Drawn]) -> int:
    return min(len(bucket.candidates) for bucket in buckets.values())


def _lacks(buckets: Mapping[str, Drawn], cap: int) -> bool:
    allowed = min([cap, *(len(bucket.candidates) for bucket in buckets.values() if bucket.exhausted)])
    return _scarcest(buckets) < allowed


def _select(drawn: Draw, cap: int) -> Selection:
    """Choose the first candidates of each template, without questions of earlier templates."""
    asked: set[str] = set()
    chosen, empty = {}, {}
    for template, buckets in drawn.items():
        seen = set(asked)
        fresh = {bucket: list(_fresh(buckets[bucket].candidates, seen)) for bucket in BUCKETS}
        count = min(cap, *map(len, fresh.values()))
        chosen[template] = {bucket: candidates[:count] for bucket, candidates in fresh.items()}
        if not count:
            empty[template] = [bucket for bucket in BUCKETS if not fresh[bucket]]
        asked |= {each.key for candidates in chosen[template].values() for each in candidates}
    return Selection(chosen, cap, empty)


def _fresh(candidates: Iterable[Candidate], seen: set[str]) -> Iterator[Candidate]:
    for candidate in candidates:
        if candidate.key not in seen:
            seen.add(candidate.key)
            yield candidate
