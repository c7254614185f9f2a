"""Names of ToolEyes' scores, and the turns of an episode that they are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Sample, Transcript


RULES = ("format_alignment", "reality", "finished")
"""The scores that need no judge."""
CAPABILITIES = (
    "format_alignment",
    "intent_comprehension",
    "behaviour_planning",
    "tool_selection",
    "answer_organisation",
)
"""The paper's five capabilities; `OVERALL` is their mean."""

OVERALL = "overall"
RELEASED_MODES = ("released", "released_5shot")
"""Modes that use the prompts and the formulas of the authors' released code."""


def is_released(sample: Sample) -> bool:
    """Tell whether a sample is asked and scored as the released code does."""
    return sample.tags["mode"] in RELEASED_MODES


# Faults that make a call unreal. A value of the wrong type does not, because published documents declare all
# parameters as strings.
_UNREAL = {"unknown_tool", "unknown_parameter", "missing_parameter"}


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the model: its thought, its fault (None for a well-formed turn), and the events of its calls."""

    thought: str
    fault: str | None
    calls: Sequence[Mapping[str, Any]]

    @property
    def valid(self) -> bool:
        """Tell whether the turn is well-formed."""
        return self.fault is None

    @property
    def reality(self) -> float:
        """Compute the share of its calls that are real."""
        return sum(map(is_real, self.calls)) / len(self.calls) if self.calls else 0.0


def is_real(call: Mapping[str, Any]) -> bool:
    """Tell whether a call names a documented tool, only its parameters, and all required ones."""
    return not _UNREAL & set(call["faults"])


def steps_of(transcript: Transcript) -> list[Step]:
    """Read the model's turns with their calls from a transcript."""
    calls: dict[int, list[Mapping[str, Any]]] = {}
    for event in transcript.events:
        if event["kind"] == "call":
            calls.setdefault(event["turn"], []).append(event)
    return [
        Step(event["thought"], event["fault"], calls.get(event["turn"], []))
        for event in transcript.events
        if event["kind"] == "turn"
    ]


def is_finished(transcript: Transcript) -> bool:
    """Tell whether the model called finish within the limit of turns."""
    return bool(transcript.facts["ended"] == "finish")
