"""Agreement of judges with people over all samples, for gates and tables.

A comparison without a usable verdict counts as disagreement, in accuracy and, as a label that people never give, in
kappa. A dialogue without a usable judgement has no score to correlate; tables show how many there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from evalsuite.benchmarks.chat_eval.dataset import ASPECT_NAMES, HUMAN_ASPECTS
from evalsuite.benchmarks.chat_eval.solver import OVERLAP, read_mode
from evalsuite.output.reports.judges import corrected_mean
from evalsuite.results.judge_labels import FEWEST
from evalsuite.results.tally import Estimate
from evalsuite.stats.clustering import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.benchmarks.chat_eval.solver import JudgingMode
    from evalsuite.output.reports.judges import Corrected
    from evalsuite.results.tally import Row, RunView, Tally


@dataclass(frozen=True, slots=True)
class JudgeSetting:
    """One mode of one run."""

    name: str
    mode: JudgingMode
    tally: Tally
    view: RunView


def judge_settings(views: Sequence[RunView]) -> list[JudgeSetting]:
    """List one setting per run and mode, in order."""
    return [
        JudgeSetting(f"{view.label}, {name}", read_mode(name), tally, view)
        for view in views
        for name, tally in view.tally.groups("mode").items()
    ]


Coefficient = Literal["spearman", "kendall"]


def pairs(tally: Tally) -> Tally:
    """Select the comparisons that were judged, without errors."""
    return tally.where(lambda row: row.outcome != "error" and "human" in row.facts, task="pairs")


def dialogues(tally: Tally) -> Tally:
    """Select the dialogues with a usable judgement."""
    return tally.where(lambda row: row.outcome != "error" and bool(row.facts.get("judged")), task="dialogues")


def kappa(tally: Tally) -> Estimate | None:
    """Compute Cohen's kappa between the judge's and people's verdicts; None if it is undefined."""
    from evalsuite.stats import clustered_kappa

    judged = pairs(tally)
    if not len(judged):
        return None
    agreement = clustered_kappa(
        [row.facts["human"] for row in judged],
        [row.facts["verdict"] or "none" for row in judged],
        clusters=[row.cluster for row in judged],
    )
    if math.isnan(agreement.value):
        return None
    return _with_interval(agreement.value, Interval(agreement.low, agreement.high), agreement.n)


def correlation(
    tally: Tally, coefficient: Coefficient, aspects: Sequence[str] = ASPECT_NAMES
) -> Estimate | None:
    """Compute the judge's rank correlation with people over all responses (turn level), the mean over aspects.

    All responses are in one list, as in UniEval's own script. The interval leaves out whole dialogues. None if the
    correlation is undefined for an aspect.
    """
    return RatedResponses.by_judge(tally).correlation(coefficient, aspects)


@dataclass(frozen=True, slots=True)
class RatedResponses:
    """Dialogue responses with people's ratings and the values to correlate with them.

    Attributes:
        rows: the responses' rows.
        values: each response's value by aspect.
    """

    rows: Sequence[Row]
    values: Sequence[Mapping[str, float]]

    @classmethod
    def by_judge(cls, tally: Tally) -> RatedResponses:
        """Select the responses with the judge's scores."""
        rows = list(dialogues(tally))
        return cls(rows, [row.facts["judged"] for row in rows])

    @classmethod
    def by_metric(cls, tally: Tally, name: str) -> RatedResponses:
        """Select the responses with a metric that needs no judge, the same value for every aspect."""
        rows = [row for row in tally if name in row.facts.get(OVERLAP, {})]
        return cls(rows, [dict.fromkeys(ASPECT_NAMES, row.facts[OVERLAP][name]) for row in rows])

    def correlation(self, coefficient: Coefficient, aspects: Sequence[str] = ASPECT_NAMES) -> Estimate | None:
        """Average over aspects, with `rank_interval` by dialogue; None if it is undefined."""
        from evalsuite.stats.correlation import rank_interval

        value, interval = rank_interval([self._pairs(one) for one in aspects], self._dialogues(), coefficient)
        return None if math.isnan(value) else _with_interval(value, interval, len(self.rows))

    def _pairs(self, aspect: str) -> tuple[list[float], list[float]]:
        return [values[aspect] for values in self.values], [row.facts["human"][aspect] for row in self.rows]

    def _dialogues(self) -> list[str]:
        return [str(row.facts["dialogue"]) for row in self.rows]

    def replicates(self, coefficient: Coefficient, aspects: Sequence[str]) -> tuple[float, list[float]]:
        """Compute the mean correlation over all dialogues and without each; nan if it is undefined."""
        from evalsuite.stats.correlation import rank_replicates

        return rank_replicates([self._pairs(one) for one in aspects], self._dialogues(), coefficient)


def _with_interval(value: float, interval: Interval, n: int) -> Estimate:
    if math.isnan(interval.low):
        return Estimate(value, n=n)
    return Estimate(value, interval.low, interval.high, n)


WORTH = {"first": 1.0, "tie": 0.5, "second": 0.0}


def correct_means(judges: Sequence[tuple[str, Tally]]) -> list[tuple[str, Corrected]]:
    """Estimate, per judge, the share of comparisons that the first system wins and each aspect's mean.

    Part of people's labels are hidden, and estimated through the judge.
    """
    estimates = []
    for name, tally in judges:
        compared = pairs(tally).where(lambda row: row.facts["verdict"] is not None)
        wins = [(_item(row), WORTH[row.facts["human"]], WORTH[row.facts["verdict"]]) for row in compared]
        estimates.append((name, _hidden("wins of the first system", wins, (0.0, 1.0))))
        for aspect in HUMAN_ASPECTS:
            rated = [
                (_item(row), row.facts["human"][aspect.name], row.facts["judged"][aspect.name])
                for row in dialogues(tally)
            ]
            estimates.append((name, _hidden(aspect.name, rated, (aspect.low, aspect.high))))
    return [(name, one) for name, one in estimates if one is not None]


def _item(row: Row) -> str:
    """Return the sample without its mode, so that the same labels are kept for all judges."""
    return row.sample.removesuffix(f"-{row.tags['mode'].replace(':', '-')}")


def _hidden(
    question: str, scores: Sequence[tuple[str, float, float]], bounds: tuple[float, float]
) -> Corrected | None:
    """Keep a fifth of the labels, at least as many as the method needs, and the same in every run."""
    if not scores:
        return None
    kept = max(FEWEST, len(scores) // 5)
    order = sorted(scores, key=lambda one: sha256(one[0].encode()).digest())
    shown = [(people if at < kept else None, judge) for at, (_, people, judge) in enumerate(order)]
    truth = math.fsum(people for _, people, _ in scores) / len(scores)
    return corrected_mean(question, shown, truth, bounds)
