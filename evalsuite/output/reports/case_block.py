"""One case as a block of plain text: question, answer, target, scores with their reasons, the baseline's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.core.errors import for_terminal
from evalsuite.core.shortening import beginning_and_length
from evalsuite.output.reports.markdown import number
from evalsuite.output.reports.section import Column
from evalsuite.results.judge_labels import scores_by_signature

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.core.types import Record

MOST = 1000
"""Characters of each text; `evalsuite report case --full` prints all of them."""

INDENT = 10

NUMBER = Column("", "number", 4)


def case_block(record: Record, *, most: int | None = MOST) -> str:
    """The block of one case, safe to print on a terminal.

    Args:
        record: of the case.
        most: characters of each text at most; None for all.
    """
    return "\n".join(_labelled(label, text, most) for label, text in _parts(record))


def baseline_line(record: Record, *, most: int | None = MOST) -> str:
    """What the baseline answered to the same case, as a further line of its block."""
    answer = record.transcript.answer if record.transcript else record.error or "no answer"
    scores = ", ".join(f"{name} {number(value, NUMBER)}" for name, value in record.scores.items())
    return _labelled("baseline", f"{answer}\n({scores or record.outcome})", most)


def _parts(record: Record) -> Iterator[tuple[str, str]]:
    yield "question", record.input
    if record.transcript is not None:
        yield "answer", record.transcript.answer or "(empty)"
    if record.target is not None:
        targets = record.target if isinstance(record.target, list | tuple) else [record.target]
        yield "target", " | ".join(map(str, targets))
    for name, value in record.scores.items():
        reason = record.notes.get(name)
        yield "score", f"{name} {number(value, NUMBER)}{f' - {reason}' if reason else ''}"
    for signature, names in scores_by_signature(record.facts).items():
        yield "judged", f"{', '.join(names)} by {signature}"
    if record.outcome == "error":
        yield "error", f"{record.cause}: {record.error}"


def _labelled(label: str, text: str, most: int | None) -> str:
    if most is not None and len(text) > most:
        text = beginning_and_length(text, most)
    lines = for_terminal(text).splitlines() or [""]
    return "\n".join(f"{label if at == 0 else '':{INDENT}}{line}".rstrip() for at, line in enumerate(lines))
