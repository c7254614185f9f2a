"""Draws questions: popularity buckets, lots by the seed, and equally many questions per template."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Protocol

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.builders.head_to_tail.questions import Candidate, Drawn, distinct, is_fit
from evalsuite.builders.head_to_tail.workspace import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalsuite.builders.head_to_tail.questions import Answer, Draw, QuestionTemplate, RawQuestion
    from evalsuite.builders.head_to_tail.workspace import Workspace


# ruff: noqa: S608 - queries are put together from names of this package, never from what a dump says


# The database keeps fewer than this in order; where more are wanted, all are taken.
_MOST_IN_ORDER = 1_000_000


def lot(seed: int, *parts: str) -> int:
    """The lot of an entity, or the salt of a template: 64 bits."""
    return int.from_bytes(hashlib.md5(_text(seed, parts), usedforsecurity=False).digest()[8:], "little")


def lot_sql(seed: int, expression: str) -> str:
    """The SQL of `lot`, for the text that an SQL expression gives."""
    # This is the second half of the sum's 16 bytes, read as a little-endian number.
    return f"md5_number_lower('{seed}:' || {expression})"


def bucket_sql(cut: Partition) -> str:
    """The SQL of the name of the bucket in which the column `popularity` puts an entity."""
    floors = [(bucket, cut.floor(bucket)) for bucket in BUCKETS[:-1]]
    cases = " ".join(f"WHEN popularity >= {floor} THEN '{bucket}'" for bucket, floor in floors)
    return f"CASE {cases} ELSE '{BUCKETS[-1]}' END"


def partition(workspace: Workspace, entities: str) -> Partition:
    """Cuts the entities of a relation by their column `popularity`."""
    rows = workspace.sql(f"SELECT popularity, count(*) FROM {entities} GROUP BY popularity")
    return Partition(dict(rows))


def new_draw(workspace: Workspace) -> None:
    """An empty table `drawn`, and `pools` that will say where all entities were drawn."""
    workspace.sql(
        "CREATE OR REPLACE TABLE drawn (template VARCHAR, bucket VARCHAR, id VARCHAR, popularity BIGINT,"
        " lot UBIGINT)"
    )
    workspace.sql("CREATE OR REPLACE TABLE pools (template VARCHAR, bucket VARCHAR, exhausted BOOLEAN)")


def draw(workspace: Workspace, template: QuestionTemplate, pool: str, cut: Partition, size: int) -> None:
    """Adds to `drawn` the first `size` entities of a pool in each bucket.

    Args:
        workspace: where the tables are.
        template: what is going to be asked.
        pool: a relation with the columns `id`, `popularity` and `lot`.
        cut: how the entities of the pool's type are cut.
        size: how many entities of each bucket.
    """
    columns = f"{quoted(template.id)} AS template, {lot(workspace.seed, template.id)}::UBIGINT AS salt"
    _draw(workspace, f"(SELECT *, {columns}, {size} AS size FROM {pool})", cut, size)


def draw_all(workspace: Workspace, pool: str, cut: Partition, sizes: Mapping[QuestionTemplate, int]) -> None:
    """Does for many templates what `draw` does for one, in one go.

    Args:
        workspace: where the tables are.
        pool: a relation with the columns `template` (its id), `id`, `popularity` and `lot`.
        cut: how the entities of the pool's type are cut.
        sizes: how many entities of each bucket, by template.
    """
    salts = ", ".join(
        f"({quoted(template.id)}, {lot(workspace.seed, template.id)}::UBIGINT, {size})"
        for template, size in sizes.items()
    )
    salted = f"(FROM {pool} JOIN (VALUES {salts}) AS salts (template, salt, size) USING (template))"
    _draw(workspace, salted, cut, max(sizes.values()))


def _draw(workspace: Workspace, salted: str, cut: Partition, size: int) -> None:
    pool = f"(SELECT *, xor(lot, salt) AS ticket, {bucket_sql(cut)} AS bucket FROM {salted})"
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
        workspace.sql(
            f"INSERT INTO drawn SELECT DISTINCT template, bucket, id, popularity, ticket FROM {pool}"
        )
        workspace.sql("INSERT INTO pools SELECT DISTINCT template, bucket, true FROM drawn")


def drawn_for(*templates: QuestionTemplate) -> str:
    """The SQL of a relation of the `id` of every entity that was drawn for one of these templates."""
    names = ", ".join(quoted(template.id) for template in templates)
    return f"(SELECT DISTINCT id FROM drawn WHERE template IN ({names}))"


def drawn(
    workspace: Workspace,
    templates: Iterable[QuestionTemplate],
    ask: Callable[[QuestionTemplate, str], Iterable[RawQuestion]],
) -> Draw:
    """The candidates of all that was drawn.

    Args:
        workspace: where it was drawn.
        templates: those drawn for, in their order.
        ask: the questions of a template about an entity, by its id.
    """
    left = {(template, bucket) for template, bucket, done in workspace.sql("FROM pools") if not done}
    candidates: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    by_id = {template.id: template for template in templates}
    for name, bucket, entity, popularity, ticket in workspace.sql("FROM drawn"):
        # Second questions come after the first ones of all entities, of which there are more to draw.
        turns = 1 if (name, bucket) in left else None
        fitting = islice(_fitting(ask(by_id[name], entity)), turns)
        candidates[name, bucket] += [
            Candidate(entity, popularity, turn, ticket, *words) for turn, words in enumerate(fitting)
        ]
    for those in candidates.values():
        those.sort(key=lambda each: (each.turn, each.lot, each.entity))
    return {
        template: {
            bucket: Drawn(tuple(candidates[name, bucket]), (name, bucket) not in left) for bucket in BUCKETS
        }
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
    """A bucket's part of a type of entity.

    Attributes:
        entities: how many entities it holds.
        popularity: their popularity, summed.
    """

    entities: int = 0
    popularity: int = 0


class Partition:
    """Entities of one type in three buckets, each with about a third of all popularity.

    Entities are sorted by popularity, the most popular first, and their popularity is summed up in that
    order. The head is the shortest beginning that reaches a third of the whole, the torso goes on to two
    thirds, the tail is the rest (the paper's rule). Equal popularity is never cut apart. Where all
    popularity is zero, all is tail.

    Args:
        entities: how many entities there are of each popularity (whole, at least 0).
    """

    def __init__(self, entities: Mapping[int, int]) -> None:
        self._entities = dict(sorted(entities.items(), reverse=True))
        sums = accumulate(each * count for each, count in self._entities.items())
        self._until = dict(zip(self._entities, sums, strict=True))
        self.total = max(self._until.values(), default=0)

    def above(self, popularity: int) -> Fraction:
        """The share in [0, 1] of all popularity that more popular entities have; 0 for the top.

        Raises:
            KeyError: no entity has this popularity.
        """
        own = popularity * self._entities[popularity]
        return Fraction(self._until[popularity] - own, self.total) if self.total else Fraction(1)

    def bucket(self, popularity: int) -> str:
        """Where the entities of this popularity belong.

        Raises:
            KeyError: no entity has this popularity.
        """
        return BUCKETS[min(int(3 * self.above(popularity)), 2)]

    def floor(self, bucket: str) -> int:
        """The least popularity that still belongs to this bucket or to one above it.

        Above all popularities where these buckets are empty: no entity reaches it.
        """
        rank = BUCKETS.index(bucket)
        reached = (each for each in self._entities if BUCKETS.index(self.bucket(each)) <= rank)
        return min(reached, default=max(self._entities, default=0) + 1)

    def shares(self) -> dict[str, Share]:
        """What each bucket holds."""
        shares = dict.fromkeys(BUCKETS, Share())
        for each, count in self._entities.items():
            name = self.bucket(each)
            old = shares[name]
            shares[name] = Share(old.entities + count, old.popularity + each * count)
        return shares


# How much the draw of a template grows when its candidates do not suffice.
GROWTH = 4


class QuestionSource(Protocol):
    """A dump that has been read, from which questions can be drawn."""

    @property
    def templates(self) -> Sequence[QuestionTemplate]:
        """What is asked by default; where two templates make the same question, the earlier one has it."""
        ...

    @property
    def paper_templates(self) -> Sequence[QuestionTemplate]:
        """What the paper asks."""
        ...

    @property
    def dropped(self) -> Mapping[str, str]:
        """Templates of the user's that are not asked at all, by id, each with the reason."""
        ...

    @property
    def partitions(self) -> Mapping[str, Partition]:
        """By type of entity."""
        ...

    @property
    def template_popularity(self) -> Mapping[str, int]:
        """By template id how popular what it asks for is, where that differs and is known."""
        ...

    def draw(self, sizes: Mapping[QuestionTemplate, int]) -> Draw:
        """The questions about so many entities in each bucket, those that the seed puts first.

        Args:
            sizes: at least how many entities to draw, by template; fewer where there are no more. Nothing is
                drawn for other templates.
        """
        ...


@dataclass(frozen=True, slots=True)
class Selection:
    """The questions asked.

    Attributes:
        questions: by template and bucket; equally many of a template in each bucket.
        cap: the most that a template was allowed in a bucket.
        empty: by template that asks nothing, the buckets in which it has no question.
    """

    questions: Mapping[QuestionTemplate, Mapping[str, Sequence[Candidate]]]
    cap: int
    empty: Mapping[QuestionTemplate, Sequence[str]]


def choose(
    source: QuestionSource, templates: Sequence[QuestionTemplate], *, per_template: int | None, target: int
) -> Selection:
    """Draws until every template has all that it may ask, or all that there is.

    Args:
        source: where to draw from.
        templates: what to ask.
        per_template: the most questions of a template in a bucket; None for as many as it takes to come
            to `target` in a bucket.
        target: questions in a bucket, over all templates, where `per_template` is None.
    """
    guess = per_template or -(-target // max(len(templates), 1))
    sizes = dict.fromkeys(templates, 4 * guess + 100)
    while True:
        drawn = source.draw(sizes)
        cap = per_template or level([_scarcest(buckets) for buckets in drawn.values()], target)
        lacking = [template for template, buckets in drawn.items() if _lacks(buckets, cap)]
        if not lacking:
            return _select(drawn, cap)
        sizes |= {template: sizes[template] * GROWTH for template in lacking}


def level(available: Sequence[int], target: int) -> int:
    """The least cap with which the templates together come to the target.

    Args:
        available: for each template how many questions there are at most.
        target: how many are wanted of all together.

    Returns:
        the least `cap` with `sum(min(cap, n)) >= target`; the target itself where no cap is enough.
    """
    for cap in sorted(each for each in {*available, target} if each):
        reached = sum(min(cap, each) for each in available)
        if reached >= target:
            # From the next smaller number on, each further one is asked of all templates that have it.
            return cap - (reached - target) // sum(each >= cap for each in available)
    return target


def _scarcest(buckets: Mapping[str, Drawn]) -> int:
    return min(len(bucket.candidates) for bucket in buckets.values())


def _lacks(buckets: Mapping[str, Drawn], cap: int) -> bool:
    """Whether a bucket with more to draw has fewer candidates than the template will be allowed."""
    allowed = min([cap, *(len(bucket.candidates) for bucket in buckets.values() if bucket.exhausted)])
    return _scarcest(buckets) < allowed


def _select(drawn: Draw, cap: int) -> Selection:
    """The first candidates of each template, without questions that another template asks already."""
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
