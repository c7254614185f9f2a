"""Reads BFCL's published files: questions with their functions, and the calls that are right."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import expect, read_json_lines, take
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Dataset
from evalsuite.core.types import Message, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evalsuite.core.protocols import Setup

CATEGORIES = (
    "simple_python", "simple", "multiple", "parallel", "parallel_multiple", "irrelevance",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance",
    "live_relevance",
)  # fmt: skip
"""Single-turn categories; version 3 calls the first one `simple`."""
NO_CALL = ("irrelevance", "live_irrelevance")
"""Categories in which no function fits, so that none should be called."""
ANY_CALL = "live_relevance"
"""The category in which some function fits, whichever."""
_TYPES = {"dict": "object", "float": "number", "tuple": "array"}


@dataclass(frozen=True, slots=True)
class BfclOptions:
    """The arguments of `@benchmark("bfcl", ...)`.

    Attributes:
        categories: those asked for; None takes all that are there.
        max_tokens: of an answer.
    """

    categories: Sequence[str] | None = None
    max_tokens: int = 1024

    @classmethod
    def of(cls, setup: Setup) -> BfclOptions:
        """The options of a setup.

        Raises:
            SettingsError: there is no such option.
        """
        return read_options("BFCL", cls, setup.args)


def load(setup: Setup) -> Dataset:
    """One sample a question of the categories that are there, or that are asked for.

    Raises:
        SettingsError: there is no folder, or a category is not known.
        DatasetError: a file is missing or not of the published form.
    """
    options = BfclOptions.of(setup)
    if setup.data is None:
        raise SettingsError(
            "bfcl has no shipped samples; name the folder of its files with --data=DIR (DIR/bfcl)"
        )
    files = _files(setup.data, options.categories)
    samples = [sample for category, path in files.items() for sample in _samples(path, category)]
    return Dataset(samples, ", ".join(path.name for path in files.values()))


def _files(folder: Path, asked: Sequence[str] | None) -> dict[str, Path]:
    if wrong := [name for name in asked or () if name not in CATEGORIES]:
        raise SettingsError(f"bfcl knows no category {wrong[0]!r}; there are {', '.join(CATEGORIES)}")
    newest = {}
    for category in asked or CATEGORIES:
        paths = sorted(folder.glob(f"BFCL_v[0-9]_{category}.json"))
        if paths:
            newest[category] = paths[-1]
        elif asked:
            raise DatasetError(folder, "", "no such file", f"BFCL_v4_{category}.json")
    if not newest:
        raise DatasetError(
            folder, "", "no questions", "files BFCL_v4_<category>.json, as they were published"
        )
    return newest


def _samples(path: Path, category: str) -> Iterator[Sample]:
    answers = (
        {} if category in (*NO_CALL, ANY_CALL) else _answers(path.parent / "possible_answer" / path.name)
    )
    for place, record in read_json_lines(path):
        name = take(record, "id", str, path, place)
        if category not in (*NO_CALL, ANY_CALL) and name not in answers:
            raise DatasetError(
                path, f"{place}, id {name!r}", "no answer", f"one in possible_answer/{path.name}"
            )
        yield Sample(
            id=name,
            input=_question(record, path, place),
            tags={"category": category, "origin": "live" if category.startswith("live_") else "written"},
            metadata={
                "functions": [
                    _function(expect(function, dict, path, place), path, place)
                    for function in take(record, "function", list, path, place)
                ],
                "calls": answers.get(name, []),
                "any_call": category == ANY_CALL,
            },
        )


def _question(record: Mapping[str, Any], path: Path, place: str) -> tuple[Message, ...]:
    turns = take(record, "question", list, path, place)
    if len(turns) != 1:
        raise DatasetError(path, f"{place}, field 'question'", f"{len(turns)} turns", "one turn")
    try:
        return tuple(Message.from_openai(message) for message in turns[0])
    except (KeyError, TypeError, AttributeError) as error:
        raise DatasetError(path, f"{place}, field 'question'", str(turns[0])[:60], "messages") from error


def _answers(path: Path) -> dict[str, list[dict[str, Any]]]:
    """By question the calls that are right, as data for `trajectories.read_call`."""
    answers = {}
    for place, record in read_json_lines(path):
        calls = take(record, "ground_truth", list, path, place)
        answers[take(record, "id", str, path, place)] = [
            {callable_name(name): accepted for name, accepted in expect(call, dict, path, place).items()}
            for call in calls
        ]
    return answers


def callable_name(name: str) -> str:
    """A function's name as function calling takes it: `math.factorial` is `math_factorial`."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _function(written: Mapping[str, Any], path: Path, place: str) -> dict[str, Any]:
    """A function's document in the OpenAI format."""
    name = take(written, "name", str, path, place)
    return {
        "type": "function",
        "function": {
            "name": callable_name(name),
            "description": take(written, "description", str, path, place),
            "parameters": _schema(take(written, "parameters", dict, path, f"{place}, function {name!r}")),
        },
    }


def _schema(written: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema of one in BFCL's words, in which an object is a `dict`."""
    schema: dict[str, Any] = {}
    for key, value in written.items():
        if key == "properties" and isinstance(value, dict):
            schema[key] = {name: _schema(inner) for name, inner in value.items()}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            schema[key] = _schema(value)
        elif key == "type" and isinstance(value, str):
            if value != "any":
                schema[key] = _TYPES.get(value, value)
        else:
            schema[key] = value
    return schema
