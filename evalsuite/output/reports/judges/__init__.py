"""Show how far a judge can be trusted: tables for any benchmark whose cases a judge has scored.

Each function reads the facts that judges leave in records (`verdict`, `ballots`, `lengths`, `systems`,
`human`) and makes blocks for a benchmark's report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.output.reports.judges.agreement import agreement_table, people_table
from evalsuite.output.reports.judges.ballots import bias_table, read_ballots
from evalsuite.output.reports.judges.debates import debate_table
from evalsuite.output.reports.judges.estimates import Corrected, corrected_mean, corrected_table
from evalsuite.output.reports.section import Column, Table
from evalsuite.results.judge_labels import scores_by_signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import RunView, Tally


__all__ = ["Corrected", "agreement_table", "bias_table", "corrected_mean", "corrected_table", "judge_blocks"]


def judge_blocks(views: Sequence[RunView]) -> list[Table]:
    """Make tables of bias and agreement for all judges with ballots, for any benchmark's report."""
    judges = [(_name(view, prefix), view.tally, prefix) for view in views for prefix in prefixes(view.tally)]
    tables: list[Table | None] = []
    for name, tally, prefix in judges:
        if any(case.verdict is not None for case in read_ballots(tally, prefix)):
            tables.append(bias_table(f"Biases of {name}", [(name, tally)], prefix))
        tables.append(debate_table(f"Debate on demand of {name}", tally, prefix))
        tables.append(agreement_table(f"Agreement within {name}", [(name, tally)], prefix))
    tables.append(people_table(views))
    return [table for table in tables if table is not None]


def prefixes(tally: Tally) -> list[str]:
    """List the prefixes of judges with ballots, in order; a judge without a prefix has the empty prefix."""
    plain = {""} if any(row.facts.get("ballots") for row in tally) else set()
    nested = {
        name for row in tally for name, fact in row.facts.items() if isinstance(fact, Mapping) and fact.get("ballots")
    }
    return sorted(plain | nested)


def _name(view: RunView, prefix: str) -> str:
    judge = f"{view.judge or 'the judge'}, {prefix.rstrip('_')}" if prefix else view.judge or "the judge"
    return f"{judge} ({view.label})"


SIGNATURES_NOTE = (
    "A signature changes with the prompts, the scale, the parameters and the judge's model: scores under different "
    "signatures should not be compared."
)
LITTLE_NOTE = " Made of little: the judge gave most of the probability to something other than a score."
SIGNATURES_COLUMNS = (Column("Run"), Column("Mode"), Column("Scores"), Column("Signature"), Column("Cases", "count"))
LITTLE_COLUMN = Column("Made of little (%)", "percent")


@dataclass
class _Signed:
    """The cases whose scores have the same signature."""

    modes: dict[str, None] = field(default_factory=dict)  # The cases' modes, in order of first appearance.
    scores: dict[str, None] = field(default_factory=dict)  # The scores' names, in the same order.
    cases: int = 0  # Number of cases.
    # Per case and judge with expected values: whether the scores behind one of these values have a low total
    # probability.
    little: list[bool] = field(default_factory=list)

    @property
    def share(self) -> float | None:
        """The share of cases whose expected values are based on a low probability; None if no case has any."""
        return sum(self.little) / len(self.little) if self.little else None


def signatures_table(views: Sequence[RunView]) -> Table | None:
    """Make one row per run and signature, with its scores and cases; None if no score is judged."""
    signed = [(view.label, *item) for view in views for item in _group(view.tally).items()]
    if not signed:
        return None
    rows: list[tuple[Cell, ...]] = [
        (label, ", ".join(cases.modes), ", ".join(cases.scores), signature, cases.cases, cases.share)
        for label, signature, cases in signed
    ]
    weighted = any(cases.little for _, _, cases in signed)
    shown = {"Mode": any(cases.modes for _, _, cases in signed), "Made of little (%)": weighted}
    columns = (*SIGNATURES_COLUMNS, LITTLE_COLUMN)
    kept = [at for at, column in enumerate(columns) if shown.get(column.title, True)]
    return Table(
        "Signatures of judged scores",
        [columns[at] for at in kept],
        [tuple(row[at] for at in kept) for row in rows],
        SIGNATURES_NOTE + LITTLE_NOTE if weighted else SIGNATURES_NOTE,
    )


def _group(tally: Tally) -> dict[str, _Signed]:
    signed: dict[str, _Signed] = {}
    for row in tally:
        for signature, scores in scores_by_signature(row.facts).items():
            cases = signed.setdefault(signature, _Signed())
            cases.modes |= dict.fromkeys([row.tags["mode"]] if "mode" in row.tags else [])
            cases.scores |= dict.fromkeys(scores)
            cases.cases += 1
            cases.little += _little(row.facts, signature, scores)
    return dict(sorted(signed.items(), key=lambda item: (*item[1].scores, *item[1].modes, item[0])))


def _little(facts: Mapping[str, Any], signature: str, scores: Sequence[str]) -> Iterator[bool]:
    """Yield, for each judge with weighted scores, whether any of its expected scores has a low total probability."""
    if not signature.startswith("weighted|"):
        return
    for prefix, part in (("", facts), *facts.items()):
        weights = part.get("weights") if isinstance(part, Mapping) else None
        if weights and scores[0].startswith(prefix):
            yield any(weight.get("little") for weight in weights.values())
