"""Estimates about judges (shares, corrected means, gains of one judge over another) and by judges (win rates)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import partial
from operator import eq
from typing import TYPE_CHECKING, NamedTuple

from evalsuite import stats
from evalsuite.output.reports.section import Cell, Column, Table, parse_columns
from evalsuite.results.judge_labels import FEWEST, include_known_scores
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from evalsuite.stats.correlation import Variables

Replicated = tuple[float, Sequence[float]]  # A statistic, and its values when one cluster after another is left out.
Gain = tuple[Estimate | None, float | None]
"""A gain with its interval, and the p-value for a gain of zero; None if they are undefined."""


def estimate_share(values: Sequence[float], clusters: Sequence[str]) -> Estimate | None:
    """Average values that are 0 or 1, with an interval that accounts for clusters; None if `values` is empty.

    If all values are equal, the interval counts each cluster as one independent value.
    """
    if not values:
        return None
    mean, independent = math.fsum(values) / len(values), len(set(clusters))
    if mean in (0.0, 1.0):
        interval = stats.count_interval(mean * independent, independent)
    else:
        interval = stats.share_interval(values, clusters=clusters)
    return Estimate(mean, interval.low, interval.high, len(values))


def estimate_mean(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Estimate:
    """Average scores; the estimate has no interval if there are too few scores or all are equal."""
    interval = stats.mean_interval(values, clusters=clusters)
    low, high = (interval.low, interval.high) if math.isfinite(interval.high) else (None, None)
    return Estimate(math.fsum(values) / len(values), low, high, len(values))


class CorrectedMean(NamedTuple):
    """Three estimates of the mean of people's labels, with the true mean if it is known."""

    question: str  # The name of the score that is averaged.
    naive: Estimate  # The mean of the judge's scores over all cases.
    people_only: Estimate  # The mean of people's labels over the labelled cases.
    corrected: Estimate  # The prediction-powered estimate, which combines the judge's scores with people's labels.
    tuning: float  # The weight of the judge's scores in the prediction-powered estimate, from 0 to 1.
    labelled: int  # The number of people's labels.
    # The true mean of people's labels over all cases, to check the estimates; None if unknown.
    truth: float | None = None


def estimate_corrected_mean(
    question: str,
    scores: Sequence[tuple[float | None, float]],
    truth: float | None = None,
    bounds: tuple[float, float] | None = None,
    weights: Sequence[float] | None = None,
    clusters: Sequence[Hashable] | None = None,
    known: Sequence[float] = (),
) -> CorrectedMean | None:
    """Estimate the mean of people's labels from the judge's scores, the labels, and both (prediction-powered).

    Args:
        scores: one pair per case: people's score and the judge's score. People's score may be None; the cases that have
            it must be a random sample of all cases.
        bounds: the lowest and the highest possible score; None has the meaning that `ppi_mean` describes.
        weights: weights of the labelled cases, in the cases' order, if some cases were more likely than others to be
            labelled.
        clusters: the group of related cases of each case; None if all cases are independent.
        known: the scores of further cases, about which neither the judge nor people are asked; all means include them.

    Returns:
        The estimates; None with fewer than 30 labelled cases or fewer than 30 unlabelled cases.
    """
    from evalsuite.stats.prediction_powered import ppi_mean

    grouped = list(zip(scores, clusters or range(len(scores)), strict=True))
    labels = [(people, judge, cluster) for (people, judge), cluster in grouped if people is not None]
    rest = [(judge, cluster) for (people, judge), cluster in grouped if people is None]
    if min(len(labels), len(rest)) < FEWEST:
        return None
    human, machine, labelled = zip(*labels, strict=True)
    alone, others = zip(*rest, strict=True)
    powered = ppi_mean(human, machine, alone, bounds=bounds, weights=weights, clusters=(labelled, others))
    everything = [judge for _, judge in scores]
    complete = partial(include_known_scores, count=len(scores), known=known)
    return CorrectedMean(
        question,
        complete(estimate_mean(everything, clusters)),
        complete(estimate_mean(human, labelled)),
        complete(Estimate(powered.estimate, powered.low, powered.high, len(scores))),
        powered.tuning,
        len(labels),
        truth,
    )


PPI_NOTE = (
    "Judge alone takes the judge's scores for people's: its interval is narrow and may well be around the "
    "wrong number. Corrected is prediction-powered inference with power tuning (PPI++), valid however wrong "
    "the judge is; at a weight of 0 it is people alone, but with the method's normal interval in place of "
    "Student's. People, all: what both estimate, known here because everything was labelled."
)


def tabulate_corrected_means(title: str, means: Sequence[tuple[str, CorrectedMean]], note: str = PPI_NOTE) -> Table:
    """Make a table of corrected means, with a row for each judge and each averaged score."""
    columns = parse_columns(
        "Judge | Mean of | Judge alone: number 3 | People alone: number 3 | Corrected: number 3 | Weight of the judge: "
        "number 2 | Labels: count | People, all: number 3"
    )
    return Table(title, columns, [(judge, *one) for judge, one in means], note)


def _estimate_gain(before: Replicated, after: Replicated, *, case_count: int) -> Gain:
    """Estimate how much higher a statistic is for one judge (`after`) than for another (`before`), by a jackknife."""
    from evalsuite.stats.clustering import compute_jackknife_interval, compute_jackknife_pvalue

    value, replicates = after[0] - before[0], [two - one for one, two in zip(before[1], after[1], strict=True)]
    interval, pvalue = compute_jackknife_interval(value, replicates), compute_jackknife_pvalue(value, replicates)
    return Estimate.of(value, interval.low, interval.high, case_count), None if math.isnan(pvalue) else pvalue


def compare_verdicts(
    people: Sequence[Hashable], one: Sequence[Hashable], other: Sequence[Hashable], clusters: Sequence[Hashable]
) -> tuple[float, float, Estimate | None, float | None]:
    """Compare how often the verdicts of the judges `one` and `other` equal people's.

    Returns:
        The gain of `other` over `one` in accuracy with its p-value, then the gain in Cohen's kappa with its p-value.
    """
    from evalsuite.stats.agreement import compute_kappa_replicates
    from evalsuite.stats.paired import compute_paired_pvalue

    before, after = (list(map(float, map(eq, people, verdicts))) for verdicts in (one, other))
    gained = (math.fsum(after) - math.fsum(before)) / len(people)
    kappas = (compute_kappa_replicates(people, verdicts, clusters) for verdicts in (one, other))
    return gained, compute_paired_pvalue(before, after, clusters), *_estimate_gain(*kappas, case_count=len(people))


def compare_correlations(one: Variables, other: Variables, clusters: Sequence[Hashable]) -> Gain:
    """Estimate how much higher the mean of Spearman's rho is for judge `other` than for judge `one`.

    Each judge's variables are people's and the judge's values, one pair of lists per aspect. Both judges' lists have
    the same cases in the same order. With fewer than three cases, the gain is undefined.
    """
    from evalsuite.stats.correlation import compute_rank_replicates

    rhos = (compute_rank_replicates(variables, clusters, "spearman") for variables in (one, other))
    return _estimate_gain(*rhos, case_count=len(clusters))


def tabulate_ratings(title: str, outcomes: Sequence[tuple[str, str, float]], clusters: Sequence[str]) -> Table | None:
    """Tabulate Bradley-Terry ratings of the runs from comparisons; return None for fewer than three runs."""
    if len({name for first, second, _ in outcomes for name in (first, second)}) < 3:
        return None
    try:
        ratings = stats.bradley_terry(outcomes, clusters=clusters)
    # Ratings are undefined, because the runs form two groups that were never compared with each other.
    except ValueError:
        return None
    rows: list[tuple[Cell, ...]] = [
        (rating.rank, name, Estimate(rating.points, rating.low, rating.high, len(outcomes)))
        for name, rating in ratings.items()
    ]
    columns = (Column("Rank", "count"), Column("Run"), Column("Rating", "number", 0))
    note = (
        "Bradley-Terry ratings on Elo's scale with the mean 1000; 400 points more mean odds of ten to one. A question "
        "on which two runs are equal is a tie, half a win. Runs whose "
        "intervals do not overlap have different ranks."
    )
    return Table(title, columns, rows, note)
