"""What there is to say of the judges of any cases: for reports that know nothing else of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evalsuite.output.reports.judges.agreement import agreement_table
from evalsuite.output.reports.judges.ballots import judged
from evalsuite.output.reports.judges.bias import bias_table
from evalsuite.output.reports.judges.people import people_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.output.reports.section import Table
    from evalsuite.results.tally import RunView, Tally


def judge_blocks(views: Sequence[RunView]) -> list[Table]:
    """Biases in comparisons and agreement among judges, wherever cases have left ballots."""
    judges = [(_name(view, prefix), view.tally, prefix) for view in views for prefix in prefixes(view.tally)]
    tables: list[Table | None] = []
    for name, tally, prefix in judges:
        if any(case.verdict is not None for case in judged(tally, prefix)):
            tables.append(bias_table(f"Biases of {name}", [(name, tally)], prefix))
        tables.append(agreement_table(f"Agreement within {name}", [(name, tally)], prefix))
    tables.append(people_table(views))
    return [table for table in tables if table is not None]


def prefixes(tally: Tally) -> list[str]:
    """The prefixes of the judges that left ballots, none being the empty one; in order."""
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
