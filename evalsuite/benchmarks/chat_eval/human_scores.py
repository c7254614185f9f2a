"""Does the judge agree with people? Over all samples of a tally, so that gates and tables can ask.

A comparison without a usable verdict counts as disagreement, in accuracy and, as a label of its own that
people never give, in kappa. A dialogue without a usable judgement has no score to correlate; how many
there are stands beside each correlation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeVar

from evalsuite.benchmarks.chat_eval.ratings import ASPECT_NAMES
from evalsuite.results.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalsuite.results.tally import Row, Tally

Coefficient = Literal["spearman", "kendall"]
T = TypeVar("T")


def pairs(tally: Tally) -> Tally:
    """The comparisons that were judged, well or badly; errors are left out."""
    return tally.where(lambda row: row.outcome != "error" and "human" in row.facts, task="pairs")


def dialogues(tally: Tally) -> Tally:
    """The dialogues with a usable judgement."""
    return tally.where(lambda row: row.outcome != "error" and bool(row.facts.get("judged")), task="dialogues")


def kappa(tally: Tally) -> Estimate | None:
    """Cohen's kappa between the judge's and people's verdicts; None where it is undefined."""
    from evalsuite import stats

    def agreement(verdicts: Sequence[tuple[str, str]]) -> float:
        people, judge = zip(*verdicts, strict=True)
        return stats.cohen_kappa(people, judge)

    clusters = _clusters(
        pairs(tally), lambda row: row.sample, lambda row: (row.facts["human"], row.facts["verdict"] or "none")
    )
    return _estimate(clusters, agreement)


def correlation(
    tally: Tally, coefficient: Coefficient, aspects: Sequence[str] = ASPECT_NAMES
) -> Estimate | None:
    """The judge's rank correlation with people over all responses (turn level), the mean over aspects.

    As UniEval's own script computes it: all responses in one list. The interval leaves out whole
    dialogues. None where the correlation is undefined for an aspect.
    """

    def mean(rows: Sequence[Row]) -> float:
        return math.fsum(_correlation(rows, coefficient, aspect) for aspect in aspects) / len(aspects)

    return _estimate(
        _clusters(dialogues(tally), lambda row: str(row.facts["dialogue"]), lambda row: row), mean
    )


def _correlation(rows: Sequence[Row], coefficient: Coefficient, aspect: str) -> float:
    from evalsuite import stats

    judge = [row.facts["judged"][aspect] for row in rows]
    people = [row.facts["human"][aspect] for row in rows]
    return (stats.spearman if coefficient == "spearman" else stats.kendall)(judge, people).statistic


def _clusters(tally: Tally, cluster: Callable[[Row], str], item: Callable[[Row], T]) -> list[list[T]]:
    found: dict[str, list[T]] = {}
    for row in tally:
        found.setdefault(cluster(row), []).append(item(row))
    return list(found.values())


def _estimate(clusters: Sequence[Sequence[T]], statistic: Callable[[list[T]], float]) -> Estimate | None:
    from evalsuite.stats.jackknife import jackknife_interval

    items = [item for cluster in clusters for item in cluster]
    value = statistic(items) if items else math.nan
    if math.isnan(value):
        return None
    interval = jackknife_interval(clusters, statistic, bounds=(-1.0, 1.0))
    if math.isnan(interval.low):
        return Estimate(value, n=len(items))
    return Estimate(value, interval.low, interval.high, len(items))
