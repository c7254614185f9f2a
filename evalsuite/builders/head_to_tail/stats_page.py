"""The page beside the questions: the paper's Tables 1 and 2 for what was built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.builders.head_to_tail.popularity import Partition
    from evalsuite.builders.head_to_tail.selection import Selection


def stats_page(
    source: str,
    seed: int,
    selection: Selection,
    partitions: Mapping[str, Partition],
    dropped: Mapping[str, str],
) -> str:
    """Markdown: shares of head, torso and tail by type of entity, questions by template, and what is not asked.

    Args:
        source: the knowledge source.
        seed: of the choice among questions.
        selection: what is asked.
        partitions: by type of entity.
        dropped: templates that are not asked at all, by id, each with the reason.
    """
    reasons = {**dropped, **{template.id: _lacking(buckets) for template, buckets in selection.empty.items()}}
    parts = [
        f"# Head-to-Tail from {source}",
        f"Seed {seed}; at most {selection.cap:,} questions of a template in a bucket.",
        "## Entities by popularity",
        "The paper's Table 1. Each bucket has about a third of all popularity; equal popularity stays together.",
        _table(_ENTITIES, _entity_rows(partitions)),
        "## Questions",
        "The paper's Table 2.",
        _table(("Templates", "Head", "Torso", "Tail", "Questions"), [_totals(selection)]),
        "## Questions by template",
        _table(("Template", *_BUCKET_HEADS), _template_rows(selection)),
        "## Templates that ask nothing",
        _table(("Template", "Reason"), [[f"`{name}`", reason] for name, reason in reasons.items()])
        if reasons
        else "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _lacking(buckets: Sequence[str]) -> str:
    return f"no question about an entity in {' or '.join(buckets)} that the rules allow"


_BUCKET_HEADS = tuple(bucket.capitalize() for bucket in BUCKETS)
_ENTITIES = ("Entities", "Bucket", "Number", "Share of entities", "Share of popularity", "Least popularity")


def _entity_rows(partitions: Mapping[str, Partition]) -> list[list[str]]:
    rows = []
    for name, partition in partitions.items():
        shares = partition.shares()
        entities = sum(share.entities for share in shares.values())
        for bucket, share in shares.items():
            least = f"{partition.floor(bucket):,}" if share.entities else "-"
            rows.append(
                [
                    name,
                    bucket,
                    f"{share.entities:,}",
                    _percent(share.entities, entities),
                    _percent(share.popularity, partition.total),
                    least,
                ]
            )
    return rows


def _totals(selection: Selection) -> list[str]:
    used = [buckets for buckets in selection.questions.values() if any(buckets.values())]
    counts = [sum(len(buckets[bucket]) for buckets in used) for bucket in BUCKETS]
    return [f"{number:,}" for number in (len(used), *counts, sum(counts))]


def _template_rows(selection: Selection) -> list[list[str]]:
    return [
        [f"`{template.id}`", *(f"{len(buckets[bucket]):,}" for bucket in BUCKETS)]
        for template, buckets in selection.questions.items()
        if any(buckets.values())
    ]


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "-"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))
