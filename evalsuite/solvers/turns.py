"""The turns of a tool-using episode, and the protocol by which they are written and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Completion, Message, Sample
    from evalsuite.tools.documents import ToolDocument


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the model wrote it.

    Attributes:
        name: the tool's name as the model wrote it; there may be no such tool.
        arguments: the parsed arguments.
        id: the call's id in the native protocol; empty in a text protocol.
    """

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the model, as its protocol reads it.

    Attributes:
        thought: the model's reasoning, in its own words.
        calls: the calls to run; none if the turn is malformed.
        fault: the kind of malformation; None for a well-formed turn.
        words: the same, for the model to read.
        answer: the text that ends the episode; None if it goes on, or if a call ends it.
    """

    thought: str
    calls: Sequence[Call] = ()
    fault: str | None = None
    words: str = ""
    answer: str | None = None


class TurnProtocol(Protocol):
    """How a model is shown its tools, writes calls, and reads observations."""

    @property
    def finishes(self) -> bool:
        """Whether a call of `finish` ends an episode; otherwise a plain text answer does."""
        ...

    def opening(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:
        """The conversation before the model's first turn."""
        ...

    def offered(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:
        """The `tools` of a request."""
        ...

    def read(self, completion: Completion) -> Turn:
        """Reads a message of the model."""
        ...

    def said(self, completion: Completion) -> Message:
        """The model's message as later requests repeat it."""
        ...

    def observed(self, call: Call, observation: str) -> Message:
        """The message by which the model reads an observation."""
        ...

    def reminder(self, completion: Completion, turn: Turn) -> Sequence[Message]:
        """The messages that the model reads after a malformed turn."""
        ...
