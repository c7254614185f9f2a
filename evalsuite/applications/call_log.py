"""The calls of a case to its model, and the transcript that is made of them."""

from __future__ import annotations

import dataclasses
import itertools
import json
from bisect import insort
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from evalsuite.core.json_codec import encode_usage
from evalsuite.core.types import Message, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalsuite.core.types import Completion, ToolCall


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One answered call.

    Attributes:
        model: who was asked.
        messages: the conversation as it was sent.
        completion: the answer.
        seconds: wall time, waiting for the limiter included.
        number: its place among the calls that were sent, from 1.
    """

    model: str
    messages: tuple[Message, ...]
    completion: Completion
    seconds: float
    number: int = 0

    @property
    def reply(self) -> Message:
        """The answer as the next message of the conversation."""
        return Message("assistant", self.completion.text, self.completion.tool_calls)


@dataclass(slots=True)
class _Conversation:
    """Calls that each continue where the previous one ended."""

    messages: list[Message]
    keys: list[object]

    def goes_on_in(self, keys: list[object]) -> bool:
        return keys[: len(self.keys)] == self.keys

    def observations(self, reply: int) -> dict[str, str]:
        """The application's results for the calls of one reply, which it sends before the next reply."""
        answers = itertools.takewhile(lambda message: message.role != "assistant", self.messages[reply + 1 :])
        return {message.tool_call_id or "": message.content for message in answers if message.role == "tool"}


@dataclass(slots=True)
class CallLog:
    """The calls of one case, in the order in which they were sent, because answers arrive in any order.

    Attributes:
        calls: those that were answered.
        failures: the errors of calls that failed for good; each means that nothing was measured.
        numbers: numbers for the calls, taken when they are sent.
    """

    calls: list[LoggedCall] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=partial(itertools.count, 1))

    def add(self, call: LoggedCall) -> None:
        """Adds an answered call at its place."""
        insort(self.calls, call, key=lambda other: other.number)

    def complete(self, transcript: Transcript) -> Transcript:
        """The transcript; one without messages and events gets those that went over the wire."""
        if transcript.messages or transcript.events or not self.calls:
            return transcript
        conversations, replies = self._conversations()
        return dataclasses.replace(
            transcript,
            messages=tuple(message for conversation in conversations for message in conversation.messages),
            reasoning=transcript.reasoning or self.calls[-1].completion.reasoning,
            events=tuple(self._events(replies)),
        )

    def transcript(self) -> Transcript:
        """The transcript of a case without a solver: the last text is the answer."""
        texts = [call.completion.text for call in self.calls if call.completion.text]
        return self.complete(Transcript(texts[-1] if texts else ""))

    def _conversations(self) -> tuple[list[_Conversation], list[tuple[_Conversation, int]]]:
        """All conversations, and for each call its own with the place of the reply in it."""
        conversations: list[_Conversation] = []
        replies: list[tuple[_Conversation, int]] = []
        for call in self.calls:
            sent = [_key(message) for message in call.messages]
            continued = [open_one for open_one in conversations if open_one.goes_on_in(sent)]
            conversation = max(
                continued, key=lambda candidate: len(candidate.keys), default=_Conversation([], [])
            )
            if not continued:
                conversations.append(conversation)
            conversation.messages += [*call.messages[len(conversation.keys) :], call.reply]
            conversation.keys = [*sent, _key(call.reply)]
            replies.append((conversation, len(conversation.messages) - 1))
        return conversations, replies

    def _events(self, replies: list[tuple[_Conversation, int]]) -> Iterator[Mapping[str, Any]]:
        for turn, (call, (conversation, place)) in enumerate(zip(self.calls, replies, strict=True), 1):
            completion = call.completion
            yield {
                "kind": "turn",
                "turn": turn,
                "thought": completion.text.strip() or completion.reasoning.strip(),
                "fault": None,
                "model": call.model,
                "seconds": round(call.seconds, 3),
                "usage": encode_usage(completion.usage),
            }
            observations = conversation.observations(place)
            for tool_call in completion.tool_calls:
                yield _call_event(turn, tool_call, observations.get(tool_call.id, ""))


def _call_event(turn: int, call: ToolCall, observation: str) -> Mapping[str, Any]:
    arguments = _parsed(call.arguments)
    return {
        "kind": "call",
        "turn": turn,
        "tool": call.name,
        "origin": "",
        "arguments": {} if arguments is None else arguments,
        "faults": ["unparseable"] if arguments is None else [],
        "executor": "application",
        "observation": observation,
        "failed": False,
    }


def _parsed(arguments: str) -> dict[str, Any] | None:
    try:
        value = json.loads(arguments)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _key(message: Message) -> object:
    """The parts of a message that stay the same when an application sends it again."""
    return (
        message.role,
        message.content.strip(),
        message.tool_call_id,
        tuple(call.id for call in message.tool_calls),
    )
