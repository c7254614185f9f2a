"""Two formats of tool calls: the function calling of the OpenAI API, and ReAct.

ReAct (Yao et al., arXiv 2210.03629) writes thoughts and calls as plain text, so ReAct works with every chat model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import select_generation_params
from evalsuite.core.types import Completion, Message, Sample, ToolCall
from evalsuite.solvers.episode import MAX_TURNS, OBSERVATION_LIMIT, PARAMETERS, TOOL_SECONDS, Call, ParsedTurn, ToolLoop
from evalsuite.tools.arguments import parse_arguments

if TYPE_CHECKING:
    from evalsuite.tools.execution import ToolDocument
    from evalsuite.tools.simulated import User
    from evalsuite.tools.worlds import ToolSource

_FUNCTIONS_SYSTEM = """\
You help a user by calling the tools on offer. Before each call say in a sentence or two what you know so \
far and what to do next. When you can answer, or when you see that these tools cannot do it, call finish \
with your answer: the user reads nothing else."""

REMINDER = "Please call one of the tools, with its arguments as a JSON object; call finish to answer."
_NAME = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class NativeProtocol:
    """The native protocol, in which the server separates tool calls from text.

    A turn is well-formed if it has at least one call and every call has a name and arguments that parse. The thought is
    the message's text, or the message's reasoning if the text is empty. If `finish` is not offered, a message without
    calls is the answer.
    """

    system: str = _FUNCTIONS_SYSTEM  # The system message; empty for no message.
    finishes: bool = True  # Whether a call of the tool `finish` ends an episode.

    def make_opening(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:  # noqa: ARG002 - the protocol's signature
        rest = (Message("user", sample.input),) if isinstance(sample.input, str) else sample.input
        return (Message("system", self.system), *rest) if self.system else tuple(rest)

    def list_request_tools(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:
        return [document.openai() for document in documents]

    def parse_completion(self, completion: Completion) -> ParsedTurn:
        """Read a message's calls; a malformed message gives the fault `no_call`, `empty_action` or `unparseable`."""
        thought = completion.text.strip() or completion.reasoning.strip()
        if not completion.tool_calls and not self.finishes:
            return ParsedTurn(completion.reasoning.strip(), answer=completion.text.strip())
        if not completion.tool_calls:
            return ParsedTurn(thought, (), "no_call", "The message calls no tool.")
        calls = []
        for written in _number_calls(completion):
            if not written.name.strip():
                return ParsedTurn(thought, (), "empty_action", "A call names no tool.")
            try:
                arguments, after = parse_arguments(written.arguments)
            except ValueError as error:
                return ParsedTurn(thought, (), "unparseable", f"The arguments cannot be read: {error}.")
            if after:
                return ParsedTurn(thought, (), "unparseable", "The arguments are followed by further text.")
            calls.append(Call(written.name.strip(), arguments, written.id))
        return ParsedTurn(thought, calls)

    def make_history_message(self, completion: Completion) -> Message:
        """Return the message with repaired calls, because servers refuse invalid tool names and arguments."""
        return Message("assistant", completion.text, tuple(map(_make_valid_call, _number_calls(completion))))

    def make_observation_message(self, call: Call, observation: str) -> Message:
        return Message("tool", observation, tool_call_id=call.id)

    def make_reminder(self, completion: Completion, turn: ParsedTurn) -> Sequence[Message]:
        """Explain the fault in an answer to each call, because the protocol demands an answer to every call."""
        words = f"{turn.words} {REMINDER}"
        answers = [Message("tool", words, tool_call_id=call.id) for call in _number_calls(completion)]
        return answers or [Message("user", words)]


def _number_calls(completion: Completion) -> list[ToolCall]:
    """Give the calls distinct ids, because some servers send no ids or the same id twice."""
    ids = [call.id for call in completion.tool_calls]
    distinct = all(ids) and len(set(ids)) == len(ids)
    return [
        call if distinct else ToolCall(f"call_{number}", call.name, call.arguments)
        for number, call in enumerate(completion.tool_calls)
    ]


def _make_valid_call(call: ToolCall) -> ToolCall:
    try:
        arguments, _ = parse_arguments(call.arguments)
    except ValueError:
        arguments = {}
    name = _NAME.sub("_", call.name.strip())[:64] or "unnamed"
    return ToolCall(call.id, name, json.dumps(arguments, ensure_ascii=False))


FORM = """\
Thought: in a sentence or two, what you know so far and what to do next
Action: the name of one tool
Action Input: the tool's parameters and their values as one JSON object"""

_REACT_SYSTEM = """\
You help a user by calling tools, one call at a time. Every message of yours has exactly these three parts \
and stops after them:
{form}

After each message you are shown what the tool returned, as an observation. When you can answer, or when you \
see that these tools cannot do it, call finish with your answer.

The tools and their parameters:
{documents}"""

_EXAMPLES = """

The conversation begins with worked examples, which had other tools. Your task is the last request."""


@dataclass(frozen=True, slots=True)
class ReActProtocol:
    """The text protocol: `Thought:`, `Action:`, `Action Input:`, in this order and with nothing after the input."""

    examples: Sequence[Sequence[Message]] = ()  # Example episodes in the form that the model should write.
    finishes: bool = True  # Whether a call of the tool `finish` ends an episode.

    def make_opening(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:
        shown = "\n".join(document.text() for document in documents)
        system = _REACT_SYSTEM.replace("{form}", FORM).replace("{documents}", shown)
        if self.examples:
            system += _EXAMPLES
        rest = (Message("user", sample.input),) if isinstance(sample.input, str) else sample.input
        return (Message("system", system), *chain.from_iterable(self.examples), *rest)

    def list_request_tools(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - the protocol's signature
        """Return no tools, because the system message describes the tools."""
        return ()

    def parse_completion(self, completion: Completion) -> ParsedTurn:
        return parse_turn(completion.text)

    def make_history_message(self, completion: Completion) -> Message:
        """Return the text as the model wrote it, including mistakes."""
        return Message("assistant", completion.text)

    def make_observation_message(self, call: Call, observation: str) -> Message:  # noqa: ARG002 - the protocol's signature
        """Return the observation as a user message, because chat models without tools have no role for observations."""
        return Message("user", f"Observation: {observation}")

    def make_reminder(self, completion: Completion, turn: ParsedTurn) -> Sequence[Message]:  # noqa: ARG002 - likewise
        return [Message("user", f"{turn.words} Please reply in this form and stop after it:\n{FORM}")]


def parse_turn(text: str) -> ParsedTurn:
    """Read one message of the model.

    A well-formed turn has the three keywords in order and a non-empty action. The input must parse as a JSON object or
    a Python dict, and only white space may follow. Text before `Thought:` is allowed. If there are several faults, the
    reported fault is the first of `keywords`, `empty_action`, `unparseable` and `redundant`.
    """
    _, first, rest = text.partition("Thought:")
    thought, second, rest = rest.partition("Action:")
    action, third, written = rest.partition("Action Input:")
    thought, action = thought.strip(), action.strip()
    if not (first and second and third):
        return ParsedTurn(thought, (), "keywords", "The message does not have its three parts in order.")
    if not action:
        return ParsedTurn(thought, (), "empty_action", "The second part names no tool.")
    try:
        arguments, after = parse_arguments(written)
    except ValueError as error:
        return ParsedTurn(thought, (), "unparseable", f"The third part cannot be read: {error}.")
    if after:
        return ParsedTurn(thought, (), "redundant", "The message goes on after the third part.")
    return ParsedTurn(thought, (Call(action, arguments),))


def react(  # noqa: PLR0913 - each has a default and is given by name
    tools: Sequence[ToolSource],
    *,
    user: User | None = None,
    examples: Sequence[Sequence[Message]] = (),
    max_turns: int = MAX_TURNS,
    patience: int | None = None,
    observation_limit: int = OBSERVATION_LIMIT,
    tool_seconds: float = TOOL_SECONDS,
    seconds: float | None = None,
    tokens: int | None = None,
    dollars: float | None = None,
    **params: Any,
) -> ToolLoop:
    """Let the model use tools through the ReAct text protocol.

    Args:
        tools: `@tool` functions, or classes with `@tool` methods, which are instantiated with the sample for each
            episode, so that episodes do not share state.
        user: answers calls of the tool `ask_to_user`; None means that the model does not get this tool.
        examples: example episodes with other tools, placed before the sample's input as turns of the conversation.
        max_turns: maximum number of turns of the model.
        patience: number of malformed turns in a row after which an episode ends; None means no limit.
        observation_limit: maximum length of an observation in characters; the rest is cut off with a note.
        tool_seconds: time limit of one tool call in seconds; a slower call fails, and the model reads the failure.
        seconds: time limit in seconds of all tool calls of an episode together; None means no limit.
        tokens: maximum number of tokens that the model may use in an episode, including prompts; None means no limit.
        dollars: maximum cost of the model in an episode, in US dollars; None means no limit.
        params: generation parameters; temperature 0.3 and top_p 0.5 unless given.
    """
    checked = {**PARAMETERS, **select_generation_params(react, params)}
    limits = (max_turns, patience, observation_limit, tool_seconds, seconds, tokens, dollars)
    return ToolLoop(ReActProtocol(examples), tools, user, *limits, checked)


def tool_loop(  # noqa: PLR0913 - each has a default and is given by name
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
    """Let the model use tools through the function calling of the OpenAI API.

    `react` describes the other arguments.

    Args:
        system: the agent's system prompt; empty means no prompt, and None means the default, which asks for `finish`.
        ending: the end of an episode. `finish` is a call of the tool `finish`, which is added to the tools; `text` is a
            plain text message without calls, as in most production agents.
    """
    checked = {**PARAMETERS, **select_generation_params(tool_loop, params)}
    if ending not in {"finish", "text"}:
        raise SettingsError(f"tool_loop was given ending={ending!r}; an episode ends by 'finish' or 'text'")
    default = _FUNCTIONS_SYSTEM if ending == "finish" else ""
    protocol = NativeProtocol(default if system is None else system, ending == "finish")
    limits = (max_turns, patience, observation_limit, tool_seconds, seconds, tokens, dollars)
    return ToolLoop(protocol, tools, user, *limits, checked)
