"""ReAct as the released code speaks it: its prompt, and its way of reading a turn."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.tool_eyes.released_files import DOCUMENTS_FIELD
from evalsuite.core.types import Message
from evalsuite.solvers.turns import Call, Turn
from evalsuite.tools.arguments import parse_arguments
from evalsuite.tools.documents import ASK_TO_USER, FINISH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Completion, Sample
    from evalsuite.tools.documents import ToolDocument

THOUGHT, ACTION, INPUT = "Thought:", "Action:", "Action Input:"
_STRINGS = re.compile(r"""\"(?:[^"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'""", re.DOTALL)
_NOT_PYTHON = re.compile(r"\b(?:true|false|null)\b")


@dataclass(frozen=True, slots=True)
class ReleasedReAct:
    """The released protocol.

    Attributes:
        system: the authors' system prompt.
        reminder_text: what a model reads whose arguments cannot be read.
        finishes: a call of `finish` ends an episode.
    """

    system: str
    reminder_text: str
    finishes: bool = True

    def opening(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:  # noqa: ARG002 - the protocol's signature
        """The authors' system prompt with the file of documents as it is, then the request."""
        shown = self.system.replace(DOCUMENTS_FIELD, documents_json(sample))
        return (Message("system", shown), Message("user", str(sample.input)))

    def offered(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - likewise
        """Nothing: the tools stand in the system message."""
        return ()

    def read(self, completion: Completion) -> Turn:
        return read_turn(completion.text)

    def said(self, completion: Completion) -> Message:
        """What the released code makes of a message, which is what later requests repeat."""
        parts = parts_of(completion.text)
        closing = '"}' if parts.action.lower() == FINISH.name and not parts.input.endswith('"}') else ""
        return Message("assistant", parts.text + closing)

    def observed(self, call: Call, observation: str) -> Message:
        """A user's reply as it is; a tool's result under the name that the released template gives it."""
        text = observation if call.name == ASK_TO_USER.name else f"Function: {observation}"
        return Message("user", text)

    def reminder(self, completion: Completion, turn: Turn) -> Sequence[Message]:  # noqa: ARG002 - likewise
        """The authors' reminder; a message that names no tool reads the failure of its call instead."""
        words = self.reminder_text if turn.fault == "unparseable" else f"Function: {turn.words}"
        return [Message("user", words)]


def documents_json(sample: Sample) -> str:
    """The documents of a sample's tools, as the released code writes them into its prompts."""
    return json.dumps(sample.metadata["documents"])


@dataclass(frozen=True, slots=True)
class Parts:
    """A message's three parts, without their keywords, and the message put together from them again."""

    thought: str
    action: str
    input: str
    text: str


def parts_of(message: str) -> Parts:
    """The parts of a message as the released code finds them; one that is absent is empty, an input `{}`."""
    thought = _between(message, THOUGHT, ACTION) or f"{THOUGHT} \n"
    action = _between(message, ACTION, INPUT) or f"{ACTION} \n"
    at = message.find(INPUT)
    written = message[at:].replace("\n ", "").replace("\n", "") if at >= 0 else f"{INPUT} {{}}"
    return Parts(
        thought.removeprefix(THOUGHT).strip(),
        action.removeprefix(ACTION).strip(),
        written.removeprefix(INPUT).strip(),
        thought + action + written,
    )


def _between(message: str, start: str, end: str) -> str:
    """The text from one keyword up to the next; empty where one of them is missing."""
    first = message.find(start)
    last = message.find(end, first + len(start)) if first >= 0 else -1
    return message[first:last] if last >= 0 else ""


def read_turn(text: str) -> Turn:
    """Reads one message as the released code does.

    The thought may be missing, a call of `finish` is of the demanded form whatever its input is, and the input of
    any other call must be a Python literal, so that JSON's true, false and null are not read.
    """
    parts = parts_of(text)
    if not parts.action:
        fault = "empty_action" if ACTION in text else "keywords"
        return Turn(parts.thought, (), fault, "The message names no tool.")
    name = parts.action.lower()
    if name == FINISH.name:
        return Turn(parts.thought, (Call(FINISH.name, {"answer": answer_of(parts.input)}),))
    try:
        arguments = _python_dict(parts.input)
    except ValueError as error:
        return Turn(parts.thought, (), "unparseable", f"The input cannot be read: {error}.")
    called = ASK_TO_USER.name if name == ASK_TO_USER.name else parts.action
    return Turn(parts.thought, (Call(called, arguments),))


def answer_of(written: str) -> str:
    """The answer in the input of `finish`: its field `answer`, or all of an input that has none."""
    closed = written if written.endswith('"}') else written + '"}'
    try:
        answer = _python_dict(closed)["answer"]
    except (ValueError, KeyError):
        return closed
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _python_dict(written: str) -> dict[str, Any]:
    arguments, after = parse_arguments(written)
    if after:
        raise ValueError("text follows the parameters")
    if _NOT_PYTHON.search(_STRINGS.sub("", written)):
        raise ValueError("true, false and null are not Python's")
    return arguments
