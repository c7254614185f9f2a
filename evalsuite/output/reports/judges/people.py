"""Do the judges of a run agree with people, on the cases whose samples bring people's labels?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.output.reports.section import Column, Table
from evalsuite.results.judge_labels import (
    corrected,
    judge_accuracy,
    judge_kappa,
    judge_rho,
    labelled,
    labels_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import RunView

NOTE = (
    "Of cases whose sample's metadata has people's label under `human`. Accuracy and kappa are of verdicts, rho is of "
    "scores. Gates may demand them: `judge.kappa >= 0.6 @95%`. The corrected mean is by prediction-powered inference; "
    "it wants 30 labels of a random part of the cases, and as many cases without."
)


def people_table(views: Sequence[RunView]) -> Table | None:
    """One row for each run and labelled score; None where nobody has labelled anything."""
    rows: list[tuple[Cell, ...]] = []
    for view in views:
        for score in dict.fromkeys(label.score for label in labelled(view.tally)):
            cases = labels_of(view.tally, score)
            agreement = (judge_accuracy(cases), judge_kappa(cases), judge_rho(cases))
            name = f"{view.judge or 'the judge'} ({view.label})"
            rows.append(
                (name, score, *agreement, len(cases), view.tally.mean(score), corrected(score, view.tally))
            )
    columns = (
        Column("Judge"),
        Column("Score"),
        Column("Accuracy (%)", "percent"),
        Column("Kappa", "number", 2),
        Column("Spearman's rho", "number", 2),
        Column("Labels", "count"),
        Column("Mean, all cases", "number", 3),
        Column("Corrected mean", "number", 3),
    )
    return Table("Judges against people", columns, rows, NOTE) if rows else None
