"""An episode as its scores see it: the model's turns, each with its thought and its calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Transcript

# What makes a call unreal. Values of the wrong type do not: published documents call everything a string.
_UNREAL = {"unknown_tool", "unknown_parameter", "missing_parameter"}


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the model.

    Attributes:
        thought: what it wrote down.
        fault: why the turn is not of the demanded form; None where it is.
        calls: the events of its calls.
    """

    thought: str
    fault: str | None
    calls: Sequence[Mapping[str, Any]]

    @property
    def valid(self) -> bool:
        """Whether the turn was of the demanded form."""
        return self.fault is None

    @property
    def reality(self) -> float:
        """The share of its calls that name a documented tool, only its parameters and all required ones."""
        return sum(map(is_real, self.calls)) / len(self.calls) if self.calls else 0.0


def is_real(call: Mapping[str, Any]) -> bool:
    """Whether a call names a documented tool, none but its parameters, and all that are required."""
    return not _UNREAL & set(call["faults"])


def steps_of(transcript: Transcript) -> list[Step]:
    """The model's turns with their calls."""
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
    """Whether the model called finish within the limit of turns."""
    return bool(transcript.facts["ended"] == "finish")
