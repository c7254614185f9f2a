"""BFCL: does a model call the right functions with the right arguments, in one turn?

Patil et al., "The Berkeley Function Calling Leaderboard", ICML 2025. The published files of the Python categories are
read from `--data`; evalsuite ships none of them. Single-turn calls are scored by the rules of the leaderboard's AST
evaluation. Multi-turn calls are scored by their results and by the states of the called objects (see
`bfcl_multi_turn`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evalsuite.benchmarks.bfcl_multi_turn import CorrectTurns, MultiTurnSolver, map_class_modules
from evalsuite.core.errors import DatasetError, SettingsError, write_count
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Benchmark, Dataset, Model, Setup, Solver
from evalsuite.core.types import SHARE, Message, Sample, Score, ToolCall, Transcript
from evalsuite.samples.items import SourceItem, read_json_lines
from evalsuite.scorers.trajectories import ToolUse, are_calls_accepted, format_difference, match_calls, tool_uses
from evalsuite.tools.arguments import parse_arguments

CATEGORIES = (
    "simple_python", "simple", "multiple", "parallel", "parallel_multiple", "irrelevance",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance",
    "live_relevance",
)  # fmt: skip
"""Single-turn categories; version 3 of BFCL names the first category `simple`."""
SEVERAL_TURNS = tuple(f"multi_turn_{kind}" for kind in ("base", "miss_func", "miss_param", "long_context"))
NO_CALL = ("irrelevance", "live_irrelevance")  # Categories in which no function applies, so making no call is correct.
ANY_CALL = "live_relevance"  # In this category, an answer is correct if it calls any function.
_TYPES = {"dict": "object", "float": "number", "tuple": "array"}


@dataclass(frozen=True, slots=True)
class BfclOptions:
    """The arguments of `@benchmark("bfcl", ...)`."""

    categories: Sequence[str] | None = None  # The categories to run; None runs all categories in the folder.
    # Name of the importable package with the classes that the multi-turn categories need; None leaves out these
    # categories.
    classes: str | None = None
    max_tokens: int = 1024


def load_dataset(setup: Setup) -> Dataset:
    """Load one sample per question of the requested categories."""
    options = read_options("BFCL", BfclOptions, setup.args)
    if setup.data is None:
        raise SettingsError("bfcl has no shipped samples; name the folder of its files with --data=DIR (DIR/bfcl)")
    files = _map_categories_to_newest_files(setup.data, options)
    samples: list[Sample] = []
    for category, path in files.items():
        samples += _list_samples(path, category, options.classes if category in SEVERAL_TURNS else None)
    return Dataset(samples, ", ".join(path.name for path in files.values()))


def _map_categories_to_newest_files(folder: Path, options: BfclOptions) -> dict[str, Path]:
    asked, available = options.categories, (*CATEGORIES, *SEVERAL_TURNS) if options.classes else CATEGORIES
    if wrong := [name for name in asked or () if name not in available]:
        if wrong[0] in SEVERAL_TURNS:
            raise SettingsError(
                f"bfcl: the functions of {wrong[0]} are Python classes of the authors; name their package, which is "
                "then imported: @benchmark('bfcl', classes='bfcl_eval.eval_checker.multi_turn_eval.func_source_code')"
            )
        raise SettingsError(f"bfcl has no category {wrong[0]!r}; choose {', '.join(available)}")
    newest = {}
    for category in asked or available:
        paths = sorted(folder.glob(f"BFCL_v[0-9]_{category}.json"))
        if paths:
            newest[category] = paths[-1]
        elif asked:
            raise DatasetError(folder, "", "no such file", f"BFCL_v4_{category}.json")
    if not newest:
        raise DatasetError(folder, "", "no questions", "files BFCL_v4_<category>.json, as they were published")
    return newest


def _list_samples(path: Path, category: str, package: str | None) -> Iterator[Sample]:
    """Yield the samples of a category; only samples of several turns need the `package` of the released classes."""
    is_answered, answer_file = category not in (*NO_CALL, ANY_CALL), path.parent / "possible_answer" / path.name
    answers = {
        item.read("id", str): item.read("ground_truth", list) if package else _read_accepted_calls(item)
        for item in (read_json_lines(answer_file) if is_answered else ())
    }
    modules = map_class_modules(package) if package else {}

    @cache
    def read_tools(module: str) -> list[dict[str, Any]]:
        file = path.parent / "multi_turn_func_doc" / f"{module}.json"
        return [_make_openai_tool(item) for item in read_json_lines(file)]

    for item in read_json_lines(path):
        name = item.read("id", str)
        named = replace(item, where=f"{item.where}, id {name!r}")
        if is_answered and name not in answers:
            raise named.make_error("no answer", f"one in possible_answer/{path.name}")
        turns = [_read_messages(turn, item) for turn in item.read("question", list)]
        if package:
            classes = item.read("involved_classes", list)
            if unknown := [kind for kind in classes if kind not in modules]:
                raise named.make_error(f"the class {unknown[0]!r}", f"one of {package}")
            tools = {tool["function"]["name"]: tool for kind in classes for tool in read_tools(modules[kind])}
            functions = list(tools.values())
            about = {
                "turns": turns,
                "classes": classes,
                "initial_config": item.fields.get("initial_config") or {},
                "missed": item.fields.get("missed_function") or {},
            }
        else:
            if len(turns) != 1:
                raise item.make_error(f"{len(turns)} turns", "one turn", "question")
            functions = list(map(_make_openai_tool, item.read_items("function")))
            about = {"any_call": category == ANY_CALL}
        yield Sample(
            id=name,
            input=turns[0],
            tags={"category": category, "origin": "live" if category.startswith("live_") else "written"},
            metadata={"functions": functions, "calls": answers.get(name, []), **about},
        )


def _read_messages(turn: Any, item: SourceItem) -> list[Message]:
    try:
        return list(map(Message.from_openai, turn))
    except (KeyError, TypeError, AttributeError) as error:
        raise item.make_error(str(turn)[:60], "messages", "question") from error


def _read_accepted_calls(item: SourceItem) -> list[dict[str, Any]]:
    """Read the right calls: for each function, the list of accepted values of each parameter."""
    calls = [{name: call.read_item(name) for name in call.fields} for call in item.read_items("ground_truth")]
    return [
        {
            make_callable_name(name): {parameter: accepted.read(parameter, list) for parameter in accepted.fields}
            for name, accepted in call.items()
        }
        for call in calls
    ]


def make_callable_name(name: str) -> str:
    """Make a function's name valid for function calling: `math.factorial` becomes `math_factorial`."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _make_openai_tool(item: SourceItem) -> dict[str, Any]:
    name = item.read("name", str)
    parameters = replace(item, where=f"{item.where}, function {name!r}").read_item("parameters")
    parameters.read("properties", dict, {})
    if "required" in parameters.fields:
        parameters.read_list("required", str)
    return {
        "type": "function",
        "function": {
            "name": make_callable_name(name),
            "description": item.read("description", str),
            "parameters": _convert_schema(parameters),
        },
    }


def _convert_schema(schema: SourceItem) -> dict[str, Any]:
    """Convert BFCL's variant of JSON schema, which has the type `dict` instead of `object`, to JSON schema."""
    converted: dict[str, Any] = {}
    for key, value in schema.fields.items():
        if key == "properties" and isinstance(value, dict):
            inner = schema.read_item(key)
            converted[key] = {name: _convert_schema(inner.read_item(name)) for name in value}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            converted[key] = _convert_schema(schema.read_item(key))
        elif key == "type" and isinstance(value, str):
            if value != "any":
                converted[key] = _TYPES.get(value, value)
        else:
            converted[key] = value
    return converted


@dataclass(frozen=True, slots=True)
class BfclSolver:
    """Sends one request at temperature 0; its calls are recorded but never executed."""

    max_tokens: int
    multi_turn: MultiTurnSolver | None  # Solves the samples of the multi-turn categories.

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        if self.multi_turn and "turns" in sample.metadata:
            return await self.multi_turn(sample, model)
        conversation = sample.input if not isinstance(sample.input, str) else (Message("user", sample.input),)
        functions = sample.metadata["functions"]
        completion = await model.chat(conversation, tools=functions, temperature=0, max_tokens=self.max_tokens)
        events = tuple(map(make_call_event, completion.tool_calls))
        answer = Message("assistant", completion.text, completion.tool_calls)
        return Transcript(completion.text, (*conversation, answer), completion.reasoning, events)


def make_call_event(call: ToolCall) -> dict[str, Any]:
    """Make the transcript's event for a call that is recorded but not executed."""
    try:
        arguments, after = parse_arguments(call.arguments or "{}")
        faults = ["unparseable"] if after else []
    except ValueError:
        arguments, faults = {}, ["unparseable"]
    return {"kind": "call", "turn": 1, "tool": call.name, "arguments": arguments, "faults": faults}


_IGNORED = re.compile(r"[ ,./\-_*^]")


@dataclass(frozen=True, slots=True)
class Correct:
    """Scores `correct`: 1 if the model made exactly the expected calls, in any order; otherwise 0."""

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, Score]:
        """Score the calls of one turn; if no function applies, making no call is correct."""
        if "turns" in sample.metadata:
            return {}
        calls = tool_uses(transcript)
        # If several functions have the same name, use the first, as the leaderboard does.
        functions = [entry["function"] for entry in reversed(sample.metadata["functions"])]
        schemas = {function["name"]: function["parameters"] for function in functions}
        expected = [
            ToolUse(name, partial(_is_accepted_call, accepted, schemas.get(name, {})))
            for call in sample.metadata["calls"]
            for name, accepted in call.items()
        ]
        if any("unparseable" in event["faults"] for event in transcript.events):
            # As on the leaderboard, an answer whose calls cannot be parsed counts as an answer without calls.
            is_right = not expected and not sample.metadata["any_call"]
            return {"correct": Score(float(is_right), "the arguments of a call cannot be read")}
        if sample.metadata["any_call"]:
            return {"correct": Score(float(bool(calls)), "" if calls else "nothing was called")}
        right = are_calls_accepted("any_order", expected, calls)
        return {"correct": Score(float(right), "" if right else _describe_mistakes(sample, expected, calls))}


def _is_accepted_call(accepted: Mapping[str, Any], schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Tell whether a call has all required parameters, has no undocumented ones, and has only accepted values.

    The accepted value `""` means that a parameter may be missing; only a text parameter may have it as its value.
    """
    documented = schema.get("properties")
    return (
        set(schema.get("required", ())) <= arguments.keys()
        and (documented is None or arguments.keys() <= documented.keys())
        and are_accepted_arguments(accepted, arguments, documented or {})
        and all(
            (documented or {}).get(name, {}).get("type", "string") == "string"
            for name, value in arguments.items()
            if isinstance(value, str) and not _IGNORED.sub("", value)
        )
    )


def _describe_mistakes(sample: Sample, expected: Sequence[ToolUse], calls: Sequence[ToolUse]) -> str:
    if not expected:
        return f"no function fits; {write_count(len(calls), 'call')} made"
    wanted = [
        ToolUse(name, {key: values[0] for key, values in accepted.items() if values and values[0] != ""})
        for call in sample.metadata["calls"]
        for name, accepted in call.items()
    ]
    shown, places = list(calls), match_calls(expected, calls)
    for use, place in zip(wanted, places, strict=True):
        # Replace a right call by its expected form, so that the diff shows only wrong calls.
        if place is not None:
            shown[place] = use
    paired = sum(place is not None for place in places)
    difference = "; ".join(format_difference(wanted, shown))
    return f"{paired} of {write_count(len(expected), 'call')} right: {difference}"[:500]


def are_accepted_arguments(
    accepted: Mapping[str, Any],
    arguments: Mapping[str, Any],
    schemas: Mapping[str, Any] = MappingProxyType({}),
    *,
    in_object: bool = False,
) -> bool:
    """Tell whether each argument has an accepted value; an argument that accepts `""` may be missing.

    `schemas` are the JSON schemas of the parameters, by name.
    """
    several = {name: values if isinstance(values, list) else [values] for name, values in accepted.items()}
    return all(name in accepted for name in arguments) and all(
        any(
            matches_accepted_value(arguments[name], value, schemas.get(name, {}), in_object=in_object)
            for value in values
        )
        if name in arguments
        else "" in values
        for name, values in several.items()
    )


def matches_accepted_value(
    value: Any, accepted: Any, schema: Mapping[str, Any] = MappingProxyType({}), *, in_object: bool = False
) -> bool:
    """Tell whether an argument's value matches an accepted value by the leaderboard's rules.

    Texts are compared without case, spaces and the characters `,./-_*^`. If the accepted value is a float, an equal int
    is accepted, except in a list. If it is an int, a float is accepted only if the parameter's schema, or that of a
    list's items, has the type `number`. In an object, the leaderboard does not check types, and each field has its own
    list of accepted values.
    """
    if isinstance(value, str) and isinstance(accepted, str):
        one, other = (_IGNORED.sub("", text).lower().replace("'", '"') for text in (value, accepted))
        return one == other
    if isinstance(value, list) and isinstance(accepted, list):
        items = schema.get("items")
        inner = items if isinstance(items, Mapping) else {}
        return len(value) == len(accepted) and all(
            matches_accepted_value(one, other, inner, in_object=in_object)
            and (in_object or type(one) is type(other) or isinstance(one, float))
            for one, other in zip(value, accepted, strict=True)
        )
    if isinstance(value, dict) and isinstance(accepted, dict):
        return are_accepted_arguments(accepted, value, in_object=True)
    if isinstance(value, bool) or isinstance(accepted, bool):
        return value is accepted
    if isinstance(value, float) and isinstance(accepted, int) and not in_object and schema.get("type") != "number":
        return False
    return bool(value == accepted)


def _make_solver(setup: Setup) -> Solver:
    options = read_options("BFCL", BfclOptions, setup.args)
    multi_turn = MultiTurnSolver(options.classes, options.max_tokens) if options.classes else None
    return BfclSolver(options.max_tokens, multi_turn)


def _make_scorers(setup: Setup) -> Sequence[Any]:
    package = read_options("BFCL", BfclOptions, setup.args).classes
    return [Correct(), *([CorrectTurns(package)] if package else [])]


BFCL = Benchmark(
    name="bfcl",
    title="BFCL",
    load=load_dataset,
    solver=_make_solver,
    scorers=_make_scorers,
    metrics={"*": SHARE},
    primary="correct",
)
