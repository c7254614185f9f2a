"""When a call is right, by the rules of BFCL's AST evaluation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from evalsuite.core.counted_nouns import number_of
from evalsuite.core.types import Score
from evalsuite.scorers.trajectories import ToolUse, agrees, difference, pair, tool_uses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Sample, Transcript

_IGNORED = re.compile(r"[ ,./\-_*^]")


@dataclass(frozen=True, slots=True)
class Correct:
    """`correct`: 1 where the calls are those expected, in any order and no others; else 0."""

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, Score]:
        """Scores the calls of one turn; where none fits, that none was made."""
        calls = tool_uses(transcript)
        if any("unparseable" in event["faults"] for event in transcript.events):
            return {"correct": Score(0.0, "the arguments of a call cannot be read")}
        if sample.metadata["any_call"]:
            return {"correct": Score(float(bool(calls)), "" if calls else "nothing was called")}
        expected = [
            ToolUse(name, partial(accepts, accepted))
            for call in sample.metadata["calls"]
            for name, accepted in call.items()
        ]
        right = agrees("any_order", expected, calls)
        return {"correct": Score(float(right), "" if right else _note(sample, expected, calls))}


def _note(sample: Sample, expected: Sequence[ToolUse], calls: Sequence[ToolUse]) -> str:
    if not expected:
        return f"no function fits; {number_of(len(calls), 'call')} made"
    paired = sum(at is not None for at in pair(expected, calls))
    shown = "; ".join(difference([ToolUse(use.tool, _first(sample, use.tool)) for use in expected], calls))
    return f"{paired} of {number_of(len(expected), 'call')} right: {shown}"[:500]


def _first(sample: Sample, tool: str) -> Mapping[str, Any]:
    """The first accepted values of a function's arguments, to be shown."""
    accepted = next(call[tool] for call in sample.metadata["calls"] if tool in call)
    return {name: values[0] for name, values in accepted.items() if values and values[0] != ""}


def accepts(accepted: Mapping[str, Sequence[Any]], arguments: Mapping[str, Any]) -> bool:
    """Whether each argument has one of its accepted values; one with `""` among them may be left out."""
    return all(name in accepted for name in arguments) and all(
        any(same(arguments[name], value) for value in values) if name in arguments else "" in values
        for name, values in accepted.items()
    )


def same(value: Any, accepted: Any) -> bool:
    """Whether a value is an accepted one.

    Texts are equal but for case, spaces and the signs , . / - _ * ^; a whole number will do for a fraction, and not
    the other way round; of an object, each field has accepted values of its own.
    """
    if isinstance(value, str) and isinstance(accepted, str):
        return _plain(value) == _plain(accepted)
    if isinstance(value, list) and isinstance(accepted, list):
        return len(value) == len(accepted) and all(map(same, value, accepted))
    if isinstance(value, dict) and isinstance(accepted, dict):
        return accepts(accepted, value)
    if isinstance(value, bool) or isinstance(accepted, bool):
        return value is accepted
    if isinstance(value, float) and isinstance(accepted, int):
        return False
    return bool(value == accepted)


def _plain(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')
