"""Outputs to read: of each format the worst and the best one, beside what was wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.prompts import FORMAT_NAMES
from evalsuite.reporting.section import Passage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.reporting.table_rows import LabelledCases
    from evalsuite.results.tally import Row
    from evalsuite.types import Record

RANKED_BY = "h_content"


def outputs_to_read(line: LabelledCases) -> Iterator[Passage]:
    """The outputs of lowest and highest content H-Score, of several with one score the first; folded."""
    for written, name in FORMAT_NAMES.items():
        rows = line.tally.where(format=written).scored(RANKED_BY).rows
        if not rows:
            continue
        worst = min(rows, key=lambda row: row.scores[RANKED_BY])
        best = max(rows, key=lambda row: row.scores[RANKED_BY])
        yield _passage(f"{line.label}, {name}: the worst output", worst, line)
        if best is not worst:
            yield _passage(f"{line.label}, {name}: the best output", best, line)


def _passage(title: str, row: Row, line: LabelledCases) -> Passage:
    heading = (
        f"{title}, {row.sample} (content {row.scores[RANKED_BY]:.3f}, format {row.scores['h_format']:.3f})"
    )
    return Passage(heading, _both(line.view.read(row.case)), folded=True)


def _both(record: Record) -> str:
    said = record.transcript.answer.strip() if record.transcript else ""
    return f"WANTED\n\n{record.target}\n\nANSWERED\n\n{said or '(nothing)'}"
