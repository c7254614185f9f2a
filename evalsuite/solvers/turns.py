"""A turn of a tool-using episode, and what a turn protocol must be able to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.tools.documents import ToolDocument
    from evalsuite.types import Completion, Message, Sample


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the model wrote it.

    Attributes:
        name: the tool's name, which may be no tool's.
        arguments: parsed.
        id: the native protocol's name for the call; empty in a text protocol.
    """

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a model said in one turn, as its protocol reads it.

    Attributes:
        thought: why it does what it does, in its own words.
        calls: to be run; none in a turn that is not of the demanded form.
        fault: why the turn is not of the demanded form, to count by; None where it is.
        words: the same for the model to read.
        answer: that ends the episode; None where it goes on, or where a call ends it.
    """

    thought: str
    calls: Sequence[Call] = ()
    fault: str | None = None
    words: str = ""
    answer: str | None = None


class TurnProtocol(Protocol):
    """How a model is shown its tools, writes its calls and reads observations."""

    @property
    def finishes(self) -> bool:
        """Whether a call of `finish` ends an episode; otherwise an answer in plain text does."""
        ...

    def opening(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:
        """The conversation before the model's first turn."""
        ...

    def offered(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:
        """The `tools` of a request."""
        ...

    def read(self, completion: Completion) -> Turn:
        """What the model said."""
        ...

    def said(self, completion: Completion) -> Message:
        """What the model said, as later requests repeat it."""
        ...

    def observed(self, call: Call, observation: str) -> Message:
        """An observation, as the model reads it."""
        ...

    def reminder(self, completion: Completion, turn: Turn) -> Sequence[Message]:
        """What a model reads after a turn that is not of the demanded form."""
        ...
