"""The cases that somebody who reads of a missed gate wants to see first, each as its block."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from evalsuite.decisions.measured import score_of, select
from evalsuite.output.reports.case_block import baseline_line, case_block

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.core.types import Outcome
    from evalsuite.decisions.gates import GateDecision
    from evalsuite.decisions.verdict import Verdict
    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Row

OF_ONE_GATE = 3
"""Cases shown behind one missed gate."""

LONGEST_TEXT = 400
"""Characters of each text in a block."""


def cases_behind(decision: GateDecision, run: Run) -> list[str]:
    """The ids of the worst cases that a gate looks at: those below their threshold, else the lowest scores."""
    gate = decision.gate
    metric = decision.subject.rpartition(".")[2] if gate.metric == "*" else gate.metric
    rows = [
        row
        for name, bench in run.benchmarks.items()
        if gate.covers(name) and decision.subject.startswith((f"{name}.", f"{name}["))
        for row in select(bench.tally, gate.tag, gate.value)
    ]

    def worst_first(row: Row) -> tuple[float, str]:
        score = score_of(row, metric) or 0.0
        return (score if gate.wants_more else -score), row.case

    failed = [row for row in rows if row.outcome == "failed"]
    measured = failed or [row for row in rows if score_of(row, metric) is not None]
    return [row.case for row in sorted(measured, key=worst_first)[:OF_ONE_GATE]]


def cases_to_show(run: Run, verdict: Verdict, most: int) -> list[str]:
    """The ids of cases behind missed gates, then of failures that no gate covers, then of errors."""
    missed = [decision for decision in verdict.decisions if decision.verdict != "met"]
    behind = [case for decision in missed for case in cases_behind(decision, run)]
    uncovered = chain.from_iterable(_uncovered(run, outcome) for outcome in ("failed", "error"))
    # Each case behind a gate may be among the others, too.
    return list(dict.fromkeys([*behind, *islice(uncovered, most + len(behind))]))[:most]


def _uncovered(run: Run, outcome: Outcome) -> Iterator[str]:
    """The ids of cases with this outcome that nothing excuses."""
    return (row.case for row in run.all_rows() if row.outcome == outcome and row.excused is None)


def blocks(cases: Sequence[str], run: Run, baseline: Run | None) -> Iterator[tuple[str, str]]:
    """Name, outcome and block of each case, with what the baseline answered."""
    for case in cases:
        record = run.read(case)
        lines = [case_block(record, most=LONGEST_TEXT)]
        if baseline is not None and case in baseline.offsets:
            lines.append(baseline_line(baseline.read(case), most=LONGEST_TEXT))
        yield f"{case.rpartition('::')[2]}: {OUTCOMES[record.outcome]}", "\n".join(lines)


OUTCOMES = {"passed": "passed", "failed": "below threshold", "error": "error", "skipped": "skipped"}
