"""How far a judge can be trusted: tables for any benchmark whose cases a judge has scored.

Each reads the facts that judges leave in records (`verdict`, `ballots`, `lengths`, `systems`, `human`) and makes blocks
for a benchmark's report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evalsuite.output.reports.judges.agreement import agreement_table, people_table
from evalsuite.output.reports.judges.ballots import read_ballots
from evalsuite.output.reports.judges.bias import bias_table
from evalsuite.output.reports.judges.estimates import Corrected, corrected_mean, corrected_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.output.reports.section import Table
    from evalsuite.results.tally import RunView, Tally

__all__ = ["Corrected", "agreement_table", "bias_table", "corrected_mean", "corrected_table", "judge_blocks"]


def judge_blocks(views: Sequence[RunView]) -> list[Table]:
    """Make tables of biases and agreement for all judges that left ballots, for a report of any benchmark."""
    judges = [(_name(view, prefix), view.tally, prefix) for view in views for prefix in prefixes(view.tally)]
    tables: list[Table | None] = []
    for name, tally, prefix in judges:
        if any(case.verdict is not None for case in read_ballots(tally, prefix)):
            tables.append(bias_table(f"Biases of {name}", [(name, tally)], prefix))
        tables.append(agreement_table(f"Agreement within {name}", [(name, tally)], prefix))
    tables.append(people_table(views))
    return [table for table in tables if table is not None]


def prefixes(tally: Tally) -> list[str]:
    """List the prefixes of the judges that left ballots, in order; a judge without a prefix has the empty one."""
    plain = {""} if any(row.facts.get("ballots") for row in tally) else set()
    nested = {
        name
        for row in tally
        for name, fact in row.facts.items()
        if isinstance(fact, Mapping) and fact.get("ballots")
    }
    return sorted(plain | nested)


def _name(view: RunView, prefix: str) -> str:
    judge = f"{view.judge or 'the judge'}, {prefix.rstrip('_')}" if prefix else view.judge or "the judge"
    return f"{judge} ({view.label})"
