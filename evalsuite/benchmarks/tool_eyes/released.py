"""Run ToolEyes with the prompts, the protocol and the scores of the authors' released code.

The prompts are read from a copy of the authors' repository, which the user names with `--data`. Some prompts are text
files; others are constants in Python code, which is parsed but never run. The page docs/tool_eyes.md lists how the
released scores differ from the paper's formulas.
"""

import ast
import asyncio
import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from evalsuite.benchmarks.tool_eyes.dataset import Step, combine_capabilities, is_finished, list_judge_log, read_steps
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.protocols import Model
from evalsuite.core.types import Completion, Message, Sample, Score, Transcript
from evalsuite.samples.items import read_text
from evalsuite.solvers.episode import Call, ParsedTurn
from evalsuite.tools.arguments import parse_arguments
from evalsuite.tools.execution import ASK_TO_USER, FINISH, ToolDocument

ZERO_SHOT = "Resources/sys_infer.txt"
FIVE_SHOT = "Resources/sys_infer_five_shot.txt"
EXAMPLES = "Resources/examples.txt"
RUNNER = "Code/Inference/inference.py"
JUDGE = "Code/Evaluation/util/process_utils.py"
DOCUMENTS_FIELD, EXAMPLES_FIELD = "{Tool Document}", "{examples}"
# The released functions that write the judge's questions, keyed by evalsuite's name of the criterion.
_QUESTIONS = {
    "intent": "eval_thought_foucus",
    "validity": "eval_thought_validity",
    "integrity": "eval_thought_quality",
    "match": "eval_action_thought_matching",
    "quality": "eval_relavance",
}
_FIELDS = {"document", "query", "thought_chain", "thought", "tool", "response"}


@dataclass(frozen=True, slots=True)
class ReleasedQuestion:
    """A question to the judge.

    The user message is a list of pieces. A piece is a pair: the name of a field and True, or a fixed text and False.
    """

    system: str
    user: tuple[tuple[str, bool], ...]

    def fill_template(self, values: Mapping[str, str]) -> str:
        return "".join(values[piece] if is_field else piece for piece, is_field in self.user)


@dataclass(frozen=True, slots=True)
class ReleasedPrompts:
    """The prompts of the released code."""

    zero_shot: str  # The system prompt, with a field for the tools' documents.
    five_shot: str  # The system prompt that also contains the authors' five examples.
    reminder: str  # The message that the model gets if the arguments of its call cannot be read.
    given_up: str  # The turn that the released runner adds if an episode reaches the limit of turns.
    # Questions to the judge: `intent`, `validity`, `integrity`, `match`, `quality`.
    questions: Mapping[str, ReleasedQuestion]


@cache
def read_prompts(folder: Path | None) -> ReleasedPrompts:
    """Read the prompts from a copy of the authors' repository."""
    if folder is None:
        raise SettingsError(
            "tool_eyes: the modes released and released_5shot ask in the authors' own words, which are not shipped; "
            "name a copy of their repository with --data=DIR (as DIR/tool_eyes)"
        )
    five_shot = _read_prompt_template(folder / FIVE_SHOT, DOCUMENTS_FIELD, EXAMPLES_FIELD)
    runner, judge = _parse_python_file(folder / RUNNER), _parse_python_file(folder / JUDGE)
    # The runner replies with the text under `format` to unreadable arguments. If an episode reaches `max_turn`, it adds
    # the text under `value` as the model's last turn.
    at_limit = [
        statement
        for node in ast.walk(runner)
        if isinstance(node, ast.If) and "max_turn" in ast.dump(node.test) and "finish" in ast.dump(node.test)
        for statement in node.body
    ]
    return ReleasedPrompts(
        _read_prompt_template(folder / ZERO_SHOT, DOCUMENTS_FIELD),
        five_shot.replace(EXAMPLES_FIELD, read_text(folder / EXAMPLES)),
        _find_text([runner], "format", folder / RUNNER, "no text under the key 'format'"),
        _find_text(at_limit, "value", folder / RUNNER, "no message for an episode that reaches max_turn"),
        {name: _read_question(judge, function, folder / JUDGE) for name, function in _QUESTIONS.items()},
    )


def _read_prompt_template(path: Path, *fields: str) -> str:
    text = read_text(path)
    for field in fields:
        if field not in text:
            raise DatasetError(path, "", f"no place {field}", "the prompt as it was released")
    return text


def _parse_python_file(path: Path) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # Ignore warnings, because the released code has invalid escapes such as "\\s".
            warnings.simplefilter("ignore")
            return ast.parse(read_text(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DatasetError(path, "", f"invalid Python ({error})", "the code as it was released") from error


def _find_text(nodes: Iterable[ast.AST], name: str, path: Path, problem: str) -> str:
    """Find the first text under the key `name` in a dict of the syntax trees; raise DatasetError if there is none."""
    for inner in (inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Dict)):
        for key, value in zip(inner.keys, inner.values, strict=True):
            texts = [part.value for part in (key, value) if isinstance(part, ast.Constant)]
            if len(texts) == 2 and texts[0] == name and isinstance(texts[1], str):
                return texts[1]
    raise DatasetError(path, "", problem, "the code as it was released")


def _read_question(module: ast.Module, name: str, path: Path) -> ReleasedQuestion:
    """Read the judge's prompt, which an evaluator function assigns to the variables `sys_prompt` and `user_input`."""
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name]
    assigned = {
        node.targets[0].id: node.value
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    system, user = assigned.get("sys_prompt"), assigned.get("user_input")
    if not isinstance(system, ast.Constant) or not isinstance(system.value, str) or not isinstance(user, ast.JoinedStr):
        raise DatasetError(
            path, f"function {name}", "no texts sys_prompt and user_input", "the code as it was released"
        )
    pieces: list[tuple[str, bool]] = []
    for part in user.values:
        if isinstance(part, ast.Constant):
            pieces.append((str(part.value), False))
        elif isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and part.value.id in _FIELDS:
            pieces.append((part.value.id, True))
        else:
            shown, expected = ast.unparse(part)[:60], f"one of the fields {', '.join(sorted(_FIELDS))}"
            raise DatasetError(path, f"function {name}", shown, expected)
    return ReleasedQuestion(system.value, tuple(pieces))


GIVEN_UP = "I cannot handle the task."
REASONS = ("trying too many times", "During execution, an error occurs.")
"""Phrases that identify the turn that the runner adds to an unfinished conversation."""


def make_conversation_transcript(turns: Sequence[Mapping[str, Any]]) -> Transcript:
    """Make the transcript of a conversation in the authors' files."""
    written = [str(turn["value"]) for turn in turns if turn.get("from") == "assistant"]
    last = written[-1] if written else ""
    is_given_up = GIVEN_UP in last and any(reason in last for reason in REASONS)
    events: list[Mapping[str, Any]] = []
    for number, text in enumerate(written[: len(written) - is_given_up], 1):
        turn = parse_model_message(text)
        events.append({"kind": "turn", "turn": number, "thought": turn.thought, "fault": turn.fault})
        events += [
            {"kind": "call", "turn": number, "tool": call.name, "arguments": call.arguments} for call in turn.calls
        ]
    return Transcript("", events=tuple(events), facts={"ended": "turn limit" if is_given_up else FINISH.name})


THOUGHT, ACTION, INPUT = "Thought:", "Action:", "Action Input:"
_STRINGS = re.compile(r"""\"(?:[^"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'""", re.DOTALL)
_NOT_PYTHON = re.compile(r"\b(?:true|false|null)\b")


@dataclass(frozen=True, slots=True)
class ReleasedReAct:
    """The message format of the released code; `reminder_text` is the reply to unreadable arguments."""

    system: str
    reminder_text: str
    finishes: bool = True

    def make_opening_messages(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:  # noqa: ARG002 - the protocol's signature
        shown = self.system.replace(DOCUMENTS_FIELD, json.dumps(sample.metadata["documents"]))
        return (Message("system", shown), Message("user", str(sample.input)))

    def list_request_tools(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - likewise
        """Pass no functions to the model, because the system message lists the tools."""
        return ()

    def parse_completion(self, completion: Completion) -> ParsedTurn:
        return parse_model_message(completion.text)

    def make_history_message(self, completion: Completion) -> Message:
        """Rebuild the model's message in the form that the released code uses in later requests."""
        parts = split_message(completion.text)
        closing = '"}' if parts.action.lower() == FINISH.name and not parts.input.endswith('"}') else ""
        return Message("assistant", parts.text + closing)

    def make_observation_message(self, call: Call, observation: str) -> Message:
        """Show the model a user's reply unchanged, and a tool's result after `Function:`, as the released code does."""
        return Message("user", observation if call.name == ASK_TO_USER.name else f"Function: {observation}")

    def make_reminder_messages(self, completion: Completion, turn: ParsedTurn) -> Sequence[Message]:  # noqa: ARG002 - likewise
        """Reply to unreadable arguments with the authors' reminder, and to a missing tool name with a tool's error."""
        return [Message("user", self.reminder_text if turn.fault == "unparseable" else f"Function: {turn.words}")]


@dataclass(frozen=True, slots=True)
class MessageParts:
    """The thought, action and input of a message without their keywords, and the message rebuilt from these parts."""

    thought: str
    action: str
    input: str
    text: str


def split_message(message: str) -> MessageParts:
    """Split a message as the released code does; a missing thought or action is empty, a missing input is `{}`."""
    thought = _extract_section(message, THOUGHT, ACTION) or f"{THOUGHT} \n"
    action = _extract_section(message, ACTION, INPUT) or f"{ACTION} \n"
    at = message.find(INPUT)
    written = message[at:].replace("\n ", "").replace("\n", "") if at >= 0 else f"{INPUT} {{}}"
    return MessageParts(
        thought.removeprefix(THOUGHT).strip(),
        action.removeprefix(ACTION).strip(),
        written.removeprefix(INPUT).strip(),
        thought + action + written,
    )


def _extract_section(message: str, start: str, end: str) -> str:
    first = message.find(start)
    last = message.find(end, first + len(start)) if first >= 0 else -1
    return message[first:last] if last >= 0 else ""


def parse_model_message(text: str) -> ParsedTurn:
    """Parse one message of the model as the released code does.

    A message may lack a thought. A call of `finish` is well-formed with any input. The input of any other call must be
    a Python literal, so JSON's true, false and null are malformed.
    """
    parts = split_message(text)
    if not parts.action:
        fault = "empty_action" if ACTION in text else "keywords"
        return ParsedTurn(parts.thought, (), fault, "The message names no tool.")
    name = parts.action.lower()
    if name == FINISH.name:
        return ParsedTurn(parts.thought, (Call(FINISH.name, {"answer": read_answer(parts.input)}),))
    try:
        arguments = _parse_python_dict(parts.input)
    except ValueError as error:
        return ParsedTurn(parts.thought, (), "unparseable", f"The input cannot be read: {error}.")
    called = ASK_TO_USER.name if name == ASK_TO_USER.name else parts.action
    return ParsedTurn(parts.thought, (Call(called, arguments),))


def read_answer(written: str) -> str:
    """Read the answer from the input of `finish`: its field `answer` or, if the field is missing, the whole input."""
    closed = _close_quote_and_brace(written)
    try:
        answer = _parse_python_dict(closed)["answer"]
    except (ValueError, KeyError):
        return closed
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


_KEY, _VALUE = re.compile(r"'[^,\"]*':"), re.compile(r":\s*(['\"][^}]*)")


def read_shown_answer(written: str) -> str:
    """Read the answer as the released evaluator shows it to its judge.

    If the field `answer` cannot be read, the evaluator shows a dictionary of the keys and values that two patterns
    find. A key is a text in single quotes. A value begins with a quote after a colon and ends before a brace; missing
    values are empty. Two backslashes become one, before `answer` is read and again before the search. Only for reading
    `answer`, a backslash with an n before a backslash is deleted.
    """
    closed = _close_quote_and_brace(written).replace("\\\\", "\\")
    try:
        return str(_parse_python_dict(closed.replace("\\n\\", "\\"))["answer"])
    except (ValueError, KeyError):
        closed = closed.replace("\\\\", "\\")
        keys = [key.replace(":", "").strip()[1:-1] for key in _KEY.findall(closed)]
        values = [value.strip()[1:-1] for value in _VALUE.findall(closed)]
        return str(dict(zip(keys, values + [""] * len(keys), strict=False)))


def _close_quote_and_brace(written: str) -> str:
    return written if written.endswith('"}') else written + '"}'


def _parse_python_dict(written: str) -> dict[str, Any]:
    arguments, after = parse_arguments(written)
    if after:
        raise ValueError("text follows the parameters")
    if _NOT_PYTHON.search(_STRINGS.sub("", written)):
        raise ValueError("true, false and null are not Python's")
    return arguments


JUDGE_PARAMETERS: Mapping[str, Any] = {"temperature": 0, "top_p": 0.5, "max_tokens": 1024}
_SCORE_LINE = re.compile(r"Evaluation Score:([^\n]*)")
_SCORE = re.compile(r"10|\d")


async def judge_capabilities(
    sample: Sample, transcript: Transcript, judge: Model, prompts: ReleasedPrompts, rules: Mapping[str, float]
) -> dict[str, float | Score]:
    """Return the capabilities that the judge scores, their parts, and `overall`; an unreadable score counts as 0.

    `rules` are the scores that need no judge.
    """
    steps = read_steps(transcript)
    written = [message.content for message in transcript.messages if message.role == "assistant"]
    if not is_finished(transcript):
        # As in the released evaluator, the questions also show the turn that the released runner adds.
        written.append(prompts.given_up)
        steps.append(Step(split_message(prompts.given_up).thought, "added", ()))
    chain = _format_thoughts(steps)
    questions: dict[str, dict[str, str]] = {
        "intent": {"thought_chain": _format_thoughts(steps, prompts.reminder)},
        "validity": {"thought_chain": chain},
        "integrity": {"thought_chain": chain},
        "quality": {"response": read_shown_answer(split_message(written[-1]).input)},
    }
    for number, (step, text) in enumerate(zip(steps, written, strict=True), 1):
        questions[f"match {number}"] = {"thought": step.thought, "tool": split_message(text).action}
    documents, logs = json.dumps(sample.metadata["documents"]), dict[str, list[Mapping[str, Any]]]()

    async def ask_for_score(name: str, values: Mapping[str, str]) -> float:
        question = prompts.questions[name.partition(" ")[0]]
        prompt = question.fill_template({"document": documents, "query": str(sample.input), **values})
        completion = await judge.chat([Message("system", question.system), Message("user", prompt)], **JUDGE_PARAMETERS)
        logs[name] = [
            {"role": "user", "content": prompt.replace(documents, "(the tools' documents)")},
            {"role": "assistant", "content": completion.text},
        ]
        return read_score(completion.text)

    scores = await asyncio.gather(*(ask_for_score(*question) for question in questions.items()))
    intent, validity, integrity, quality, *matches = scores
    # As in the released evaluator, leave out malformed turns other than the last turn.
    last = len(matches) - 1
    counted = [match for at, match in enumerate(matches) if steps[at].is_well_formed or at == last]
    match = sum(counted) / len(counted)
    parts = {"intent": intent, "validity": validity, "integrity": integrity, "match": match, "quality": quality}
    return combine_capabilities(parts, rules["reality"] * match, rules["format_alignment"], list_judge_log(logs))


def _format_thoughts(steps: Sequence[Step], reminder: str | None = None) -> str:
    """Write the thoughts by turn as one text; with the reminder, also write the user's messages between them."""
    lines = []
    for number, step in enumerate(steps, 1):
        lines.append(f"Turn {number}:\n{step.thought}")
        if reminder is not None:
            replies = [call["observation"] for call in step.calls if call["tool"] == ASK_TO_USER.name]
            said = [reminder, *replies] if step.fault == "unparseable" else replies
            lines += [f"User request:\n{text}" for text in said]
    return "\n\n".join(lines)


def read_score(text: str) -> float:
    """Read the first whole number from 0 to 10 on the score line, divided by 10; return 0 without a number."""
    line = _SCORE_LINE.search(text)
    number = _SCORE.search(line[1]) if line else None
    return int(number[0]) / 10 if number else 0.0
