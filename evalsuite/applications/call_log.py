"""Collects one case's calls and spans, and makes the case's transcript from them."""

import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from evalsuite.core.errors import SolverError
from evalsuite.core.json_codec import encode_usage, parse_json
from evalsuite.core.types import Completion, Message, ToolCall, Transcript


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One answered model call."""

    model: str
    messages: tuple[Message, ...]  # The conversation as it was sent.
    completion: Completion
    seconds: float  # Wall time in seconds, including waits for connections and rate limits.
    number: int = 0  # The call's position in the order of sending, from 1.

    @property
    def reply(self) -> Message:
        """The answer as the next message of the conversation."""
        return Message("assistant", self.completion.text, self.completion.tool_calls)


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One OpenTelemetry span: a step of an application."""

    begin: int  # The span's start in nanoseconds since 1970.
    event: Mapping[str, Any]  # The span as an event of a transcript; the event still lacks the field `begin`.
    call: LoggedCall | None  # The model call that the span describes.
    executed: tuple[Mapping[str, Any], str] | None = None  # A tool's arguments and result, if the span has them.
    answer: str | None = None  # The text that an agent returned, if the span describes an agent.


@dataclass(slots=True)
class _Conversation:
    """Model calls of one conversation: each call continues the conversation of the previous call."""

    messages: list[Message] = field(default_factory=list)
    keys: list[object] = field(default_factory=list)  # Keys of the last request's messages; see `_make_message_key`.
    # Indices of the model's replies whose text the application changed when it sent them again.
    rewritten: set[int] = field(default_factory=set)

    def match_messages(self, sent: Sequence[Message], sent_keys: list[object]) -> tuple[int, bool]:
        """Return how many messages of a request this conversation already has, and whether the last reply is unchanged.

        The number of messages is 0 if the request does not continue this conversation. An application may add to the
        text of a reply, as smolagents does, but must keep the original text and the ids of the reply's tool calls.
        """
        place, reply = len(self.keys), self.messages[-1]
        if sent_keys[:place] != self.keys or len(sent_keys) == place:
            return 0, False
        if sent_keys[place] == _make_message_key(reply):
            return place + 1, True
        again = list(itertools.takewhile(lambda message: message.role == "assistant", sent[place:]))
        text = "\n".join(message.content for message in again)
        marks = [reply.content.strip(), *(call.id for call in reply.tool_calls)]
        return (place + len(again) if any(marks) and all(mark in text for mark in marks) else 0), False

    def find_results_by_call_id(self, reply_index: int) -> dict[str, str]:
        """Return one reply's tool results by call id; if a user's message holds them, each call gets the whole text."""
        later = self.messages[reply_index + 1 :]
        answers = list(itertools.takewhile(lambda message: message.role != "assistant", later))
        if reply_index in self.rewritten and answers:
            text = "\n".join(message.content for message in answers).removeprefix("Observation:").strip()
            return {call.id: text for call in self.messages[reply_index].tool_calls}
        return {message.tool_call_id or "": message.content for message in answers if message.role == "tool"}


@dataclass(slots=True)
class CallLog:
    """The calls of one case, sorted by the order of sending instead of the order of answers, which varies."""

    calls: list[LoggedCall] = field(default_factory=list)  # The answered calls.
    # Errors of calls that failed permanently, by sequence number. A case with a failed call has no valid score.
    failures: dict[int, Exception] = field(default_factory=dict)
    # Numbers the calls in the order of sending.
    numbers: Iterator[int] = field(default_factory=partial(itertools.count, 1))
    faults: list[str] = field(default_factory=list)  # The faults that were injected into the case's calls.
    spans: list[TraceSpan] = field(default_factory=list)  # The spans that the application itself reported.
    # The request fields that the application sent but that did not reach the model.
    left_out: set[str] = field(default_factory=set)

    @property
    def failure(self) -> Exception | None:
        """The error of the failed call that was sent first; None if no call failed."""
        return self.failures[min(self.failures)] if self.failures else None

    def complete_transcript(self, transcript: Transcript) -> Transcript:
        """Add the spans to a transcript; if the transcript is empty, fill it from the logged calls.

        If no calls were logged, use those that the spans describe. `facts["left_out"]` lists the fields not sent.
        """
        if self.left_out:
            facts = {**transcript.facts, "left_out": ", ".join(sorted(self.left_out))}
            transcript = dataclasses.replace(transcript, facts=facts)
        spans = sorted(self.spans, key=lambda span: span.begin)
        if spans:
            log = CallLog(self.calls or [span.call for span in spans if span.call])
            shown = ({**span.event, "begin": (span.begin - spans[0].begin) / 1e9} for span in spans)
            filled = log.complete_transcript(transcript)
            return dataclasses.replace(filled, events=(*_add_tool_executions(filled.events, spans), *shown))
        if transcript.messages or transcript.events or not self.calls:
            return transcript
        conversations, replies = self._group_calls()
        return dataclasses.replace(
            transcript,
            messages=tuple(message for conversation in conversations for message in conversation.messages),
            reasoning=transcript.reasoning or self.calls[-1].completion.reasoning,
            events=tuple(self._list_transcript_events(replies)),
        )

    def make_transcript(self) -> Transcript:
        """Make the transcript of a case without a solver; the model's last text is the answer."""
        texts = [call.completion.text for call in self.calls if call.completion.text]
        return self.complete_transcript(Transcript(texts[-1] if texts else ""))

    def _group_calls(self) -> tuple[list[_Conversation], list[tuple[_Conversation, int]]]:
        """Return the conversations, and a pair for each call: its conversation, and the index of its reply in it."""
        conversations: list[_Conversation] = []
        replies: list[tuple[_Conversation, int]] = []
        for call in self.calls:
            keys = list(map(_make_message_key, call.messages))
            known = [(*candidate.match_messages(call.messages, keys), candidate) for candidate in conversations]
            count, unchanged, conversation = max(known, key=lambda one: one[:2], default=(0, False, _Conversation()))
            if not count:
                conversation = _Conversation()
                conversations.append(conversation)
            elif not unchanged:
                conversation.rewritten.add(len(conversation.messages) - 1)
            conversation.messages += [*call.messages[count:], call.reply]
            conversation.keys = keys
            replies.append((conversation, len(conversation.messages) - 1))
        return conversations, replies

    def _list_transcript_events(self, reply_places: list[tuple[_Conversation, int]]) -> Iterator[Mapping[str, Any]]:
        for turn, (call, (conversation, place)) in enumerate(zip(self.calls, reply_places, strict=True), 1):
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
            results = conversation.find_results_by_call_id(place)
            for tool_call in completion.tool_calls:
                result = results.get(tool_call.id)
                found = self._find_later_tool_result(turn, tool_call) if result is None else result
                yield _make_tool_call_event(turn, tool_call, found)

    def _find_later_tool_result(self, turn: int, tool_call: ToolCall) -> str:
        """Return a tool call's result from any later request, even one with another system prompt; "" if none has it.

        Use the last result in the first request that contains one. Ignore results of other calls with the same id.
        """
        for later in self.calls[turn:]:
            found, is_own = None, True
            for message in later.messages:
                for call in message.tool_calls:
                    if call.id == tool_call.id:
                        # Compare the parsed arguments, because an application may reformat them.
                        is_own = call.name == tool_call.name and (
                            parse_tool_arguments(call.arguments) == parse_tool_arguments(tool_call.arguments)
                        )
                if is_own and message.role == "tool" and message.tool_call_id == tool_call.id:
                    found = message.content
            if found is not None:
                return found
        return ""


def _add_tool_executions(events: tuple[Mapping[str, Any], ...], spans: Sequence[TraceSpan]) -> list[Mapping[str, Any]]:
    """Add an event for each span of a tool that no reply called, such as a tool called by generated code."""
    called = {event.get("tool") for event in events}
    added: list[Mapping[str, Any]] = []
    turn = 0
    for span in spans:
        turn += span.call is not None
        if span.executed and span.event["tool"] not in called:
            arguments, result = span.executed
            call = ToolCall("", span.event["tool"], json.dumps(arguments))
            added.append({**_make_tool_call_event(max(turn, 1), call, result), "failed": span.event["failed"]})
    return sorted((*events, *added), key=lambda event: event.get("turn", 0)) if added else list(events)


def _make_tool_call_event(turn: int, call: ToolCall, observation: str) -> Mapping[str, Any]:
    arguments = parse_tool_arguments(call.arguments)
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


def parse_tool_arguments(arguments: str) -> dict[str, Any] | None:
    """Parse a tool call's arguments; return None if they are not a JSON object."""
    value = parse_json(arguments)
    return value if isinstance(value, dict) else None


def _make_message_key(message: Message) -> object:
    """Return the parts of a message that stay the same when an application sends the message again."""
    return (message.role, message.content.strip(), message.tool_call_id, tuple(call.id for call in message.tool_calls))


ANSWER = "answer"  # The field of a result that holds the answer, by default.


def make_transcript(result: Any, answer_field: str = ANSWER) -> Transcript:
    """Convert what a solver returned to a transcript.

    If the result is text, the text is the answer. If the result is a mapping, a dataclass or a pydantic model, its
    field named by `answer_field` is the answer, and its other fields become facts of the transcript.
    """
    if isinstance(result, Transcript):
        return result
    if isinstance(result, str):
        return Transcript(result)
    fields = result
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        fields = dataclasses.asdict(result)
    elif not isinstance(result, type | Mapping) and callable(dump := getattr(result, "model_dump", None)):
        fields = dump(mode="json")  # Recognise a pydantic model without importing pydantic, which takes time.
    facts = dict(fields) if isinstance(fields, Mapping) else {}
    answer = facts.pop(answer_field, None)
    if not isinstance(answer, str):
        raise SolverError(
            f"the solver returned {result!r:.200} ({type(result).__name__}); it must return text, a Transcript, or "
            f"an object whose field {answer_field!r} is text"
        )
    return Transcript(answer, facts=facts)
