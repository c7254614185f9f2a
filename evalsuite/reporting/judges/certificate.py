"""A judge's certificate: how far it agrees with people, with other judges, and with itself under probes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from evalsuite.reporting.judges.corrected import corrected_mean
from evalsuite.reporting.judges.shares import share
from evalsuite.reporting.section import Block, Column, Section, Table
from evalsuite.results.estimate import Estimate
from evalsuite.results.judge_labels import kappa, rho

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.reporting.section import Cell
    from evalsuite.results.judge_labels import LabelPair


@dataclass(frozen=True, slots=True)
class JudgeResults:
    """What one judge said of a run's answers.

    Attributes:
        judge: the model.
        scores: by case; cases that it could not be read on are left out.
        asked: number of cases that it was asked about.
        passes: the least score that counts as a pass, for verdicts.
        probed: by probe, the scores of the changed answers by case.
        signature: of the judge.
    """

    judge: str
    scores: Mapping[str, float]
    asked: int
    passes: float
    probed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    signature: str = ""


def certificate(judges: Sequence[JudgeResults], people: Mapping[str, float], sheets: int = 1) -> Section:
    """The section for these judges.

    Args:
        judges: side by side.
        people: label by case, on the judges' scale; empty where nobody has labelled anything.
        sheets: how many people gave labels, for the heading.
    """
    blocks: list[Block | None] = [
        _judges(judges),
        _agreement(judges, people, sheets) if people else None,
        _corrected(judges, people) if people else None,
        _between(judges, people) if people and len(judges) > 1 else None,
        _probes(judges),
    ]
    return Section("Certificate", tuple(block for block in blocks if block is not None))


def _judges(judges: Sequence[JudgeResults]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            one.judge,
            _mean(list(one.scores.values())),
            1 - len(one.scores) / one.asked,
            one.asked,
            one.signature,
        )
        for one in judges
    ]
    columns = (
        Column("Judge"),
        Column("Mean score", "number", 3),
        Column("Not read", "percent"),
        Column("Cases", "count"),
        Column("Signature"),
    )
    return Table("Judges", columns, rows)


def _agreement(judges: Sequence[JudgeResults], people: Mapping[str, float], sheets: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in judges:
        pairs = labelled(one, people)
        verdicts = [(float(label >= one.passes), float(score >= one.passes)) for label, score in pairs]
        cases = [str(at) for at in range(len(pairs))]
        right = share([float(label == score) for label, score in verdicts], cases)
        rows.append((one.judge, right, kappa(verdicts), rho(pairs), len(pairs)))
    columns = (
        Column("Judge"),
        Column("Accuracy", "percent"),
        Column("Kappa", "number", 2),
        Column("Spearman's rho", "number", 2),
        Column("Labels", "count"),
    )
    note = (
        f"Against the labels of {sheets} {'person' if sheets == 1 else 'people'}. Accuracy and kappa are of pass or "
        "fail, rho is of the scores. Intervals are Wilson's and the jackknife's, by case."
    )
    return Table("Agreement with people", columns, rows, note)


def labelled(judge: JudgeResults, people: Mapping[str, float]) -> list[LabelPair]:
    """People's label and the judge's score of each case that has both."""
    return [(label, judge.scores[case]) for case, label in people.items() if case in judge.scores]


def _corrected(judges: Sequence[JudgeResults], people: Mapping[str, float]) -> Table | None:
    rows: list[tuple[Cell, ...]] = []
    for one in judges:
        mean = corrected_mean(one.judge, [(people.get(case), score) for case, score in one.scores.items()])
        if mean is not None:
            rows.append((one.judge, mean.naive, mean.people_only, mean.corrected, mean.labelled))
    columns = (
        Column("Judge"),
        Column("Judge alone", "number", 3),
        Column("People alone", "number", 3),
        Column("Corrected", "number", 3),
        Column("Labels", "count"),
    )
    note = "Prediction-powered inference, from labels of a random part of the cases."
    return Table("Mean corrected by people's labels", columns, rows, note) if rows else None


def _between(judges: Sequence[JudgeResults], people: Mapping[str, float]) -> Table:
    """Paired: on the cases that both judges scored, which of them is right more often?"""
    from evalsuite.stats import mcnemar

    rows: list[tuple[Cell, ...]] = []
    for one, other in combinations(judges, 2):
        cases = [case for case in people if case in one.scores and case in other.scores]
        first, second = (_right(judge, people, cases) for judge in (one, other))
        if cases:
            difference = (sum(second) - sum(first)) / len(cases)
            rows.append((one.judge, other.judge, difference, mcnemar(first, second), len(cases)))
    columns = (
        Column("Judge"),
        Column("Other judge"),
        Column("More often right", "percent"),
        Column("p", "number", 3),
        Column("Labels", "count"),
    )
    return Table("Judges compared", columns, rows, "Of the other over the first; McNemar's exact test.")


def _right(judge: JudgeResults, people: Mapping[str, float], cases: Sequence[str]) -> list[float]:
    return [float((judge.scores[case] >= judge.passes) == (people[case] >= judge.passes)) for case in cases]


def _probes(judges: Sequence[JudgeResults]) -> Table | None:
    rows: list[tuple[Cell, ...]] = []
    for one in judges:
        for probe, scores in one.probed.items():
            both = [case for case in scores if case in one.scores]
            turned = [
                float((scores[case] >= one.passes) != (one.scores[case] >= one.passes)) for case in both
            ]
            up = [float(scores[case] > one.scores[case]) for case in both]
            if both:
                rows.append((one.judge, probe, share(turned, both), share(up, both), len(both)))
    columns = (
        Column("Judge"),
        Column("Probe"),
        Column("Verdict turned", "percent"),
        Column("Score raised", "percent"),
        Column("Cases", "count"),
    )
    note = (
        "Words that ask for a good score and padding should turn no verdict; a confident wrong answer should raise "
        "no score."
    )
    return Table("Probes", columns, rows, note) if rows else None


def _mean(values: Sequence[float]) -> Estimate | None:
    from evalsuite import stats

    if set(values) <= {0.0, 1.0}:
        return share(values, [str(at) for at in range(len(values))])
    value = math.fsum(values) / len(values)
    if len(values) == 1:
        return Estimate(value, n=1)
    interval = stats.mean_interval(values)
    return Estimate(value, interval.low, interval.high, len(values))
