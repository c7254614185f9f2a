"""What a run that was ended on purpose has decided: the verdicts of its sequences, and a line that says so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalsuite.decisions.baseline_result import Against
    from evalsuite.decisions.gates import GateDecision


def early_gates(early: Mapping[str, Any] | None, decisions: Iterable[GateDecision]) -> list[GateDecision]:
    """Keeps what the sequences decided, since looking at the ordinary interval as well would be one look too many."""
    verdicts = {row["gate"]: row["verdict"] for row in early["gates"]} if early else {}
    return [
        replace(decision, verdict=verdicts[decision.gate.text], reason="decided early")
        if decision.verdict in {"met", "missed"} and verdicts.get(decision.gate.text) in {"met", "missed"}
        else decision
        for decision in decisions
    ]


def early_verdicts(early: Mapping[str, Any], against: Against) -> Against:
    """The same for a comparison with a baseline."""
    decided = {
        row["subject"]: row["verdict"]
        for row in early.get("compared", ())
        if row["verdict"] != "open" and row["baseline"] == against.name
    }
    return replace(
        against,
        found=[
            (subject, comparison, decided.get(str(subject), verdict))
            for subject, comparison, verdict in against.found
        ],
    )


def shortened(shard: str | None, early: Mapping[str, Any] | None, aside: str) -> str:
    """Why other cases ran than the suite has, where that was meant; empty otherwise.

    Args:
        shard: which one the run is.
        early: what is known of its early end.
        aside: the gates that a run of chosen cases leaves undecided.
    """
    if shard:
        return f"shard {shard}: gates are decided when `evalsuite runs merge` has joined all shards"
    if early:
        return _ended_early(early)
    return f"a run of chosen cases, which leaves undecided: {aside}" if aside else ""


def _ended_early(early: Mapping[str, Any]) -> str:
    cases, planned = early["cases"], early["planned"]
    more = max(0, cases - planned)
    ran = f"{planned} planned cases and {more} more ran" if more else f"{cases} of {planned} cases ran"
    if early.get("open"):
        return (
            f"stopped, as {early['open']}: {ran}, and what was still open is decided by these: "
            f"{', '.join(_left_open(early))}"
        )
    if more:
        return f"went on until every gate was decided: {ran}"
    saved = 1 - cases / planned if planned else 0.0
    return f"stopped early, as every gate was decided: {ran}, {saved:.0%} of them were saved"


def _left_open(early: Mapping[str, Any]) -> Sequence[str]:
    gates = [row["gate"] for row in early["gates"] if row["verdict"] == "open"]
    return [*gates, *(row["subject"] for row in early.get("compared", ()) if row["verdict"] == "open")]
