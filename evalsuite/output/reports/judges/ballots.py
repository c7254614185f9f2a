"""Ballots read back from a tally's facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.results.tally import Row, Tally


@dataclass(frozen=True, slots=True)
class JudgeVote:
    """One ballot.

    Attributes:
        judge: the debater, or which of several repeats.
        model: the model that spoke.
        swapped: whether the second answer was shown first.
        verdict: about the answers in their own order; None where one answer was scored.
        scores: by aspect, or by place.
    """

    judge: str
    model: str
    swapped: bool
    verdict: str | None
    scores: Mapping[str, float]

    @property
    def first_shown(self) -> str:
        """The answer that stood first."""
        return "second" if self.swapped else "first"


@dataclass(frozen=True, slots=True)
class Judged:
    """One case that a judge has judged.

    Attributes:
        case: its id.
        sample: its sample, which epochs share.
        epoch: from 1.
        verdict: the result of a comparison, else None.
        votes: the ballots behind it.
        facts: all that was said of it: `lengths`, `systems`, `human`.
    """

    case: str
    sample: str
    epoch: int
    verdict: str | None
    votes: tuple[JudgeVote, ...]
    facts: Mapping[str, Any]


def judged(tally: Tally, prefix: str = "") -> list[Judged]:
    """The judged cases, in order; those without a usable judgement are left out.

    Args:
        tally: all cases.
        prefix: of the judge's scores, where a case has several judges.
    """
    rows = [
        (row, row.facts.get(prefix, {}) if prefix else row.facts) for row in tally if row.outcome != "error"
    ]
    return [_judged(row, facts) for row, facts in rows if facts.get("ballots")]


def _judged(row: Row, facts: Mapping[str, Any]) -> Judged:
    votes = tuple(JudgeVote(**ballot) for ballot in facts["ballots"])
    return Judged(row.case, row.sample, row.epoch, facts["verdict"], votes, facts)
