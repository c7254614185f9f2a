"""BFCL's solver: one request with the functions on offer; what is called is noted and never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.types import Message, Transcript
from evalsuite.tools.arguments import parse_arguments

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample, ToolCall


@dataclass(frozen=True, slots=True)
class OneTurn:
    """Asks once, at temperature 0.

    Attributes:
        max_tokens: of the answer.
    """

    max_tokens: int

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """The model's answer, with its calls as events."""
        conversation = sample.input if not isinstance(sample.input, str) else (Message("user", sample.input),)
        functions = sample.metadata["functions"]
        completion = await model.chat(
            conversation, tools=functions, temperature=0, max_tokens=self.max_tokens
        )
        events = tuple(map(_event, completion.tool_calls))
        answer = Message("assistant", completion.text, completion.tool_calls)
        return Transcript(completion.text, (*conversation, answer), completion.reasoning, events)


def _event(call: ToolCall) -> dict[str, Any]:
    try:
        arguments, after = parse_arguments(call.arguments or "{}")
        faults = ["unparseable"] if after else []
    except ValueError:
        arguments, faults = {}, ["unparseable"]
    return {"kind": "call", "turn": 1, "tool": call.name, "arguments": arguments, "faults": faults}
