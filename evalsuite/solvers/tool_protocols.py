"""Two formats of tool calls: the function calling of the OpenAI API, and ReAct.

ReAct (Yao et al., arXiv 2210.03629) works with every chat model, because thoughts and calls are plain text.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import select_generation_params
from evalsuite.core.types import Completion, Message, Sample
from evalsuite.gateway.handle import convert_prompt
from evalsuite.solvers.episode import MAX_TURNS, OBSERVATION_LIMIT, PARAMETERS, TOOL_SECONDS, Call, ParsedTurn, ToolLoop
from evalsuite.tools.arguments import parse_arguments
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
    """The native protocol: the model's server returns tool calls separately from text.

    A turn is well-formed if it has a call, and if each call has a name and arguments that can be parsed. Its thought is
    the message's text or, without text, its reasoning. Without the tool `finish`, a message without calls is an answer.
    """

    system: str = _FUNCTIONS_SYSTEM  # The text of the system message; if empty, no system message is sent.
    finishes: bool = True  # Whether the tool `finish` ends an episode.

    def make_opening_messages(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:  # noqa: ARG002 - the protocol's signature
        prompt = convert_prompt(sample.input)
        return (Message("system", self.system), *prompt) if self.system else prompt

    def list_request_tools(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:
        return [document.openai() for document in documents]

    def parse_completion(self, completion: Completion) -> ParsedTurn:
        """Read the calls in a message; a malformed message has the fault `no_call`, `empty_action` or `unparseable`."""
        thought = completion.text.strip() or completion.reasoning.strip()
        if not completion.tool_calls and not self.finishes:
            return ParsedTurn(completion.reasoning.strip(), answer=completion.text.strip())
        if not completion.tool_calls:
            return ParsedTurn(thought, (), "no_call", "The message calls no tool.")
        calls = []
        for written in completion.with_distinct_call_ids().tool_calls:
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
        """Return the message with repaired calls, because servers refuse tool calls with invalid names or arguments."""
        calls = []
        for call in completion.with_distinct_call_ids().tool_calls:
            try:
                arguments, _ = parse_arguments(call.arguments)
            except ValueError:
                arguments = {}
            name = _NAME.sub("_", call.name.strip())[:64] or "unnamed"
            calls.append(replace(call, name=name, arguments=json.dumps(arguments, ensure_ascii=False)))
        return Message("assistant", completion.text, tuple(calls))

    def make_observation_message(self, call: Call, observation: str) -> Message:
        return Message("tool", observation, tool_call_id=call.id)

    def make_reminder_messages(self, completion: Completion, turn: ParsedTurn) -> Sequence[Message]:
        """Answer each call with an explanation of the fault, because the protocol requires an answer to every call."""
        words, calls = f"{turn.words} {REMINDER}", completion.with_distinct_call_ids().tool_calls
        answers = [Message("tool", words, tool_call_id=call.id) for call in calls]
        return answers or [Message("user", words)]


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
    """The ReAct text protocol: `Thought:`, `Action:`, `Action Input:` in this order, without text after the input."""

    examples: Sequence[Sequence[Message]] = ()  # Example episodes, written in the form in which the model should write.
    finishes: bool = True  # Whether the tool `finish` ends an episode.

    def make_opening_messages(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:
        shown = "\n".join(document.text() for document in documents)
        system = _REACT_SYSTEM.replace("{form}", FORM).replace("{documents}", shown)
        if self.examples:
            system += _EXAMPLES
        return (Message("system", system), *chain.from_iterable(self.examples), *convert_prompt(sample.input))

    def list_request_tools(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - the protocol's signature
        """Return an empty list: in this protocol, the system message describes the tools."""
        return ()

    def parse_completion(self, completion: Completion) -> ParsedTurn:
        return parse_turn(completion.text)

    def make_history_message(self, completion: Completion) -> Message:
        """Return the message's text as the model wrote it, with its mistakes."""
        return Message("assistant", completion.text)

    def make_observation_message(self, call: Call, observation: str) -> Message:  # noqa: ARG002 - the protocol's signature
        """Return the observation (result) as a user message, because models without tool calls have no role for it."""
        return Message("user", f"Observation: {observation}")

    def make_reminder_messages(self, completion: Completion, turn: ParsedTurn) -> Sequence[Message]:  # noqa: ARG002 - likewise
        return [Message("user", f"{turn.words} Please reply in this form and stop after it:\n{FORM}")]


def parse_turn(text: str) -> ParsedTurn:
    """Parse one message of the model.

    In a well-formed turn, the keywords `Thought:`, `Action:` and `Action Input:` are in this order, and the text after
    `Action:` is not empty. The text after `Action Input:` is a JSON object or a Python dict, followed by nothing but
    white space. The model may write other text before `Thought:`. Faults are checked in the order `keywords`,
    `empty_action`, `unparseable`, `redundant`; only the first is reported.
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
    """Let the model use tools by ReAct, which writes calls as plain text.

    Args:
        tools: `@tool` functions, or classes with `@tool` methods. Each episode makes its own object of each class, from
            the sample, so that episodes do not share state. The tool `finish` is added, and `ask_to_user` if there is a
            user, unless a source already documents a tool of this name.
        user: the person who answers the model's questions by the tool `ask_to_user`; None means no such tool.
        examples: example episodes with other tools, which precede the sample's input in the conversation.
        max_turns: how many turns the model may take.
        patience: number of malformed turns in a row after which the episode ends; None means no limit.
        observation_limit: maximum characters of an observation (a tool's result); a note tells what is cut off.
        tool_seconds: time limit of one tool call in seconds; a slower call fails, and the model reads that it failed.
        seconds: time limit in seconds for all tool calls of an episode together; None means no limit.
        tokens: how many tokens, including prompts, the model may use in an episode; None means no limit.
        dollars: how much the model may cost in an episode, in US dollars; None means no limit.
        params: generation parameters; the defaults of temperature and top_p are 0.3 and 0.5.
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
    """Let the model use tools by the OpenAI API's function calling.

    The arguments that are not listed here are described in `react`.

    Args:
        system: the agent's system prompt; empty for no prompt; None for the default, which asks to call `finish`.
        ending: how an episode ends. `finish`: by a call of the tool `finish`, which is added to the tools. `text`: by a
            message without calls, as in most production agents.
    """
    checked = {**PARAMETERS, **select_generation_params(tool_loop, params)}
    if ending not in {"finish", "text"}:
        raise SettingsError(f"tool_loop was given ending={ending!r}; an episode ends by 'finish' or 'text'")
    default = _FUNCTIONS_SYSTEM if ending == "finish" else ""
    protocol = NativeProtocol(default if system is None else system, ending == "finish")
    limits = (max_turns, patience, observation_limit, tool_seconds, seconds, tokens, dollars)
    return ToolLoop(protocol, tools, user, *limits, checked)
