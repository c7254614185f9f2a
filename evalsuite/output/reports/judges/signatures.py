"""How judged scores were made: judges' signatures, and expected scores with little probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.output.reports.section import Column, Table
from evalsuite.results.judge_labels import scores_by_signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import RunView, Tally

NOTE = (
    "A signature changes with the prompts, the scale, the parameters and the judge's model: scores under different "
    "signatures should not be compared."
)
LITTLE = " Made of little: expected scores of judges that gave most of the probability to something other than a score."
COLUMNS = (Column("Run"), Column("Mode"), Column("Scores"), Column("Signature"), Column("Cases", "count"))
LITTLE_COLUMN = Column("Made of little (%)", "percent")


@dataclass
class _Signed:
    """The cases under one signature.

    Attributes:
        modes: the cases' modes, in order of first appearance.
        scores: the scores' names, in the same order.
        cases: number of cases.
        little: per case with expected values, whether one of them has little probability.
    """

    modes: dict[str, None] = field(default_factory=dict)
    scores: dict[str, None] = field(default_factory=dict)
    cases: int = 0
    little: list[bool] = field(default_factory=list)

    @property
    def share(self) -> float | None:
        """The share of cases whose expected values have little probability; None without expected values."""
        return sum(self.little) / len(self.little) if self.little else None


def signatures_table(views: Sequence[RunView]) -> Table | None:
    """Make one row per run and signature, with its scores and cases; None without judged scores."""
    signed = [(view.label, *item) for view in views for item in _group(view.tally).items()]
    if not signed:
        return None
    rows: list[tuple[Cell, ...]] = [
        (label, ", ".join(cases.modes), ", ".join(cases.scores), signature, cases.cases, cases.share)
        for label, signature, cases in signed
    ]
    weighted = any(cases.little for _, _, cases in signed)
    shown = {
        "Mode": any(cases.modes for _, _, cases in signed),
        "Made of little (%)": weighted,
    }
    columns = (*COLUMNS, LITTLE_COLUMN)
    kept = [at for at, column in enumerate(columns) if shown.get(column.title, True)]
    return Table(
        "Signatures of judged scores",
        [columns[at] for at in kept],
        [tuple(row[at] for at in kept) for row in rows],
        NOTE + LITTLE if weighted else NOTE,
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
    """Yield, per judge of these scores with weights, whether one of them has little probability."""
    if not signature.startswith("weighted|"):
        return
    for prefix, part in (("", facts), *facts.items()):
        weights = part.get("weights") if isinstance(part, Mapping) else None
        if weights and scores[0].startswith(prefix):
            yield any(weight.get("little") for weight in weights.values())
