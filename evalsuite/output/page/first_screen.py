"""A run's verdict and metrics as a few lines of HTML, which a notebook shows below a cell."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from evalsuite.decisions.verdict import Status
from evalsuite.output.reports.markdown import decision_line, plain_text
from evalsuite.output.reports.section import Table

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.output.reports.write import RunReport


def first_screen(report: RunReport, file: Path) -> str:
    """Make the HTML. It has no script, and everything that a model may have said is escaped.

    Args:
        report: the run's.
        file: the report on disk, to which a line points.
    """
    verdict = report.verdict
    colour = "green" if verdict.status is Status.GOOD else "red"
    lines = [f'<p><strong style="color:{colour}">{escape(verdict.headline)}</strong></p>']
    decided = [*map(decision_line, verdict.decisions), *verdict.reasons, *verdict.remarks]
    if decided:
        lines.append(f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in decided)}</ul>")
    benches = report.run.benchmarks.items()
    shown = {bench.benchmark.title if bench.benchmark else name for name, bench in benches} | {"Errors"}
    for section in report.sections:
        tables = [block for block in section.blocks if isinstance(block, Table) and not block.folded]
        if section.title in shown and tables:
            lines.append(_render(tables[0]))
    lines.append(f"<p>{escape(str(file))}</p>")
    return "\n".join(lines)


def _render(table: Table) -> str:
    head = "".join(f"<th>{escape(column.title)}</th>" for column in table.columns)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{escape(plain_text(cell, column))}</td>"
            for cell, column in zip(row, table.columns, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
