"""Do the judges agree among themselves: debaters of a panel, repeats of one judge, epochs of a case?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from evalsuite.output.reports.judges.ballots import judged
from evalsuite.output.reports.section import Column, Table
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from evalsuite.output.reports.judges.ballots import Judged
    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import Tally

    Question = tuple[str, Literal["nominal", "interval"], Sequence["Rating"]]

JudgedValue = str | float
RaterKind = Literal["judges", "epochs", "people"]


@dataclass(frozen=True, slots=True)
class Rating:
    """One rater's value for one thing.

    Attributes:
        cluster: things that belong together (the orders of one case).
        thing: what is rated.
        rater: who.
        value: a verdict or a score.
    """

    cluster: str
    thing: Hashable
    rater: str
    value: JudgedValue


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """How far raters agree on one question.

    Attributes:
        kind: what the raters are.
        question: `verdict`, or an aspect.
        raters: who.
        alpha: Krippendorff's, nominal for verdicts, interval for scores; None where it is undefined.
        kappas: Cohen's for each two raters of verdicts; None where it is undefined.
    """

    kind: RaterKind
    question: str
    raters: tuple[str, ...]
    alpha: Estimate | None
    kappas: tuple[tuple[str, str, float | None], ...] = ()


def among_judges(cases: Sequence[Judged]) -> list[RaterAgreement]:
    """Agreement of the ballots within cases: on verdicts, or on each aspect where one answer is scored."""
    verdicts = [
        Rating(case.sample, (case.case, vote.swapped), vote.judge, vote.verdict)
        for case in cases
        for vote in case.votes
        if vote.verdict is not None
    ]
    scores: list[Question] = [(aspect, "interval", _scores(cases, aspect)) for aspect in _aspects(cases)]
    return measured("judges", [("verdict", "nominal", verdicts), *scores])


def among_epochs(cases: Sequence[Judged]) -> list[RaterAgreement]:
    """Agreement of a case's result, a verdict or mean scores, over its repetitions, where there are any."""
    verdicts = [
        Rating(case.sample, case.sample, f"epoch {case.epoch}", case.verdict)
        for case in cases
        if case.verdict is not None
    ]
    scores: list[Question] = [(aspect, "interval", _mean_scores(cases, aspect)) for aspect in _aspects(cases)]
    return measured("epochs", [("verdict", "nominal", verdicts), *scores])


def _aspects(cases: Sequence[Judged]) -> list[str]:
    """What is scored where one answer is judged."""
    named = (name for case in cases if case.verdict is None for vote in case.votes for name in vote.scores)
    return list(dict.fromkeys(named))


def agreement_table(title: str, judges: Sequence[tuple[str, Tally]], prefix: str = "") -> Table | None:
    """One row for each judge and question, then one for each two of its raters; None without any.

    Args:
        title: heading.
        judges: names, each with the tally of its cases.
        prefix: see `judged`.
    """
    rows: list[tuple[Cell, ...]] = []
    for name, tally in judges:
        cases = judged(tally, prefix)
        for agreement in (*among_judges(cases), *among_epochs(cases)):
            rows += agreement_rows(name, agreement)
    return Table(title, COLUMNS, rows, NOTE) if rows else None


COLUMNS = (
    Column("Judge"),
    Column("On"),
    Column("Raters"),
    Column("Krippendorff's alpha", "number", 2),
    Column("Cohen's kappa", "number", 2),
    Column("Things rated", "count"),
)

NOTE = (
    "Alpha is nominal for verdicts and interval for scores; its 95% interval leaves out one case at a time. "
    "1 is full agreement, 0 is chance."
)


def agreement_rows(judge: str, agreement: RaterAgreement) -> list[tuple[Cell, ...]]:
    """A row for all raters of one question, and one for each two of them; see `COLUMNS`."""
    things = agreement.alpha.n if agreement.alpha else None
    rows: list[tuple[Cell, ...]] = [
        (
            judge,
            agreement.question,
            f"all {len(agreement.raters)} {agreement.kind}",
            agreement.alpha,
            None,
            things,
        )
    ]
    return rows + [
        (judge, agreement.question, f"{one}, {other}", None, kappa, None)
        for one, other, kappa in agreement.kappas
    ]


def _scores(cases: Sequence[Judged], aspect: str) -> list[Rating]:
    return [
        Rating(case.sample, case.case, vote.judge, vote.scores[aspect])
        for case in cases
        for vote in case.votes
        if aspect in vote.scores
    ]


def _mean_scores(cases: Sequence[Judged], aspect: str) -> list[Rating]:
    scored = [
        (case, [vote.scores[aspect] for vote in case.votes if aspect in vote.scores])
        for case in cases
        if case.verdict is None
    ]
    return [
        Rating(case.sample, case.sample, f"epoch {case.epoch}", math.fsum(scores) / len(scores))
        for case, scores in scored
        if scores
    ]


def measured(kind: RaterKind, questions: Iterable[Question]) -> list[RaterAgreement]:
    """The agreement on each question that two raters or more have answered."""
    agreements = []
    for question, level, ratings in questions:
        raters = tuple(dict.fromkeys(rating.rater for rating in ratings))
        if len(raters) > 1:
            kappas = _kappas(ratings, raters) if level == "nominal" else ()
            agreements.append(RaterAgreement(kind, question, raters, _alpha(ratings, level), kappas))
    return agreements


def _alpha(ratings: Sequence[Rating], level: Literal["nominal", "interval"]) -> Estimate | None:
    from evalsuite.stats.jackknife import interval_of_replicates
    from evalsuite.stats.krippendorff import alpha_without_each_cluster

    values: dict[Hashable, list[JudgedValue]] = {}
    clusters: dict[Hashable, str] = {}
    for rating in ratings:
        values.setdefault(rating.thing, []).append(rating.value)
        clusters.setdefault(rating.thing, rating.cluster)
    value, without = alpha_without_each_cluster(list(values.values()), list(clusters.values()), level=level)
    if math.isnan(value):
        return None
    interval = interval_of_replicates(value, without, bounds=(-math.inf, 1.0))
    if math.isnan(interval.low):
        return Estimate(value, n=len(values))
    return Estimate(value, interval.low, interval.high, len(values))


def _kappas(ratings: Sequence[Rating], raters: Sequence[str]) -> tuple[tuple[str, str, float | None], ...]:
    from evalsuite.stats import cohen_kappa

    by_rater = {
        rater: {rating.thing: rating.value for rating in ratings if rating.rater == rater} for rater in raters
    }
    kappas: list[tuple[str, str, float | None]] = []
    for one, other in combinations(raters, 2):
        both = [item for item in by_rater[one] if item in by_rater[other]]
        value = (
            cohen_kappa([by_rater[one][item] for item in both], [by_rater[other][item] for item in both])
            if both
            else math.nan
        )
        kappas.append((one, other, None if math.isnan(value) else value))
    return tuple(kappas)
