"""Differences between two runs on the questions that both scored, for all cases and for each tag value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.decisions.comparison import CommonQuestions, Pair

MOST_VALUES = 60  # a tag with more values identifies single cases instead of grouping cases


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """A metric of two runs on the same questions."""

    n: int  # Number of questions.
    before: float | None = None  # The mean in the first run.
    after: float | None = None  # The mean in the second run.
    # Second mean minus first mean, with its interval; None for fewer than two questions.
    difference: Estimate | None = None
    pvalue: float | None = None  # two-sided p-value of no difference; None for fewer than two questions


def compare_pair(
    questions: CommonQuestions, metric: str, bounds: tuple[float, float] | None, comparisons: int = 1
) -> PairedRuns:
    """Compare two runs over all questions that both scored.

    Args:
        bounds: the metric's declared range, if it has one.
    """
    return _compare(questions.pairs(metric), bounds, comparisons)


def compare_parts(
    questions: CommonQuestions, metric: str, bounds: tuple[float, float] | None, comparisons: int = 1
) -> Iterator[tuple[str, PairedRuns]]:
    """Yield the comparison over all questions under "", then over each tag value under `tag:value`."""
    pairs = questions.pairs(metric)
    parts: dict[str, dict[str, list[Pair]]] = {}
    for pair in pairs:
        for tag, value in pair.row.tags.items():
            parts.setdefault(tag, {}).setdefault(value, []).append(pair)
    yield "", _compare(pairs, bounds, comparisons)
    for tag, values in sorted(parts.items()):
        if len(values) <= MOST_VALUES:
            for value, part in sorted(values.items()):
                yield f"{tag}:{value}", _compare(part, bounds, comparisons)


def _compare(pairs: Sequence[Pair], bounds: tuple[float, float] | None, comparisons: int) -> PairedRuns:
    from evalsuite import stats

    if len(pairs) < 2:
        return PairedRuns(len(pairs))
    before, after = [pair.before for pair in pairs], [pair.after for pair in pairs]
    clusters = [pair.row.cluster for pair in pairs]
    repeated = len(set(clusters)) < len(clusters)
    shares = set(before) | set(after) <= {0.0, 1.0}
    low, high = (0.0, 1.0) if shares else bounds or (-math.inf, math.inf)
    inside = low <= min(*before, *after) and max(*before, *after) <= high < math.inf
    found = stats.paired_difference(
        before,
        after,
        clusters=clusters if repeated else None,
        scale=high - low if inside else None,
        confidence=1 - 0.05 / comparisons,
    )
    pvalue, ends = found.pvalue, (found.low, found.high)
    if shares and not repeated:
        pvalue = stats.mcnemar(before, after)
        if pvalue > 0.05 / comparisons:
            # Tango's interval is asymptotic; if the exact test does not reject zero, the interval must
            # include zero.
            ends = (min(0.0, found.low), max(0.0, found.high))
    return PairedRuns(
        len(pairs),
        math.fsum(before) / len(before),
        math.fsum(after) / len(after),
        Estimate(found.difference, *ends, len(pairs)),
        min(1.0, comparisons * pvalue),
    )
