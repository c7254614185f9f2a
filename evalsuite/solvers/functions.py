"""Tool use through the function-calling protocol of the OpenAI API."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evalsuite.errors import SettingsError
from evalsuite.keywords import generation_params
from evalsuite.solvers.episode import MAX_TURNS, OBSERVATION_LIMIT, PARAMETERS, TOOL_SECONDS, ToolLoop
from evalsuite.solvers.turns import Call, Turn
from evalsuite.tools.arguments import parse_arguments
from evalsuite.types import Message, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.tools.documents import ToolDocument
    from evalsuite.tools.registry import ToolSource
    from evalsuite.tools.users import User
    from evalsuite.types import Completion, Sample

SYSTEM = """\
You help a user by calling the tools on offer. Before each call say in a sentence or two what you know so \
far and what to do next. When you can answer, or when you see that these tools cannot do it, call finish \
with your answer: the user reads nothing else."""

REMINDER = "Please call one of the tools, with its arguments as a JSON object; call finish to answer."
_NAME = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Functions:
    """The native protocol, in which the server marks calls apart from text.

    The demanded form of a turn: at least one call, every call with a name and with arguments that parse.
    The message's text is the thought, or the reasoning where there is no text. Where `finish` is not on offer, a
    message without calls is the answer.

    Attributes:
        system: the system message; empty for none.
        finishes: whether a call of `finish` ends an episode.
    """

    system: str = SYSTEM
    finishes: bool = True

    def opening(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:  # noqa: ARG002 - the protocol's signature
        """A system message; then the sample's input."""
        rest = (Message("user", sample.input),) if isinstance(sample.input, str) else sample.input
        return (Message("system", self.system), *rest) if self.system else tuple(rest)

    def offered(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:
        """The documents in the OpenAI format."""
        return [document.openai() for document in documents]

    def read(self, completion: Completion) -> Turn:
        """The calls of a message, or what is wrong with it: `no_call`, `empty_action`, `unparseable`."""
        thought = completion.text.strip() or completion.reasoning.strip()
        if not completion.tool_calls and not self.finishes:
            return Turn(completion.reasoning.strip(), answer=completion.text.strip())
        if not completion.tool_calls:
            return Turn(thought, (), "no_call", "The message calls no tool.")
        calls = []
        for written in _numbered(completion):
            if not written.name.strip():
                return Turn(thought, (), "empty_action", "A call names no tool.")
            try:
                arguments, after = parse_arguments(written.arguments)
            except ValueError as error:
                return Turn(thought, (), "unparseable", f"The arguments cannot be read: {error}.")
            if after:
                return Turn(thought, (), "unparseable", "The arguments are followed by further text.")
            calls.append(Call(written.name.strip(), arguments, written.id))
        return Turn(thought, calls)

    def said(self, completion: Completion) -> Message:
        """The message with its calls made fit to be sent again.

        Servers refuse a conversation that holds a call with an impossible name or with arguments that are
        no JSON; what the model really wrote stands in the turn's event.
        """
        return Message("assistant", completion.text, tuple(map(_sendable, _numbered(completion))))

    def observed(self, call: Call, observation: str) -> Message:
        """The observation as the answer to its call."""
        return Message("tool", observation, tool_call_id=call.id)

    def reminder(self, completion: Completion, turn: Turn) -> Sequence[Message]:
        """What was wrong, as the answer to each call, as the protocol wants every call answered."""
        words = f"{turn.words} {REMINDER}"
        answers = [Message("tool", words, tool_call_id=call.id) for call in _numbered(completion)]
        return answers or [Message("user", words)]


def _numbered(completion: Completion) -> list[ToolCall]:
    """The calls with ids that are there and differ, which not every server takes care of."""
    ids = [call.id for call in completion.tool_calls]
    distinct = all(ids) and len(set(ids)) == len(ids)
    return [
        call if distinct else ToolCall(f"call_{number}", call.name, call.arguments)
        for number, call in enumerate(completion.tool_calls)
    ]


def _sendable(call: ToolCall) -> ToolCall:
    try:
        arguments, _ = parse_arguments(call.arguments)
    except ValueError:
        arguments = {}
    name = _NAME.sub("_", call.name.strip())[:64] or "unnamed"
    return ToolCall(call.id, name, json.dumps(arguments, ensure_ascii=False))


def functions(  # noqa: PLR0913 - each has a default and is given by name
    tools: Sequence[ToolSource],
    *,
    system: str | None = None,
    ending: Literal["finish", "text"] = "finish",
    user: User | None = None,
    max_turns: int = MAX_TURNS,
    patience: int | None = None,
    observation_limit: int = OBSERVATION_LIMIT,
    tool_seconds: float = TOOL_SECONDS,
    seconds: float | None = None,
    tokens: int | None = None,
    dollars: float | None = None,
    **params: Any,
) -> ToolLoop:
    """A solver that lets the model use tools through the OpenAI API's function calling.

    Args:
        tools: `@tool` functions; or classes with `@tool` methods, made with the sample for each episode
            anew, so that no episode sees another's state.
        system: the agent's own system prompt; empty for none, None for the one that asks for `finish`.
        ending: what ends an episode: a call of the tool `finish`, which is added to the tools; or, as in most agents
            in production, a message in plain text without calls.
        user: who answers `ask_to_user`; without one it is not on offer.
        max_turns: turns in which the model speaks, at most.
        patience: turns in a row that are not of the demanded form, after which an episode is given up;
            None waits for `max_turns`.
        observation_limit: characters of an observation, at most; the rest is cut off with a note.
        tool_seconds: a call of a tool may take; what takes longer is a failure that the model reads.
        seconds: all calls of an episode together may take; None sets no limit.
        tokens: that the model may use in an episode, prompts included; None sets no limit.
        dollars: that the model may cost in an episode, in US dollars; None sets no limit.
        params: generation parameters; temperature 0.3 and top_p 0.5 unless given.
    """
    checked = {**PARAMETERS, **generation_params(functions, params)}
    if ending not in {"finish", "text"}:
        raise SettingsError(f"functions was given ending={ending!r}; an episode ends by 'finish' or 'text'")
    default = SYSTEM if ending == "finish" else ""
    protocol = Functions(default if system is None else system, ending == "finish")
    limits = (max_turns, patience, observation_limit, tool_seconds, seconds, tokens, dollars)
    return ToolLoop(protocol, tools, user, *limits, checked)
