"""Drawing lots: which of many entities are asked about first, settled by the seed alone.

Every entity has a lot, 64 bits of an MD5 sum of the seed and its identifier; every template has a salt of
the same kind. A template asks first where lot XOR salt is smallest: each template draws evenly from all
entities, and each draws others. Nothing depends on the order of a file or on how many processors read it.
"""

# ruff: noqa: S608 - queries are put together from names of this package, never from what a dump says

from __future__ import annotations

import hashlib
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.builders.head_to_tail.popularity import Partition
from evalsuite.builders.head_to_tail.questions import Candidate, Drawn, distinct, is_fit
from evalsuite.builders.head_to_tail.workspace import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from evalsuite.builders.head_to_tail.questions import Answer, Draw, QuestionTemplate, RawQuestion
    from evalsuite.builders.head_to_tail.workspace import Workspace

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
