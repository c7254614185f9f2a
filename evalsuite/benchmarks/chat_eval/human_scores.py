"""The judge's agreement with people over all samples of a tally, for gates and tables.

A comparison without a usable verdict counts as disagreement, in accuracy and, as a label of its own that
people never give, in kappa. A dialogue without a usable judgement has no score to correlate; how many
there are stands beside each correlation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalsuite.benchmarks.chat_eval.overlap import OVERLAP
from evalsuite.benchmarks.chat_eval.ratings import ASPECT_NAMES
from evalsuite.results.tally import Estimate
from evalsuite.stats.clustering import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.results.tally import Row, Tally

Coefficient = Literal["spearman", "kendall"]


def pairs(tally: Tally) -> Tally:
    """The comparisons that were judged, well or badly; errors are left out."""
    return tally.where(lambda row: row.outcome != "error" and "human" in row.facts, task="pairs")


def dialogues(tally: Tally) -> Tally:
    """The dialogues with a usable judgement."""
    return tally.where(lambda row: row.outcome != "error" and bool(row.facts.get("judged")), task="dialogues")


def kappa(tally: Tally) -> Estimate | None:
    """Cohen's kappa between the judge's and people's verdicts; None where it is undefined."""
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
    """The judge's rank correlation with people over all responses (turn level), the mean over aspects.

    As UniEval's own script computes it: all responses in one list. The interval leaves out whole
    dialogues. None where the correlation is undefined for an aspect.
    """
    return RatedResponses.by_judge(tally).correlation(coefficient, aspects)


@dataclass(frozen=True, slots=True)
class RatedResponses:
    """Dialogue responses with people's ratings and the values to correlate with them.

    Attributes:
        rows: of the responses.
        values: of each response, by aspect.
    """

    rows: Sequence[Row]
    values: Sequence[Mapping[str, float]]

    @classmethod
    def by_judge(cls, tally: Tally) -> RatedResponses:
        """With the judge's scores."""
        rows = list(dialogues(tally))
        return cls(rows, [row.facts["judged"] for row in rows])

    @classmethod
    def by_metric(cls, tally: Tally, name: str) -> RatedResponses:
        """With a metric that asks no judge, the same value for every aspect."""
        rows = [row for row in tally if name in row.facts.get(OVERLAP, {})]
        return cls(rows, [dict.fromkeys(ASPECT_NAMES, row.facts[OVERLAP][name]) for row in rows])

    def correlation(self, coefficient: Coefficient, aspects: Sequence[str] = ASPECT_NAMES) -> Estimate | None:
        """The mean over aspects, with `rank_interval` by dialogue; None where it is undefined."""
        from evalsuite.stats.rank_intervals import rank_interval

        value, interval = rank_interval([self._pairs(one) for one in aspects], self._dialogues(), coefficient)
        return None if math.isnan(value) else _with_interval(value, interval, len(self.rows))

    def _pairs(self, aspect: str) -> tuple[list[float], list[float]]:
        """The values of one aspect, and people's ratings."""
        return [values[aspect] for values in self.values], [row.facts["human"][aspect] for row in self.rows]

    def _dialogues(self) -> list[str]:
        return [str(row.facts["dialogue"]) for row in self.rows]

    def replicates(self, coefficient: Coefficient, aspects: Sequence[str]) -> tuple[float, list[float]]:
        """The mean correlation, and that without each dialogue; nan where it is undefined."""
        from evalsuite.stats.rank_intervals import rank_replicates

        return rank_replicates([self._pairs(one) for one in aspects], self._dialogues(), coefficient)


def _with_interval(value: float, interval: Interval, n: int) -> Estimate:
    if math.isnan(interval.low):
        return Estimate(value, n=n)
    return Estimate(value, interval.low, interval.high, n)
