"""What a rubric's judge is shown of a case: each field becomes one or several marked sections."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError
from evalsuite.judges.judged_input import conversation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalsuite.core.types import Sample, Transcript
    from evalsuite.judges.marks import Part


def sections(sample: Sample, transcript: Transcript, fields: Mapping[str, str]) -> list[Part]:
    """The sections of all fields.

    Args:
        sample: of the case.
        transcript: of the case.
        fields: by the section's name, what stands in it: `input`, `answer`, `reasoning`, `target` (every
            reference), `conversation` (every message in order), `tools` (every call with its result),
            `metadata.KEY`, `facts.KEY`, or a bare KEY of either.

    Raises:
        ScoringError: the case has no such field.
    """
    return [part for name, source in fields.items() for part in _parts(name, source, sample, transcript)]


def _parts(name: str, source: str, sample: Sample, transcript: Transcript) -> list[Part]:
    texts = {"answer": transcript.answer, "reasoning": transcript.reasoning}
    if source in texts:
        return [(name, texts[source])]
    match source:
        case "input":
            return [(name, conversation(sample.input))]
        case "target":
            return _target(name, sample)
        case "conversation":
            return _conversation(sample, transcript)
        case "tools":
            return list(_calls(transcript))
    return _numbered(name, _value(source, sample, transcript))


def _target(name: str, sample: Sample) -> list[Part]:
    if sample.target is None:
        raise ScoringError(f"sample {sample.id} has no target for its judge to see; give it one")
    return _numbered(name, sample.target)


def _conversation(sample: Sample, transcript: Transcript) -> list[Part]:
    messages = [message for message in transcript.messages if message.role in ("user", "assistant")]
    spoken = [(message.role, message.content) for message in messages if message.content]
    if not spoken:
        spoken = [("user", conversation(sample.input)), ("assistant", transcript.answer)]
    parts, turn = [], 0
    for at, (role, text) in enumerate(spoken):
        turn += role == "user" or at == 0
        parts.append((f"turn {turn} {role}", text))
    return parts


def _calls(transcript: Transcript) -> Iterable[Part]:
    """Tool calls in the conversation, or the events of solvers that keep them there."""
    results = {
        message.tool_call_id: message.content for message in transcript.messages if message.role == "tool"
    }
    calls = [call for message in transcript.messages for call in message.tool_calls]
    if not calls:
        return _events(transcript.events)
    return [
        (f"tool call {at}", f"{call.name}({call.arguments})\n-> {results.get(call.id, '(no result)')}")
        for at, call in enumerate(calls, 1)
    ]


def _events(events: Sequence[Mapping[str, Any]]) -> Iterable[Part]:
    called = [event for event in events if "tool" in event or "calls" in event]
    if not called:
        return [("tool calls", "(none)")]
    return [(f"tool call {at}", _text(event)) for at, event in enumerate(called, 1)]


def _value(source: str, sample: Sample, transcript: Transcript) -> Any:
    place, _, key = source.partition(".")
    places: dict[str, Mapping[str, Any]] = {"metadata": sample.metadata, "facts": transcript.facts}
    if place in places and key in places[place]:
        return places[place][key]
    for values in places.values():
        if source in values:
            return values[source]
    raise ScoringError(
        f"sample {sample.id} has no field {source!r} for its judge; there are input, answer, reasoning, target, "
        f"conversation, tools, {', '.join(_known(places)) or 'and no metadata or facts'}"
    )


def _known(places: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [f"{place}.{key}" for place, values in places.items() for key in values]


def _numbered(name: str, value: Any) -> list[Part]:
    if isinstance(value, (list, tuple)):
        if not value:
            return [(name, "(none)")]
        return [(f"{name} {at}", _text(item)) for at, item in enumerate(value, 1)]
    return [(name, _text(value))]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str, indent=1)


def as_fields(fields: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Fields by the names of their sections; a bare field's section is called like its key."""
    if isinstance(fields, str):
        fields = [fields]
    if isinstance(fields, Mapping):
        return dict(fields)
    return {source.rpartition(".")[2]: source for source in fields}
