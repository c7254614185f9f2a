"""The authors' own prompts, read from their repository, which the user names with `--data`.

Some stand in files of text, the others in the released Python code, as constants. That code is parsed and
never run.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import read_text
from evalsuite.core.errors import DatasetError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ZERO_SHOT = "Resources/sys_infer.txt"
FIVE_SHOT = "Resources/sys_infer_five_shot.txt"
EXAMPLES = "Resources/examples.txt"
RUNNER = "Code/Inference/inference.py"
JUDGE = "Code/Evaluation/util/process_utils.py"
DOCUMENTS_FIELD, EXAMPLES_FIELD = "{Tool Document}", "{examples}"
# The released functions that build a question to the judge, by what our scores call it.
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

    Attributes:
        system: the system message.
        user: the user's message in pieces, each a text or, if marked so, the name of a field.
    """

    system: str
    user: tuple[tuple[str, bool], ...]

    def filled(self, values: Mapping[str, str]) -> str:
        """The user's message with its fields."""
        return "".join(values[piece] if is_field else piece for piece, is_field in self.user)


@dataclass(frozen=True, slots=True)
class ReleasedPrompts:
    """What the released code says to models.

    Attributes:
        zero_shot: the system prompt, with a place for the tools' documents.
        five_shot: the same with a place for examples, filled already.
        reminder: said to a model whose arguments cannot be read.
        given_up: the turn that is added in the model's name when it did not finish within the limit.
        questions: to the judge: `intent`, `validity`, `integrity`, `match`, `quality`.
    """

    zero_shot: str
    five_shot: str
    reminder: str
    given_up: str
    questions: Mapping[str, ReleasedQuestion]


@cache
def read_prompts(folder: Path | None) -> ReleasedPrompts:
    """The prompts of a copy of the authors' repository.

    Raises:
        SettingsError: there is no folder to read them from.
        DatasetError: a file is missing, or does not hold what the released one holds.
    """
    if folder is None:
        raise SettingsError(
            "tool_eyes: the modes released and released_5shot ask in the authors' own words, which are not shipped; "
            "name a copy of their repository with --data=DIR (as DIR/tool_eyes)"
        )
    five_shot = _template(folder / FIVE_SHOT, DOCUMENTS_FIELD, EXAMPLES_FIELD)
    runner, judge = folder / RUNNER, folder / JUDGE
    return ReleasedPrompts(
        _template(folder / ZERO_SHOT, DOCUMENTS_FIELD),
        five_shot.replace(EXAMPLES_FIELD, read_text(folder / EXAMPLES)),
        _reminder(_parsed(runner), runner),
        _given_up(_parsed(runner), runner),
        {name: _question(_parsed(judge), function, judge) for name, function in _QUESTIONS.items()},
    )


def _template(path: Path, *fields: str) -> str:
    text = read_text(path)
    for field in fields:
        if field not in text:
            raise DatasetError(path, "", f"no place {field}", "the prompt as it was released")
    return text


def _parsed(path: Path) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # The released code writes "\\s" where it means r"\\s".
            warnings.simplefilter("ignore")
            return ast.parse(read_text(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DatasetError(path, "", f"invalid Python ({error})", "the code as it was released") from error


def _reminder(module: ast.Module, path: Path) -> str:
    """The value of the key `format` in the dict that the runner makes of arguments that it cannot read."""
    for key, value in _pairs(module):
        if key == "format":
            return value
    raise DatasetError(path, "", "no text under the key 'format'", "the code as it was released")


def _given_up(module: ast.Module, path: Path) -> str:
    """What the runner says in the model's name where it looks at `max_turn`."""
    for node in ast.walk(module):
        if isinstance(node, ast.If) and "max_turn" in ast.dump(node.test) and "finish" in ast.dump(node.test):
            for statement in node.body:
                for key, value in _pairs(statement):
                    if key == "value":
                        return value
    raise DatasetError(
        path, "", "no message for an episode that reaches max_turn", "the code as it was released"
    )


def _pairs(node: ast.AST) -> Iterator[tuple[str, str]]:
    """All keys and values of dicts below a node, where both are constant texts."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Dict):
            for key, value in zip(inner.keys, inner.values, strict=True):
                texts = [part.value for part in (key, value) if isinstance(part, ast.Constant)]
                if len(texts) == 2 and all(isinstance(text, str) for text in texts):
                    yield str(texts[0]), str(texts[1])


def _question(module: ast.Module, name: str, path: Path) -> ReleasedQuestion:
    """What a function of the evaluator assigns to `sys_prompt` and, with fields, to `user_input`."""
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name]
    assigned = {
        node.targets[0].id: node.value
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    system, user = assigned.get("sys_prompt"), assigned.get("user_input")
    if (
        not isinstance(system, ast.Constant)
        or not isinstance(system.value, str)
        or not isinstance(user, ast.JoinedStr)
    ):
        raise DatasetError(
            path, f"function {name}", "no texts sys_prompt and user_input", "the code as it was released"
        )
    return ReleasedQuestion(system.value, tuple(_piece(part, path, name) for part in user.values))


def _piece(part: ast.expr, path: Path, function: str) -> tuple[str, bool]:
    if isinstance(part, ast.Constant):
        return str(part.value), False
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and part.value.id in _FIELDS:
        return part.value.id, True
    shown = ast.unparse(part)[:60]
    raise DatasetError(path, f"function {function}", shown, f"one of the fields {', '.join(sorted(_FIELDS))}")
