"""The finished questions: the published JSON shape, and how popular predicates are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS, HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.builders.head_to_tail.popularity import Partition
    from evalsuite.builders.head_to_tail.questions import Answer, Candidate, QuestionTemplate
    from evalsuite.builders.head_to_tail.selection import Selection


def published(selection: Selection, partitions: Mapping[str, Partition]) -> str:
    """The questions as `{"head": [[entity, template id, question, answer], ...], "torso": ..., "tail": ...}`.

    Within a bucket the most popular come first. Entities of different types are put in one order by how
    much of their own type's popularity is above them. An answer is a list where several are right.
    """
    return "{\n" + ",\n".join(_bucket(selection, partitions, bucket) for bucket in BUCKETS) + "\n}\n"


def predicates(selection: Selection, popularity: Mapping[str, int], cut: Partition) -> str:
    """How popular the predicates asked about are themselves (the paper's Table 6): tab-separated lines."""
    lines = ["\t".join(HEADER)]
    for template, buckets in selection.questions.items():
        if any(buckets.values()):
            own = popularity[template.id]
            lines.append(f"{template.id}\t{own}\t{cut.bucket(own)}")
    return "\n".join(lines) + "\n"


def _bucket(selection: Selection, partitions: Mapping[str, Partition], bucket: str) -> str:
    questions = [
        (template, candidate)
        for template, buckets in selection.questions.items()
        for candidate in buckets[bucket]
    ]

    def place(entry: tuple[QuestionTemplate, Candidate]) -> tuple[object, ...]:
        template, candidate = entry
        return (
            partitions[template.entities].above(candidate.popularity),
            candidate.entity,
            template.id,
            candidate.turn,
        )

    lines = ",\n".join(
        f"  {_line(template, candidate)}" for template, candidate in sorted(questions, key=place)
    )
    return f' "{bucket}": [\n{lines}\n ]' if lines else f' "{bucket}": []'


def _line(template: QuestionTemplate, candidate: Candidate) -> str:
    answer: Answer | list[Answer] = (
        candidate.answers[0] if len(candidate.answers) == 1 else [*candidate.answers]
    )
    return json.dumps([candidate.entity, template.id, candidate.question, answer], ensure_ascii=False)
