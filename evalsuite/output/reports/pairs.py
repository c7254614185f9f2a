"""Differences between two runs on the questions that both scored, for all cases and for each tag value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.decisions.measured import PASS_RATE, score_of
from evalsuite.results.tally import Estimate, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalsuite.results.tally import Question, Row

MOST_VALUES = 60  # a tag with more values identifies cases and does not group them


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """A metric of two runs on the same questions."""

    n: int  # Number of questions.
    before: float | None = None  # The mean in the first run.
    after: float | None = None  # The mean in the second run.
    # Second mean minus first mean, with its interval; None for fewer than two questions.
    difference: Estimate | None = None
    pvalue: float | None = None  # two-sided p-value of no difference; None for fewer than two questions


@dataclass(frozen=True, slots=True)
class _Match:
    """One question that both runs scored, with its epochs averaged."""

    cluster: str
    before: float
    after: float
    tags: Mapping[str, str]


def compare_pair(
    base: Tally, other: Tally, metric: str, bounds: tuple[float, float] | None, comparisons: int = 1
) -> PairedRuns:
    """Compare two runs over all questions that both scored.

    Args:
        other: the second run's cases.
        bounds: the metric's declared range, if it has one.
    """
    return _compare(list(_match(base, other, metric)), bounds, comparisons)


def compare_parts(
    base: Tally, other: Tally, metric: str, bounds: tuple[float, float] | None, comparisons: int = 1
) -> Iterator[tuple[str, PairedRuns]]:
    """Yield the comparison over all questions under "", then over each tag value under `tag:value`."""
    matches = list(_match(base, other, metric))
    parts: dict[str, dict[str, list[_Match]]] = {}
    for match in matches:
        for tag, value in match.tags.items():
            parts.setdefault(tag, {}).setdefault(value, []).append(match)
    yield "", _compare(matches, bounds, comparisons)
    for tag, values in sorted(parts.items()):
        if len(values) <= MOST_VALUES:
            for value, part in sorted(values.items()):
                yield f"{tag}:{value}", _compare(part, bounds, comparisons)


def _match(base: Tally, other: Tally, metric: str) -> Iterator[_Match]:
    before = {question: score for question, _, score in _by_question(base, metric)}
    for question, row, score in _by_question(other, metric):
        if question in before:
            yield _Match(row.cluster, before[question], score, row.tags)


def _by_question(tally: Tally, metric: str) -> Iterator[tuple[Question, Row, float]]:
    """Yield each question with its first case and its mean over epochs."""
    epochs: dict[Question, tuple[Row, list[float]]] = {}
    for row in tally:
        score = score_of(row, metric)
        if score is not None and (metric != PASS_RATE or row.outcome != "skipped"):
            epochs.setdefault(row.question, (row, []))[1].append(score)
    for question, (row, scores) in epochs.items():
        yield question, row, math.fsum(scores) / len(scores)


def _compare(matches: Sequence[_Match], bounds: tuple[float, float] | None, comparisons: int) -> PairedRuns:
    from evalsuite import stats

    if len(matches) < 2:
        return PairedRuns(len(matches))
    before, after = [match.before for match in matches], [match.after for match in matches]
    clusters = [match.cluster for match in matches]
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
        len(matches),
        math.fsum(before) / len(before),
        math.fsum(after) / len(after),
        Estimate(found.difference, *ends, len(matches)),
        min(1.0, comparisons * pvalue),
    )
