"""Which part of a benchmark lost most: by tags and metadata, corrected for having looked at all of their values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.decisions.baseline_result import ComparedMetric
    from evalsuite.decisions.pairing import Common, Pair

FEWEST = 5
"""Smaller slices are ignored, since McNemar's test shows nothing with fewer questions."""

GROUPING = "cluster"
"""A tag that says which cases belong together; its values are not slices."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The questions with one value of a tag, in two runs.

    Attributes:
        subject: metric and cases.
        tag: name of the tag, or of an entry of the samples' metadata.
        value: of the tag.
        n: questions.
        before: the baseline's mean.
        after: this run's.
        pvalue: two-sided, of no difference, corrected by Holm's method for all slices that were looked at.
    """

    subject: ComparedMetric
    tag: str
    value: str
    n: int
    before: float
    after: float
    pvalue: float

    @property
    def loss(self) -> float:
        """How much worse this run is; negative if it is better."""
        return self.after - self.before if self.subject.lower_is_better else self.before - self.after


def slices(compared: Iterable[tuple[ComparedMetric, Common]]) -> list[Slice]:
    """All slices of all metrics, largest loss first.

    Args:
        compared: each metric with the questions of both runs.
    """
    from evalsuite.stats import holm

    looked_at = [
        (subject, tag, value, pairs)
        for subject, common in compared
        for (tag, value), pairs in _by_tag(common, subject.metric).items()
    ]
    if not looked_at:
        return []
    adjusted = holm([_pvalue(pairs) for *_, pairs in looked_at])
    parts = [
        Slice(
            subject,
            tag,
            value,
            len(pairs),
            math.fsum(pair.before for pair in pairs) / len(pairs),
            math.fsum(pair.after for pair in pairs) / len(pairs),
            pvalue,
        )
        for (subject, tag, value, pairs), pvalue in zip(looked_at, adjusted, strict=True)
    ]
    return sorted(parts, key=lambda part: (-part.loss, str(part.subject), part.tag, part.value))


def _by_tag(common: Common, metric: str) -> dict[tuple[str, str], list[Pair]]:
    """The pairs for each value of each tag or metadata entry that divides the questions."""
    pairs = common.pairs(metric)
    parts: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        for tag, value in {**pair.row.facts.get("metadata", {}), **pair.row.tags}.items():
            if tag != GROUPING:
                parts.setdefault((tag, value), []).append(pair)
    return {key: part for key, part in sorted(parts.items()) if FEWEST <= len(part) < len(pairs)}


def _pvalue(pairs: Sequence[Pair]) -> float:
    from evalsuite.stats import mcnemar, paired_difference

    before, after = [pair.before for pair in pairs], [pair.after for pair in pairs]
    clusters = [pair.row.cluster for pair in pairs]
    apart = len(set(clusters)) == len(clusters)
    if apart and {*before, *after} <= {0.0, 1.0}:
        return mcnemar(before, after)
    return paired_difference(before, after, clusters=None if apart else clusters).pvalue
