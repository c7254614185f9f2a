"""Tables of judges' comparisons: win rates for pairs of runs, and ratings for three or more runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalsuite import stats
from evalsuite.output.reports.section import Cell, Column, Section, Table, parse_columns
from evalsuite.results.tally import Estimate


@dataclass(frozen=True, slots=True)
class JudgedRunPair:
    """One judge's comparisons of two runs; each list has one entry per judgement that could be read."""

    first: str  # The name of the run under test.
    second: str  # The name of the run with which it is compared.
    judge: str  # The judge's model.
    outcomes: Sequence[float]  # One result per answer of the first run: 1 for a win, 0.5 for a tie, 0 for a loss.
    lengths: Sequence[Sequence[int]]  # For each comparison, the lengths of both answers in characters.
    clusters: Sequence[str]  # The cluster of each compared case.
    asked: int  # The cases with the same question in both runs, including those that a run failed to answer.


def make_win_rates_section(comparisons: Sequence[JudgedRunPair]) -> Section:
    """Make a report section about runs compared by judges; if a judge compared three or more runs, add ratings."""
    ratings = []
    for judge in dict.fromkeys(comparison.judge for comparison in comparisons):
        own = [one for one in comparisons if one.judge == judge]
        outcomes = [(one.first, one.second, outcome) for one in own for outcome in one.outcomes]
        clusters = [cluster for one in own for cluster in one.clusters]
        ratings.append(tabulate_ratings(f"Ratings by {judge}", outcomes, clusters))
    return Section("Runs compared", (_tabulate_win_rates(comparisons), *(table for table in ratings if table)))


def _tabulate_win_rates(comparisons: Sequence[JudgedRunPair]) -> Table:
    columns = parse_columns(
        "Run | Against | Judge | Wins: count | Ties: count | Losses: count | Win rate (%): percent | At equal lengths "
        "(%): percent | No verdict: count"
    )
    note = (
        "The judge saw both answers in both orders; orders that contradict each other are a tie, and a tie is half a "
        "win. The win rate at equal lengths is a logistic regression's (length-controlled AlpacaEval, "
        "arXiv 2404.04475, without its term for the difficulty of instructions). Cases of one sample count together. "
        "No verdict: a run has no answer, or the judge's answer could not be read."
    )
    return Table("Win rates", columns, [_make_win_rate_row(comparison) for comparison in comparisons], note)


def _make_win_rate_row(comparison: JudgedRunPair) -> tuple[Cell, ...]:
    outcomes, names = comparison.outcomes, (comparison.first, comparison.second, comparison.judge)
    counts = [sum(outcome == wanted for outcome in outcomes) for wanted in (1.0, 0.5, 0.0)]
    lost = comparison.asked - len(outcomes)
    if not outcomes:
        return (*names, *counts, None, None, lost)
    mean = sum(outcomes) / len(outcomes)
    interval = stats.betting_interval(outcomes, clusters=comparison.clusters)
    own, rival = zip(*comparison.lengths, strict=True)
    controlled = stats.controlled_win_rate(outcomes, own, rival, clusters=comparison.clusters)
    return (
        *names,
        *counts,
        Estimate(mean, interval.low, interval.high, len(outcomes)),
        Estimate(controlled.share, controlled.low, controlled.high, len(outcomes)),
        lost,
    )


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
