"""Judges' ballots and logs, read back from records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalsuite.results.tally import Row, Tally


@dataclass(frozen=True, slots=True)
class JudgeVote:
    """One ballot.

    Attributes:
        judge: the debater, or the number of the repeat.
        model: the judge's model.
        swapped: whether the second answer was shown first.
        verdict: the verdict on the answers in their own order; None if one answer was scored.
        scores: score by aspect, or by place.
    """

    judge: str
    model: str
    swapped: bool
    verdict: str | None
    scores: Mapping[str, float]

    @property
    def first_shown(self) -> str:
        """The answer that was shown first."""
        return "second" if self.swapped else "first"


@dataclass(frozen=True, slots=True)
class Judged:
    """One case that a judge has judged.

    Attributes:
        case: the case's id.
        sample: the sample, which epochs share.
        epoch: the epoch, from 1.
        verdict: the result of a comparison; otherwise None.
        votes: the ballots behind the verdict.
        facts: the judge's facts: `lengths`, `systems`, `human`.
    """

    case: str
    sample: str
    epoch: int
    verdict: str | None
    votes: tuple[JudgeVote, ...]
    facts: Mapping[str, Any]


def read_ballots(tally: Tally, prefix: str = "") -> list[Judged]:
    """Read the judged cases, in order; those without a usable judgement are left out.

    Args:
        tally: all cases.
        prefix: the prefix of the judge's scores, if a case has several judges.
    """
    rows = [
        (row, row.facts.get(prefix, {}) if prefix else row.facts) for row in tally if row.outcome != "error"
    ]
    return [_read_case(row, facts) for row, facts in rows if facts.get("ballots")]


def _read_case(row: Row, facts: Mapping[str, Any]) -> Judged:
    votes = tuple(JudgeVote(**ballot) for ballot in facts["ballots"])
    return Judged(row.case, row.sample, row.epoch, facts["verdict"], votes, facts)


SHOWN_APART = ("kind", "role", "content", "reasoning", "speaker", "turn", "order", "model", "cut_off")


def write_log(log: Sequence[Mapping[str, Any]]) -> str:
    """Write all messages, one paragraph each, which begins with the speaker and the turn.

    Args:
        log: a `Score.log`, or the events of a judge's transcript; further keys of an entry are shown by name.
    """
    return "\n\n".join(
        f"{_write_heading(entry)}\n{_write_message(entry)}".strip() for entry in _show_prompts_once(log)
    )


def _show_prompts_once(log: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Leave out repeated prompts: a judge that is asked twenty times is asked the same."""
    shown: set[tuple[str, str, str]] = set()
    for entry in log:
        if entry.get("role") in ("system", "user"):
            prompt = (str(entry.get("speaker")), str(entry.get("order")), str(entry.get("content")))
            if prompt in shown:
                continue
            shown.add(prompt)
        yield entry


def _write_heading(entry: Mapping[str, Any]) -> str:
    speaker = str(entry.get("speaker", "judge"))
    parts = [
        speaker if entry.get("role") in ("assistant", None) else f"to {speaker}",
        f"turn {entry['turn']}" if entry.get("turn") else "",
        f"order {entry['order']}" if entry.get("order") else "",
        str(entry.get("model", "")),
        "cut off" if entry.get("cut_off") else "",
    ]
    return f"[{', '.join(part for part in parts if part)}]"


def _write_message(entry: Mapping[str, Any]) -> str:
    reasoning = f"(reasoning) {entry['reasoning']}" if entry.get("reasoning") else ""
    others = [f"{name}: {value}" for name, value in entry.items() if name not in SHOWN_APART]
    return "\n".join(part for part in (reasoning, str(entry.get("content", "")).strip(), *others) if part)
