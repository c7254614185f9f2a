"""Agreement of metrics with people (the paper's Table 3), of people with each other, and of error types with labels."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.struc_bench.abilities import ERROR_TYPES
from evalsuite.benchmarks.struc_bench.human_scores import ASPECTS
from evalsuite.output.reports.section import Column, Table
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import Row
    from evalsuite.stats.correlation import ClusterDraws, Correlation

RESAMPLES = 300
"""Number of resamples; low, because a report has about a hundred such intervals."""
FEWEST = 3
OTHERS = "A person and the mean of the others"


def agreement_table(title: str, metrics: Mapping[str, str], outputs: Sequence[Row]) -> Table:
    """Correlate each metric with people's scores over outputs, by Pearson, Spearman and Kendall.

    Args:
        title: the table's heading.
        metrics: the metrics' headings, by name.
        outputs: rated outputs, with people's scores under the fact `people`.
    """
    from evalsuite.stats.correlation import COEFFICIENTS, ClusterDraws

    draws = ClusterDraws([row.cluster for row in outputs], resamples=RESAMPLES)
    lines = [
        [heading, len(rated), *_agreement([row.scores.get(metric) for row in outputs], outputs, draws)]
        for metric, heading in metrics.items()
        if (rated := [row for row in outputs if metric in row.scores])
    ]
    columns = [Column("Metric"), Column("Outputs", "count")]
    columns += [
        Column(f"{heading}: {name}", "number", 3) for heading in ASPECTS.values() for name in COEFFICIENTS
    ]
    note = (
        f"Over outputs; a dash below {FEWEST} outputs, or where either side is constant. Intervals of 95% by "
        f"bootstrap, drawing items with all their outputs.{_alpha_note(outputs)}"
    )
    return Table(title, columns, [*lines, *_raters_line(outputs, draws)], note)


def error_table(title: str, outputs: Sequence[Row]) -> Table | None:
    """Tabulate computed types of errors against people's labels; None without labels."""
    from evalsuite.stats import kappa_interval

    labelled = [row for row in outputs if row.facts["people"].get("errors")]
    lines: list[list[Cell]] = []
    for name, heading in ERROR_TYPES.items():
        pairs = [
            (row.scores[name] > 0, row.facts["people"]["errors"][name] > 0.5)
            for row in labelled
            if name in row.scores
        ]
        if pairs:
            computed, people = zip(*pairs, strict=True)
            kappa = kappa_interval(computed, people)
            agreed = (
                None if math.isnan(kappa.value) else Estimate(kappa.value, kappa.low, kappa.high, kappa.n)
            )
            shares = (sum(side) / len(pairs) for side in (people, computed))
            lines.append([heading, len(pairs), *shares, agreed])
    columns = [
        Column("Type"), Column("Outputs", "count"), Column("People", "percent", 1), Column("Computed", "percent", 1),
        Column("Cohen's kappa", "number", 3),
    ]  # fmt: skip
    note = "The share of outputs with such an error as most people labelled them, and as the comparison finds it."
    return Table(title, columns, lines, note) if lines else None


def _agreement(
    values: Sequence[float | None], outputs: Sequence[Row], draws: ClusterDraws
) -> list[Estimate | None]:
    import numpy as np

    from evalsuite.stats.correlation import correlations

    measured = np.array([math.nan if value is None else value for value in values])
    return [
        _estimate(correlation)
        for aspect in ASPECTS
        for correlation in correlations(
            measured, np.array([row.facts["people"][aspect] for row in outputs]), draws
        ).values()
    ]


def _raters_line(outputs: Sequence[Row], draws: ClusterDraws) -> list[list[Cell]]:
    """Correlate each person with the mean of the others, as a reference for what one more person would reach."""
    from evalsuite.stats.correlation import COEFFICIENTS, SHARE_OF_SLOW, SLOW

    sides = [_each_and_others(outputs, place) for place in range(len(ASPECTS))]
    several = sides[0][2].sum()
    if several < FEWEST:
        return []
    cells: list[Cell] = []
    for one, others, has in sides:
        for name, coefficient in COEFFICIENTS.items():
            statistic = partial(_mean_over_raters, coefficient, one, others)
            resamples = len(draws) // SHARE_OF_SLOW if name == SLOW else None
            cells.append(_estimate(draws.interval(statistic, has, resamples=resamples)))
    return [[OTHERS, int(several), *cells]]


def _each_and_others(outputs: Sequence[Row], place: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return each person's scores, the others' means (NaN if there are none), and which outputs have both."""
    import numpy as np

    ratings = _ratings(outputs, place)
    present = ~np.isnan(ratings)
    total, count = np.where(present, ratings, 0.0).sum(axis=0), present.sum(axis=0)
    others = np.where(
        present & (count > 1), (total - np.nan_to_num(ratings)) / np.maximum(count - 1, 1), np.nan
    )
    return ratings, others, count > 1


def _ratings(outputs: Sequence[Row], place: int) -> NDArray[Any]:
    import numpy as np

    by_output = [row.facts["people"].get("raters", {}) for row in outputs]
    names = dict.fromkeys(rater for raters in by_output for rater in raters)
    return np.array(
        [[raters[name][place] if name in raters else math.nan for raters in by_output] for name in names]
    ).reshape(len(names), len(outputs))


def _mean_over_raters(coefficient: Any, one: NDArray[Any], others: NDArray[Any], at: NDArray[Any]) -> float:
    import numpy as np

    values = []
    for own, rest in zip(one[:, at], others[:, at], strict=True):
        both = ~np.isnan(rest)
        values.append(coefficient(own[both], rest[both]))
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def _alpha_note(outputs: Sequence[Row]) -> str:
    """Describe Krippendorff's alpha among the people, if some outputs have several ratings."""
    from evalsuite.stats import krippendorff_alpha

    ratings = [_ratings(outputs, place) for place in range(len(ASPECTS))]
    if len(ratings[0]) < 2 or not _each_and_others(outputs, 0)[2].any():
        return ""
    alphas = [krippendorff_alpha(list(map(list, side)), level="interval") for side in ratings]
    named = " and ".join(
        f"{'undefined' if math.isnan(alpha) else format(alpha, '.3f')} for {aspect}"
        for alpha, aspect in zip(alphas, ASPECTS, strict=True)
    )
    return f" Krippendorff's alpha (interval) among {len(ratings[0])} people: {named}."


def _estimate(correlation: Correlation) -> Estimate | None:
    if math.isnan(correlation.value):
        return None
    if math.isnan(correlation.low):
        return Estimate(correlation.value)
    return Estimate(correlation.value, correlation.low, correlation.high)
