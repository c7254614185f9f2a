"""Measure how raters agree: judges (debaters, repetitions, epochs) with each other, and judges with people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Literal

from evalsuite import stats
from evalsuite.output.reports.judges.ballots import JudgedCase, read_judged_cases
from evalsuite.output.reports.section import Cell, Column, Table, parse_columns
from evalsuite.results.judge_labels import (
    compute_ac1,
    compute_accuracy,
    compute_alpha,
    compute_kappa,
    compute_quadratic_kappa,
    compute_rho,
    compute_sensitivity,
    compute_specificity,
    estimate_corrected_score,
    list_labelled_scores,
    select_labelled_cases,
)
from evalsuite.results.tally import Estimate, RunView, Tally

RatedQuestion = tuple[str, Literal["nominal", "interval"]]
"""A question that raters answered: `verdict` or the name of a scored aspect, and the level of the answers."""
VERDICT: RatedQuestion = ("verdict", "nominal")


@dataclass(frozen=True, slots=True)
class Rating:
    """One rater's verdict or score for one item."""

    cluster: str  # The group of items that depend on each other, such as the two orders of one case.
    item: Hashable  # The rated item.
    rater: str  # The rater's name.
    value: str | float  # The rater's verdict or score.


def tabulate_agreement(title: str, judges: Sequence[tuple[str, Tally]], prefix: str = "") -> Table | None:
    """Tabulate the agreement of each judge on each question, over all raters and per pair; None without ratings."""
    rows: list[tuple[Cell, ...]] = []
    for name, tally in judges:
        cases = read_judged_cases(tally, prefix)
        for kind, rated in (("judges", _list_ratings_by_vote(cases)), ("epochs", _list_ratings_by_epoch(cases))):
            by_question: dict[RatedQuestion, list[Rating]] = {VERDICT: []}
            for question, rating in rated:
                by_question.setdefault(question, []).append(rating)
            for question, ratings in by_question.items():
                rows += make_agreement_rows(name, kind, question, ratings)
    return Table(title, COLUMNS, rows, NOTE) if rows else None


def _list_ratings_by_vote(cases: Sequence[JudgedCase]) -> Iterator[tuple[RatedQuestion, Rating]]:
    """Yield each vote's verdict on a case in one order, or its score of each aspect of a single answer."""
    for case in cases:
        for vote in case.votes:
            if vote.verdict is not None:
                yield VERDICT, Rating(case.cluster, (case.case, vote.swapped), vote.judge, vote.verdict)
            if case.verdict is None:
                for aspect, score in vote.scores.items():
                    yield (aspect, "interval"), Rating(case.cluster, case.case, vote.judge, score)


def _list_ratings_by_epoch(cases: Sequence[JudgedCase]) -> Iterator[tuple[RatedQuestion, Rating]]:
    """Yield the result of each case in its epoch: the verdict, or the mean score of each aspect."""
    for case in cases:
        epoch = f"epoch {case.epoch}"
        if case.verdict is not None:
            yield VERDICT, Rating(case.cluster, case.sample, epoch, case.verdict)
            continue
        for aspect in dict.fromkeys(name for vote in case.votes for name in vote.scores):
            mean = fmean(vote.scores[aspect] for vote in case.votes if aspect in vote.scores)
            yield (aspect, "interval"), Rating(case.cluster, case.sample, epoch, mean)


COLUMNS = parse_columns(
    "Judge | On | Raters | Krippendorff's alpha: number 2 | Cohen's kappa: number 2 | Things rated: count"
)

NOTE = (
    "Alpha is nominal for verdicts and interval for scores; its 95% interval leaves out one case at a time. "
    "1 is full agreement, 0 is chance."
)


def make_agreement_rows(
    judge: str, kind: str, question: RatedQuestion, ratings: Sequence[Rating]
) -> list[tuple[Cell, ...]]:
    """Make a row for all raters of a question and, if they gave verdicts, for each pair; none for a single rater.

    Args:
        kind: what the raters are, such as `judges`.
    """
    by_rater: dict[str, dict[Hashable, str | float]] = {}
    for rating in ratings:
        by_rater.setdefault(rating.rater, {})[rating.item] = rating.value
    if len(by_rater) < 2:
        return []
    about, level = question
    alpha = _estimate_alpha(ratings, level)
    rows: list[tuple[Cell, ...]] = [
        (judge, about, f"all {len(by_rater)} {kind}", alpha, None, alpha.n if alpha else None)
    ]
    for (one, values), (other, others) in combinations(by_rater.items(), 2) if level == "nominal" else ():
        both = [(value, others[item]) for item, value in values.items() if item in others]
        kappa = stats.cohen_kappa(*zip(*both, strict=True)) if both else math.nan
        rows.append((judge, about, f"{one}, {other}", None, None if math.isnan(kappa) else kappa, None))
    return rows


def _estimate_alpha(ratings: Sequence[Rating], level: Literal["nominal", "interval"]) -> Estimate | None:
    from evalsuite.stats.agreement import compute_alpha_replicates
    from evalsuite.stats.clustering import compute_jackknife_interval

    values: dict[Hashable, list[str | float]] = {}
    clusters: dict[Hashable, str] = {}
    for rating in ratings:
        values.setdefault(rating.item, []).append(rating.value)
        clusters.setdefault(rating.item, rating.cluster)
    value, without = compute_alpha_replicates(list(values.values()), list(clusters.values()), level=level)
    if math.isnan(value):
        return None
    interval = compute_jackknife_interval(value, without, bounds=(-math.inf, 1.0))
    return Estimate.of(value, interval.low, interval.high, len(values))


MEASURES: tuple[tuple[Column, Callable[[Tally], Estimate | None]], ...] = (
    (Column("Accuracy (%)", "percent"), compute_accuracy),
    (Column("Sensitivity (%)", "percent"), compute_sensitivity),
    (Column("Specificity (%)", "percent"), compute_specificity),
    (Column("Kappa", "number", 2), compute_kappa),
    (Column("AC1", "number", 2), compute_ac1),
    (Column("Weighted kappa", "number", 2), compute_quadratic_kappa),
    (Column("Ordinal alpha", "number", 2), compute_alpha),
    (Column("Spearman's rho", "number", 2), compute_rho),
)
# Measures left out if people gave verdicts, because these measures need numeric scores.
NUMERIC_MEASURES = (compute_quadratic_kappa, compute_alpha)
PEOPLE_COLUMNS = (*(column for column, _ in MEASURES), Column("Confusion"), Column("Labels", "count"))
MEASURES_NOTE = (
    "Accuracy, kappa and Gwet's AC1 are of verdicts. Sensitivity is the share of people's passes that the judge "
    "passes, specificity of their failures that it fails; the confusion counts people's verdict → the judge's. "
    "Weighted kappa (quadratic), Krippendorff's ordinal alpha and Spearman's rho are of scores. Gates may demand them: "
    "`judge.kappa >= 0.6 @95%`."
)
PEOPLE_NOTE = (
    f"Of cases whose sample's metadata has people's label under `human`. {MEASURES_NOTE} The corrected mean is by "
    "prediction-powered inference; it needs 30 labels of a random part of the cases, and as many cases without."
)


def make_people_agreement_cells(tally: Tally) -> tuple[Cell, ...]:
    """Measure how one score agrees with people's labels; return the cells of the columns `PEOPLE_COLUMNS`."""
    verdicts = any(label.verdicts is not None for label in list_labelled_scores(tally))
    measured = (None if verdicts and measure in NUMERIC_MEASURES else measure(tally) for _, measure in MEASURES)
    return (*measured, _describe_confusion_matrix(tally) or None, len(list_labelled_scores(tally)))


def _describe_confusion_matrix(tally: Tally) -> str:
    """Write how often each pair of people's verdict and judge's verdict occurs; empty without verdicts."""
    both = [label.verdicts for label in list_labelled_scores(tally) if not label.nominal]
    counts = Counter(pair for pair in both if pair is not None)
    names = {1.0: "pass", 0.0: "fail"}
    cells = [f"{names[people]} → {names[judge]}: {counts[people, judge]}" for people in names for judge in names]
    return ", ".join(cells) if counts else ""


def tabulate_people_agreement(views: Sequence[RunView]) -> Table | None:
    """Tabulate agreement with people, with a row for each run and labelled score; None if no score has labels."""
    rows: list[tuple[Cell, ...]] = []
    for view in views:
        for score in dict.fromkeys(label.score for label in list_labelled_scores(view.tally)):
            agreement = make_people_agreement_cells(select_labelled_cases(view.tally, score))
            name = f"{view.judge or 'the judge'} ({view.label})"
            rows.append((name, score, *agreement, view.tally.mean(score), estimate_corrected_score(score, view.tally)))
    columns = (
        Column("Judge"),
        Column("Score"),
        *PEOPLE_COLUMNS,
        Column("Mean, all cases", "number", 3),
        Column("Corrected mean", "number", 3),
    )
    return Table("Judges against people", columns, rows, PEOPLE_NOTE) if rows else None
