"""The comparison with a baseline, as a section of the report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.core.counted_nouns import number_of
from evalsuite.output.reports.section import Cell, Column, Passage, Section, Table
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from evalsuite.decisions.baseline_result import Against

MOST_SLICES = 5
"""Slices shown, the greatest losses first."""

MOST_FLIPS = 12
"""Cases shown whose score changed, the greatest losses first."""


def baseline_section(against: Against) -> Section:
    """The comparison as a section of the report."""
    words = {"no worse": "✅ no worse", "worse": "❌ worse", "undecided": "undecided"}
    rows: list[list[Cell]] = [
        [
            words[verdict],
            str(subject),
            comparison.n,
            comparison.baseline,
            comparison.candidate,
            Estimate(comparison.difference, comparison.low, comparison.high, comparison.n),
            comparison.pvalue,
            comparison.detectable if math.isfinite(comparison.detectable) else None,
        ]
        for subject, comparison, verdict in against.found
    ]
    columns = [
        Column("verdict"),
        Column("metric"),
        Column("cases", "count"),
        Column("baseline", "number", 4),
        Column("now", "number", 4),
        Column("difference with 95% interval", "number", 4),
        Column("p", "pvalue"),
        Column("could have shown (power 80%)", "number", 4),
    ]
    note = (
        f"Paired by question, epochs averaged. `no worse`: a loss of {against.margin:g} of the metric's range or "
        "more is excluded. `worse`: a loss is shown. `undecided`: neither; more cases would tell. Corrected for the "
        "number of rows, as far as they differ. " + _left_out(against)
    )
    shown = Table("", columns, rows, note.strip()) if rows else Passage("", note.strip())
    return Section(f"Against {against.name}", [shown, *_slices(against), *_flips(against)])


def _left_out(against: Against) -> str:
    parts = [
        f"Left out: {number_of(len(cases), 'case')} {side} ({', '.join(cases[:5])}{', ...' if len(cases) > 5 else ''})."
        for side, cases in against.left_out.items()
        if cases
    ]
    parts += [f"Not compared: {subject}; {reason}." for subject, reason in against.not_compared.items()]
    parts += [f"{line}." for line in against.remarks()]
    return " ".join(parts)


def _slices(against: Against) -> list[Table]:
    """The parts of the benchmarks that lost most; nothing where none lost."""
    lost = [loss_slice for loss_slice in against.slices if loss_slice.loss > 0]
    if not lost:
        return []
    rows: list[list[Cell]] = [
        [
            f"{tag_slice.tag}={tag_slice.value}",
            str(tag_slice.subject),
            tag_slice.n,
            tag_slice.before,
            tag_slice.after,
            tag_slice.pvalue,
        ]
        for tag_slice in lost[:MOST_SLICES]
    ]
    columns = [
        Column("slice"),
        Column("metric"),
        Column("questions", "count"),
        Column("baseline", "number", 3),
        Column("now", "number", 3),
        Column("p, corrected", "pvalue"),
    ]
    note = f"Corrected by Holm's method for all {len(against.slices)} slices that were looked at."
    return [Table("Slices that lost most", columns, rows, note)]


def _flips(against: Against) -> list[Table]:
    if not against.flips:
        return []
    rows: list[list[Cell]] = [
        [flip.case, str(flip.subject), flip.before, flip.after] for flip in against.flips[:MOST_FLIPS]
    ]
    columns = [Column("case"), Column("metric"), Column("baseline", "number", 3), Column("now", "number", 3)]
    more = len(against.flips) - len(rows)
    note = f"{more} more changed." if more > 0 else ""
    return [Table("Cases that changed, the greatest losses first", columns, rows, note)]
