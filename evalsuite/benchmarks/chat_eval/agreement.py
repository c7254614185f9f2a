"""Measure judges' agreement with people, and compare modes by paired tests.

For accuracy, a comparison without a usable verdict of the judge counts as disagreement. For kappa, a missing verdict is
a label of its own, which people never give. A dialogue without a usable judgement is left out of correlations; tables
show how many dialogues are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

from evalsuite.benchmarks.chat_eval.dataset import ASPECT_NAMES, HUMAN_ASPECTS, OVERALL, OVERLAP
from evalsuite.benchmarks.chat_eval.solver import JudgingMode, parse_mode
from evalsuite.judges.judgements import WINS
from evalsuite.output.reports.judges.estimates import (
    CorrectedMean,
    compare_correlations,
    compare_verdicts,
    estimate_corrected_mean,
)
from evalsuite.output.reports.section import Cell, Table, parse_columns
from evalsuite.results.judge_labels import FEWEST, estimate_kappa
from evalsuite.results.tally import Estimate, Row, RunView, Tally

if TYPE_CHECKING:
    from evalsuite.stats.correlation import Coefficient

# A response's row, whose facts have people's ratings, and the response's values by aspect.
RatedResponse = tuple[Row, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class MeasuredJudge:
    """A judge whose agreement is measured: the model of one run in one mode."""

    name: str
    mode: JudgingMode
    tally: Tally
    view: RunView


def list_run_judges(views: Sequence[RunView]) -> list[MeasuredJudge]:
    """List one judge per run and mode, in the order of runs and modes."""
    return [
        MeasuredJudge(f"{view.label}, {name}", parse_mode(name), tally, view)
        for view in views
        for name, tally in view.tally.groups("mode").items()
    ]


def select_labelled_comparisons(tally: Tally) -> Tally:
    """Select the comparisons with people's verdicts and without errors."""
    return tally.where(lambda row: row.outcome != "error" and "human" in row.facts, task="pairs")


def select_dialogues(tally: Tally) -> Tally:
    """Select the dialogues with a usable judgement."""
    return tally.where(lambda row: row.outcome != "error" and bool(row.facts.get("judged")), task="dialogues")


def compute_kappa(tally: Tally) -> Estimate | None:
    """Compute Cohen's kappa between the judge's and people's verdicts; None if kappa is undefined."""
    judged = select_labelled_comparisons(tally)
    pairs = [(row.facts["human"], row.facts["verdict"] or "none") for row in judged]
    return estimate_kappa(pairs, [row.cluster for row in judged])


def list_responses(tally: Tally, metric: str | None = None) -> list[RatedResponse]:
    """List the responses with a usable judgement or, given an overlap metric, those that have a value of the metric.

    The value of an overlap metric counts for every aspect.
    """
    if metric is None:
        return [(row, row.facts["judged"]) for row in select_dialogues(tally)]
    rows = [row for row in tally if metric in row.facts.get(OVERLAP, {})]
    return [(row, dict.fromkeys(ASPECT_NAMES, row.facts[OVERLAP][metric])) for row in rows]


def correlate_ratings(
    tally: Tally, coefficient: Coefficient, aspects: Sequence[str] = ASPECT_NAMES, metric: str | None = None
) -> Estimate | None:
    """Correlate the judge's scores (or the values of `metric`) with people's ratings, aspect by aspect.

    Return the mean of the correlations over all responses, as UniEval does; None if it is undefined. Its interval is a
    jackknife over dialogues. If `OVERALL` is the only aspect, correlate people's overall rating with the mean score
    over the four aspects, each scaled to [0, 1].
    """
    from evalsuite.stats.correlation import rank_interval

    responses = list_responses(tally, metric)
    if OVERALL in aspects:
        responses = [
            (row, {OVERALL: fmean((values[one.name] - one.low) / (one.high - one.low) for one in HUMAN_ASPECTS)})
            for row, values in responses
            if OVERALL in row.facts["human"]
        ]
    value, interval = rank_interval(*_list_variables(responses, aspects), coefficient)
    return Estimate.of(value, interval.low, interval.high, len(responses))


def correlate_systems(tally: Tally, coefficient: Coefficient, metric: str | None = None) -> Estimate | None:
    """Correlate systems' mean scores with their mean ratings, aspect by aspect; return the mean correlation.

    Return None for fewer than three systems.
    """
    from evalsuite.stats.correlation import compute_rank_replicates

    by_system: dict[str, list[RatedResponse]] = {}
    for row, values in list_responses(tally, metric):
        by_system.setdefault(row.tags.get("system", ""), []).append((row, values))
    systems = sorted(by_system)
    variables = [
        tuple([fmean(side) for side in sides] for sides in zip(*pairs, strict=True))
        for pairs in zip(*(_list_variables(by_system[system], ASPECT_NAMES)[0] for system in systems), strict=True)
    ]
    value, _ = compute_rank_replicates([(x, y) for x, y in variables], systems, coefficient)
    return Estimate.of(value, math.nan, math.nan, len(systems))


def _list_variables(
    responses: Sequence[RatedResponse], aspects: Sequence[str]
) -> tuple[list[tuple[list[float], list[float]]], list[str]]:
    """Return the values and the ratings of each aspect, and the dialogue of each response."""
    pairs = [
        ([values[aspect] for _, values in responses], [row.facts["human"][aspect] for row, _ in responses])
        for aspect in aspects
    ]
    return pairs, [str(row.facts["dialogue"]) for row, _ in responses]


def estimate_corrected_means(judges: Sequence[tuple[str, Tally]]) -> list[tuple[str, CorrectedMean]]:
    """Estimate the first system's win rate and each aspect's mean, from all judge scores and a few human labels."""
    estimates = []
    for name, tally in judges:
        compared = select_labelled_comparisons(tally).where(lambda row: row.facts["verdict"] is not None)
        wins = [(row, WINS[row.facts["human"]], WINS[row.facts["verdict"]]) for row in compared]
        estimates.append((name, _correct_judge_mean("wins of the first system", wins, (0.0, 1.0))))
        for aspect in HUMAN_ASPECTS:
            rated = [
                (row, row.facts["human"][aspect.name], row.facts["judged"][aspect.name])
                for row in select_dialogues(tally)
            ]
            estimates.append((name, _correct_judge_mean(aspect.name, rated, (aspect.low, aspect.high))))
    return [(name, one) for name, one in estimates if one is not None]


def _correct_judge_mean(
    quantity: str, scores: Sequence[tuple[Row, float, float]], bounds: tuple[float, float]
) -> CorrectedMean | None:
    """Correct a judge's mean score with a fifth of the human labels (at least `FEWEST`); None without scores.

    A hash of the question chooses the labels, so runs on the same questions use the same labels.
    """
    if not scores:
        return None
    kept = max(FEWEST, len(scores) // 5)
    order = sorted(scores, key=lambda one: sha256(one[0].question[0].encode()).digest())
    shown = [(people if at < kept else None, judge) for at, (_, people, judge) in enumerate(order)]
    truth = math.fsum(people for _, people, _ in scores) / len(scores)
    return estimate_corrected_mean(quantity, shown, truth, bounds, clusters=[row.cluster for row, *_ in order])


COLUMNS = parse_columns(
    "Mode | Other mode | Accuracy gained: percent | p: pvalue | Kappa gained: number 2 | p: pvalue | Pairs: count"
)
NOTE = (
    "Gains of the other mode over the first, on the comparisons that both judged. The p of accuracy is McNemar's exact "
    "test, or the paired t test if cases share a question; the interval and the p of kappa are jackknife estimates by "
    "question."
)
RHO_COLUMNS = parse_columns("Mode | Other mode | Spearman's rho gained: number 2 | p: pvalue | Responses: count")
RHO_NOTE = (
    "Gains of the other mode over the first in the mean correlation over the four aspects, on the responses that both "
    "scored. Interval and p are jackknife estimates by conversation."
)


def compare_modes(views: Sequence[RunView]) -> list[Table]:
    """Compare the modes of each run in pairs; make one table for comparisons and one for dialogue responses."""
    on_pairs: list[tuple[Cell, ...]] = []
    on_dialogues: list[tuple[Cell, ...]] = []
    for view in views:
        for (one, first), (other, second) in combinations(view.tally.groups("mode").items(), 2):
            names = f"{view.label}, {one}", f"{view.label}, {other}"
            if pairs := _pair_rows(select_labelled_comparisons(first), select_labelled_comparisons(second)):
                people = [row.facts["human"] for row, _ in pairs]
                verdicts, others = (
                    [row.facts["verdict"] or "none" for row in rows] for rows in zip(*pairs, strict=True)
                )
                gains = compare_verdicts(people, verdicts, others, [row.cluster for row, _ in pairs])
                on_pairs.append((*names, *gains, len(pairs)))
            if both := _pair_rows(select_dialogues(first), select_dialogues(second)):
                scored = ([(row, row.facts["judged"]) for row in rows] for rows in zip(*both, strict=True))
                (before, dialogues), (after, _) = (_list_variables(side, ASPECT_NAMES) for side in scored)
                on_dialogues.append((*names, *compare_correlations(before, after, dialogues), len(both)))
    tables = [
        Table("Modes compared, pair by pair", COLUMNS, on_pairs, NOTE),
        Table("Modes compared, response by response", RHO_COLUMNS, on_dialogues, RHO_NOTE),
    ]
    return [table for table in tables if table.rows]


def _pair_rows(first: Tally, second: Tally) -> list[tuple[Row, Row]]:
    """Pair the rows of two modes by question and epoch."""
    others = {(row.question[0], row.epoch): row for row in second}
    return [(row, others[key]) for row in first if (key := (row.question[0], row.epoch)) in others]
