"""Outputs to read: of each format the worst and the best one, beside what was wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.prompts import FORMAT_NAMES
from evalsuite.benchmarks.struc_bench.scoring import FORM
from evalsuite.output.reports.section import Passage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.core.types import Record
    from evalsuite.output.reports.table_rows import LabelledCases
    from evalsuite.results.tally import Row

RANKED_BY = "table_score"


def outputs_to_read(line: LabelledCases) -> Iterator[Passage]:
    """The outputs with the lowest and the highest table score (of equal ones the first), folded."""
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
        f"{title}, {row.sample} (table score {row.scores[RANKED_BY]:.3f}: content "
        f"{row.scores['table_content']:.3f}, form {row.scores['table_form']:.3f})"
    )
    return Passage(heading, _both(line.view.read(row.case)) + _checklist(row), folded=True)


def _checklist(row: Row) -> str:
    lines = (f"{'[x]' if fulfilled else '[ ]'} {text}" for _, text, fulfilled in row.facts.get(FORM, ()))
    return "\n\nFORM\n\n" + "\n".join(lines)


def _both(record: Record) -> str:
    answer = record.transcript.answer.strip() if record.transcript else ""
    return f"WANTED\n\n{record.target}\n\nANSWERED\n\n{answer or '(nothing)'}"
