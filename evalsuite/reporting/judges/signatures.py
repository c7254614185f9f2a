"""How judged scores were made: each judge's signature, and expected scores that rest on little probability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalsuite.reporting.section import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.reporting.section import Cell
    from evalsuite.results.tally import RunView, Tally

NOTE = (
    "A signature changes with the prompts, the scale, the parameters and the judge's model: scores under different "
    "signatures should not be compared. Made of little: expected scores of judges that gave most of the probability to "
    "something other than a score."
)


def signatures_table(views: Sequence[RunView]) -> Table | None:
    """One row for each run, judge and signature, with the cases that stand under it; None where there is none."""
    rows: list[tuple[Cell, ...]] = [
        (view.label, name, signature, cases, little)
        for view in views
        for (name, signature), (cases, little) in _counted(view.tally).items()
    ]
    columns = (
        Column("Run"),
        Column("Score"),
        Column("Signature"),
        Column("Cases", "count"),
        Column("Made of little", "percent"),
    )
    return Table("Signatures of judged scores", columns, rows, NOTE) if rows else None


def _counted(tally: Tally) -> dict[tuple[str, str], tuple[int, float | None]]:
    shares: dict[tuple[str, str], list[bool | None]] = {}
    for row in tally:
        for name, facts in _judges(row.facts):
            shares.setdefault((name, str(facts["signature"])), []).append(_is_little(facts))
    return {
        key: (len(flags), None if None in flags else sum(map(bool, flags)) / len(flags))
        for key, flags in sorted(shares.items())
    }


def _judges(facts: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, part in (("", facts), *facts.items()):
        if isinstance(part, Mapping) and part.get("ballots") and part.get("signature"):
            yield name.rstrip("_"), part


def _is_little(facts: Mapping[str, Any]) -> bool | None:
    weights = facts.get("weights")
    return any(weight.get("little") for weight in weights.values()) if weights else None
