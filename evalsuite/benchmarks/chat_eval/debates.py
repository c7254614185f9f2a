"""A few whole judgements to read: those in which judge and people disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.output.reports.judges.log_text import write_log
from evalsuite.output.reports.section import Passage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.results.tally import Row, RunView, Tally

SHOWN = 2
"""Judgements shown for each judge; all of them are in records.jsonl."""


def debates(name: str, tally: Tally, view: RunView) -> Iterator[Passage]:
    """The first comparisons in which the judge disagrees with people, each with all that was said."""
    compared = tally.where(lambda row: row.outcome != "error" and "human" in row.facts, task="pairs")
    differing = [row for row in compared if row.facts["verdict"] != row.facts["human"]]
    for row in differing[:SHOWN]:
        yield _passage(name, row, view)


def _passage(name: str, row: Row, view: RunView) -> Passage:
    record = view.read(row.case)
    verdict = row.facts["verdict"] or "no verdict"
    title = f"{name}, {row.sample}: the judge says {verdict}, people say {row.facts['human']}"
    log = record.transcript.events if record.transcript else ()
    return Passage(title, write_log(log), folded=True, whole=True)
