"""What a mean would be if people had judged everything, from few labels by people and many by a judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.output.reports.judges.shares import mean_of_scores
from evalsuite.output.reports.section import Column, Table
from evalsuite.results.judge_labels import FEWEST
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Corrected:
    """Three estimates of one mean, and what people said of everything where that is known.

    Attributes:
        question: the mean of what.
        naive: of the judge's scores of everything, as if they were people's.
        people_only: of the labelled cases alone.
        corrected: prediction-powered, from both.
        tuning: the weight of the judge's scores, from 0 to 1.
        labelled: number of labels.
        truth: the mean of people's labels of everything; None where it is not known.
    """

    question: str
    naive: Estimate
    people_only: Estimate
    corrected: Estimate
    tuning: float
    labelled: int
    truth: float | None = None


def corrected_mean(
    question: str,
    scores: Sequence[tuple[float | None, float]],
    truth: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> Corrected | None:
    """The mean by prediction-powered inference (see `evalsuite.stats.ppi_mean`) beside the other two.

    Args:
        question: the mean of what.
        scores: people's score, or None where they were not asked, and the judge's, one pair a case; those
            with people's score must be a random part of all.
        truth: the mean of people's scores of everything, where it is known.
        bounds: the scale's ends, beyond which there are no scores; see `ppi_mean` for None.

    Returns:
        None with fewer than 30 labels, or as few cases without.
    """
    from evalsuite.stats.prediction_powered import ppi_mean

    labels = [(people, judge) for people, judge in scores if people is not None]
    rest = [judge for people, judge in scores if people is None]
    if min(len(labels), len(rest)) < FEWEST:
        return None
    human, machine = ([pair[at] for pair in labels] for at in range(2))
    powered = ppi_mean(human, machine, rest, bounds=bounds)
    everything = [judge for _, judge in scores]
    return Corrected(
        question,
        mean_of_scores(everything),
        mean_of_scores(human),
        Estimate(powered.estimate, powered.low, powered.high, len(scores)),
        powered.tuning,
        len(labels),
        truth,
    )


def corrected_table(title: str, means: Sequence[tuple[str, Corrected]]) -> Table:
    """One row for each judge and question."""
    columns = (
        Column("Judge"),
        Column("Mean of"),
        Column("Judge alone", "number", 3),
        Column("People alone", "number", 3),
        Column("Corrected", "number", 3),
        Column("Weight of the judge", "number", 2),
        Column("Labels", "count"),
        Column("People, all", "number", 3),
    )
    rows = [
        (judge, one.question, one.naive, one.people_only, one.corrected, one.tuning, one.labelled, one.truth)
        for judge, one in means
    ]
    return Table(title, columns, rows, NOTE)


NOTE = (
    "Judge alone takes the judge's scores for people's: its interval is narrow and may well be around the "
    "wrong number. Corrected is prediction-powered inference with power tuning (PPI++), valid however wrong "
    "the judge is; at a weight of 0 it is people alone, but with the method's normal interval in place of "
    "Student's. People, all: what both estimate, known here because everything was labelled."
)
