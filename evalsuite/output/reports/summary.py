"""`summary.json`: the report's numbers, unrounded, for programs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evalsuite.output.reports.section import Cell, Table
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalsuite.decisions.baseline_result import Against
    from evalsuite.decisions.measured import Measured
    from evalsuite.decisions.verdict import Verdict
    from evalsuite.output.reports.section import Section
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Tally


VERSION = 1
"""Of the form of `summary.json`, which `schemas/summary.json` describes."""


def summarise(
    run: Run, verdict: Verdict, measured: Mapping[str, Measured], sections: Iterable[Section]
) -> dict[str, Any]:
    """The summary as plain data."""
    return {
        "version": VERSION,
        "run": run.folder.name,
        "status": int(verdict.status),
        "verdict": verdict.headline,
        "verdict_id": verdict.id,
        "reasons": list(verdict.reasons),
        "model": run.info.get("model"),
        "judge": run.info.get("settings", {}).get("judge_model"),
        "shortened": verdict.shortened,
        "remarks": verdict.remarks,
        "baselines": [_against(against) for against in verdict.against],
        "cases": dict(sorted(verdict.counts.items())),
        "usage": run.info.get("usage"),
        "seconds": run.info.get("seconds"),
        "gates": [
            {
                "gate": decision.gate.text,
                "subject": decision.subject,
                "verdict": decision.verdict,
                "reason": decision.reason,
                "found": plain_cell(decision.estimate),
            }
            for decision in verdict.decisions
        ],
        "benchmarks": {
            name: {"primary": run.benchmarks[name].primary, **_benchmark(metrics)}
            for name, metrics in measured.items()
        },
        "tables": plain_tables(sections),
    }


def plain_tables(sections: Iterable[Section]) -> list[dict[str, Any]]:
    """All tables of a report."""
    return [
        {"section": section.title, "title": block.title, **plain_table(block)}
        for section in sections
        for block in section.blocks
        if isinstance(block, Table)
    ]


def _against(against: Against) -> dict[str, Any]:
    return {
        "baseline": against.name,
        "margin": against.margin,
        "metrics": [
            {"metric": str(subject), "verdict": verdict, **{k: plain_cell(v) for k, v in asdict(one).items()}}
            for subject, one, verdict in against.found
        ],
        "left_out": {side: list(cases) for side, cases in against.left_out.items()},
    }


def _benchmark(measured: Measured) -> dict[str, Any]:
    tags = sorted({tag for row in measured.tally for tag in row.tags})
    metrics = _metrics(measured, measured.tally)
    # Read before the tags: a derived metric keeps the failure of its last computation alone.
    failed = {metric: reason for metric in metrics if (reason := measured.failure(metric))}
    return {
        "cases": len(measured.tally),
        "errors": measured.tally.count("error"),
        "metrics": metrics,
        **({"failed_metrics": failed} if failed else {}),
        "tags": {
            tag: {value: _metrics(measured, cases) for value, cases in groups.items()}
            for tag in tags
            # A tag with a value for almost every case is a name, not a group.
            if len(groups := measured.tally.groups(tag)) <= max(2, len(measured.tally) // 2)
        },
    }


def _metrics(measured: Measured, cases: Tally) -> dict[str, Any]:
    return {metric: plain_cell(measured.estimate(metric, cases)) for metric in measured.metrics()}


def plain_table(table: Table) -> dict[str, Any]:
    """A table's headings and cells."""
    return {
        "columns": [column.title for column in table.columns],
        "rows": [[plain_cell(cell) for cell in row] for row in table.rows],
    }


def plain_cell(cell: Cell) -> Any:
    """A cell; an estimate as an object; a number that JSON has no word for, such as infinity, as None."""
    if isinstance(cell, Estimate):
        parts = {"value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n}
        return {name: plain_cell(value) for name, value in parts.items()}
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
