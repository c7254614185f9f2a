"""Show one case as plain text: question, answer, target, scores with their reasons, and the baseline's answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from evalsuite.core.errors import escape_for_terminal, shorten_with_note, write_number
from evalsuite.results.judge_labels import group_scores_by_signature

if TYPE_CHECKING:
    from evalsuite.core.types import Record
    from evalsuite.decisions.gates import GateDecision
    from evalsuite.decisions.verdict import Verdict
    from evalsuite.results.runs import Run

MOST = 1000  # Maximum characters of each text; the command `evalsuite report case --full` prints all of it.
INDENT = 10
SHOWN_SCORE = re.compile(r"^score +(\S+)", re.MULTILINE)
"""Matches the name of each score that a case's block shows; a worker sends nothing but the block's text."""


def format_case_block(record: Record, *, max_length: int | None = MOST, scores: Collection[str] = ()) -> str:
    """Write one case as plain text that is safe to print on a terminal.

    Args:
        max_length: the maximum number of characters of each text; None shows all of each text.
        scores: names of scores to show in addition to those with a reason. If it is empty, all scores are shown.
    """
    return "\n".join(
        _format_labelled_text(label, text, max_length) for label, text in _list_labelled_texts(record, scores)
    )


def add_baseline_answer(block: str, record: Record, *, max_length: int | None = MOST) -> str:
    """Append the baseline's answer to a case's block, with the baseline's values of the scores that the block shows."""
    answer = record.transcript.answer if record.transcript else record.error or "no answer"
    shown = frozenset(SHOWN_SCORE.findall(block))
    values = ", ".join(f"{name} {write_number(value, '.4f')}" for name, value in record.scores.items() if name in shown)
    line = _format_labelled_text("baseline", f"{answer}\n({values or record.outcome})", max_length)
    return f"{block}\n{line}"


def _list_labelled_texts(record: Record, scores: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each entry in a case's block."""
    yield "question", record.input
    if record.transcript is not None:
        yield "answer", record.transcript.answer or "(empty)"
    if record.target is not None:
        targets = record.target if isinstance(record.target, list | tuple) else [record.target]
        yield "target", " | ".join(map(str, targets))
    shown = [name for name in record.scores if not scores or name in scores or name in record.notes]
    for name in shown:
        reason = f" - {record.notes[name]}" if record.notes.get(name) else ""
        yield "score", f"{name} {write_number(record.scores[name], '.4f')}{reason}"
    if more := len(record.scores) - len(shown):
        yield "scores", f"{more} more with -v, on the page, and by `evalsuite report case`"
    for signature, names in group_scores_by_signature(record.facts).items():
        yield "judged", f"{', '.join(names)} by {signature}"
    if record.outcome == "error":
        yield "error", f"{record.cause}: {record.error}"


def _format_labelled_text(label: str, text: str, max_length: int | None) -> str:
    if max_length is not None and len(text) > max_length:
        text = shorten_with_note(text, max_length)
    lines = escape_for_terminal(text).splitlines() or [""]
    return "\n".join(f"{label if at == 0 else '':{INDENT}}{line}".rstrip() for at, line in enumerate(lines))


MOST_CASES_PER_GATE = 3  # Maximum number of cases that are shown for one missed gate.
LONGEST_TEXT = 400  # Maximum characters of each text in a block.


def list_worst_cases(decision: GateDecision, run: Run) -> list[str]:
    """List a gate's worst cases: the failed cases or, if none failed, the cases with the worst scores."""
    from evalsuite.decisions.measured import get_score, select_cases
    from evalsuite.decisions.quarantine import drop_quarantined_cases, read_run_quarantine

    gate = decision.gate
    metric = decision.subject.rpartition(".")[2] if gate.metric == "*" else gate.metric
    rows = [
        row
        for name, bench in drop_quarantined_cases(run, read_run_quarantine(run)).benchmarks.items()
        if gate.covers_benchmark(name) and decision.subject.startswith((f"{name}.", f"{name}["))
        for row in select_cases(bench.tally, gate.tag, gate.value)
    ]

    failed = [row for row in rows if row.outcome == "failed"]
    measured = failed or [row for row in rows if get_score(row, metric) is not None]
    sign = 1 if gate.is_higher_better else -1
    ranked = sorted(measured, key=lambda row: (sign * (get_score(row, metric) or 0.0), row.case))
    return [row.case for row in ranked[:MOST_CASES_PER_GATE]]


def list_cases_to_show(run: Run, verdict: Verdict, max_cases: int) -> list[str]:
    """List the worst cases of missed gates, then failures that no gate covers, then errors."""
    missed = [decision for decision in verdict.decisions if decision.verdict != "met"]
    behind = [case for decision in missed for case in list_worst_cases(decision, run)]
    rows = (row for outcome in ("failed", "error") for row in run.all_rows() if row.outcome == outcome)
    uncovered = (row.case for row in rows if row.excused is None)
    # Remove duplicates: a missed gate's worst case may also be an uncovered failure.
    return list(dict.fromkeys([*behind, *islice(uncovered, max_cases + len(behind))]))[:max_cases]


def format_case_blocks(
    cases: Iterable[str], run: Run, baseline: Run | None, metrics: Collection[str] | None
) -> Iterator[tuple[str, str]]:
    """Yield for each case a heading (name and outcome), and a block of text that includes the baseline's answer.

    Args:
        metrics: names of scores to show in addition to each benchmark's main metric. None shows all scores.
    """
    for case in cases:
        record = run.read(case)
        main = run.benchmarks[record.benchmark].primary
        scores = {main, *metrics} if main and metrics is not None else ()
        block = format_case_block(record, max_length=LONGEST_TEXT, scores=scores)
        if baseline is not None and case in baseline.offsets:
            block = add_baseline_answer(block, baseline.read(case), max_length=LONGEST_TEXT)
        yield f"{case.rpartition('::')[2]}: {OUTCOMES[record.outcome]}", block


OUTCOMES = {"passed": "passed", "failed": "below threshold", "error": "error", "skipped": "skipped"}
