"""Repeated attempts: how often one of several succeeds, and how often all of them do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalsuite.output.reports.section import Column, Table
from evalsuite.results.built_in import built_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import RunView, Tally

MOST = 5
"""Attempts up to which there is a column each."""


def attempts_table(views: Sequence[RunView]) -> Table | None:
    """pass@k and pass^k with intervals, for every k that the epochs allow; None where nothing was repeated."""
    most = min(MOST, max(map(_fewest_attempts, (view.tally for view in views)), default=0))
    if most < 2:
        return None
    kinds = [("at", "@"), ("hat", "^")]
    columns = [Column("run"), Column("pass@1", "percent")]
    columns += [Column(f"pass{sign}{k}", "percent") for _, sign in kinds for k in range(2, most + 1)]
    names = ["pass_at_1", *(f"pass_{kind}_{k}" for kind, _ in kinds for k in range(2, most + 1))]
    rows: list[list[Cell]] = [
        [view.label, *(_measured(name, view.tally) for name in names)] for view in views
    ]
    note = (
        "The chance that one of k attempts at a sample passes its test (pass@k), and that all of them do (pass^k); a "
        "dash where a sample has fewer attempts. Gates can name them: pass_at_2, pass_hat_2."
    )
    return Table("Repeated attempts", columns, rows, note)


def _fewest_attempts(tally: Tally) -> int:
    """The fewest attempts that any sample has."""
    attempts = Counter(row.sample for row in tally.ran())
    return min(attempts.values(), default=0)


def _measured(name: str, tally: Tally) -> Cell:
    metric = built_in(name)
    return metric(tally) if metric else None
