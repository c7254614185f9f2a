"""ReAct (Yao et al., arXiv 2210.03629): thoughts and calls as plain text, for any model that can chat."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from evalsuite.core.keywords import generation_params
from evalsuite.core.types import Message
from evalsuite.solvers.episode import MAX_TURNS, OBSERVATION_LIMIT, PARAMETERS, TOOL_SECONDS, Call, ToolLoop, Turn
from evalsuite.tools.arguments import parse_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Completion, Sample
    from evalsuite.tools.documents import ToolDocument
    from evalsuite.tools.simulated import User
    from evalsuite.tools.worlds import ToolSource

FORM = """\
Thought: in a sentence or two, what you know so far and what to do next
Action: the name of one tool
Action Input: the tool's parameters and their values as one JSON object"""

SYSTEM = """\
You help a user by calling tools, one call at a time. Every message of yours has exactly these three parts \
and stops after them:
{form}

After each message you are shown what the tool returned, as an observation. When you can answer, or when you \
see that these tools cannot do it, call finish with your answer.

The tools and their parameters:
{documents}"""

EXAMPLES = """

The conversation begins with worked examples, which had other tools. Your task is the last request."""


@dataclass(frozen=True, slots=True)
class ReAct:
    """The text protocol: `Thought:`, `Action:`, `Action Input:`, in this order and with nothing after it."""

    examples: Sequence[Sequence[Message]] = ()  # Worked episodes in the form that the model should write.
    finishes: bool = True  # Whether a call of `finish` ends an episode.

    def opening(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:
        """Begin with a system message with the form and the tools, then the examples, then the sample's input."""
        shown = "\n".join(document.text() for document in documents)
        system = SYSTEM.replace("{form}", FORM).replace("{documents}", shown)
        if self.examples:
            system += EXAMPLES
        rest = (Message("user", sample.input),) if isinstance(sample.input, str) else sample.input
        return (Message("system", system), *chain.from_iterable(self.examples), *rest)

    def offer(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - the protocol's signature
        """Offer nothing, because the system message has the tools."""
        return ()

    def read(self, completion: Completion) -> Turn:
        return read_turn(completion.text)

    def said(self, completion: Completion) -> Message:
        """Return the text as the model wrote it, mistakes included."""
        return Message("assistant", completion.text)

    def show_observation(self, call: Call, observation: str) -> Message:  # noqa: ARG002 - the protocol's signature
        """Return the observation as a user message, because chat models without tools have no other role for it."""
        return Message("user", f"Observation: {observation}")

    def reminder(self, completion: Completion, turn: Turn) -> Sequence[Message]:  # noqa: ARG002 - likewise
        """Say what was wrong, and repeat the form."""
        return [Message("user", f"{turn.words} Please reply in this form and stop after it:\n{FORM}")]


def read_turn(text: str) -> Turn:
    """Read one message of the model.

    A turn is well-formed if it has the three keywords in order, a non-empty action, an input that parses as a JSON
    object or a Python dict, and nothing but white space after the input. Text before `Thought:` is allowed. If several
    things are wrong, the fault is the first of `keywords`, `empty_action`, `unparseable` and `redundant`.
    """
    _, first, rest = text.partition("Thought:")
    thought, second, rest = rest.partition("Action:")
    action, third, written = rest.partition("Action Input:")
    thought, action = thought.strip(), action.strip()
    if not (first and second and third):
        return Turn(thought, (), "keywords", "The message does not have its three parts in order.")
    if not action:
        return Turn(thought, (), "empty_action", "The second part names no tool.")
    try:
        arguments, after = parse_arguments(written)
    except ValueError as error:
        return Turn(thought, (), "unparseable", f"The third part cannot be read: {error}.")
    if after:
        return Turn(thought, (), "redundant", "The message goes on after the third part.")
    return Turn(thought, (Call(action, arguments),))


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
        user: answers `ask_to_user`, which is only offered if there is a user.
        examples: worked episodes with other tools, placed before the sample's input as turns of the conversation.
        max_turns: maximum number of turns of the model.
        patience: number of malformed turns in a row after which an episode is given up; None for no such limit.
        observation_limit: maximum length of an observation in characters; the rest is cut off with a note.
        tool_seconds: time limit of one call; a call that takes longer fails, and the model reads that.
        seconds: time limit of all calls of an episode together; None for no limit.
        tokens: maximum number of tokens that the model may use in an episode, prompts included; None for no limit.
        dollars: maximum cost of the model in an episode, in US dollars; None for no limit.
        params: generation parameters; temperature 0.3 and top_p 0.5 unless given.
    """
    checked = {**PARAMETERS, **generation_params(react, params)}
    limits = (max_turns, patience, observation_limit, tool_seconds, seconds, tokens, dollars)
    return ToolLoop(ReAct(examples), tools, user, *limits, checked)
