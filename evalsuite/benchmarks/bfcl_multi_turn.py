"""Run BFCL's multi-turn categories, in which several requests are sent to an agent whose functions share a state.

The agent's functions are methods of the authors' Python classes, which evalsuite does not ship. The user names a
package with these classes, for example the package that `pip install --no-deps bfcl-eval` installs.
"""

import ast
import copy
import dataclasses
import json
import pkgutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.protocols import Model
from evalsuite.core.threads import run_in_thread
from evalsuite.core.types import Message, Sample, Score, Transcript
from evalsuite.solvers.episode import Episode
from evalsuite.solvers.tool_protocols import tool_loop
from evalsuite.tools.declare import DeclaredTool, PythonFunction
from evalsuite.tools.execution import CallFault, Registry, ToolDocument
from evalsuite.tools.worlds import World, open_tools

MOST_STEPS = 21  # Maximum model messages per request; the leaderboard stops after the 21st message with a call.
MORE_FUNCTIONS = "You have more functions now. Please try again with them."


@cache
def map_class_modules(package: str) -> Mapping[str, str]:
    """Find the module of each class in a package by parsing its files, without importing them."""
    try:
        folders = list(import_module(package).__path__)
    except (ImportError, AttributeError) as error:
        raise SettingsError(
            f"bfcl: classes={package!r} cannot be imported as a package ({error}); install it, for example with "
            "`pip install --no-deps bfcl-eval`"
        ) from error
    modules: dict[str, str] = {}
    for folder in folders:
        for module in pkgutil.iter_modules([folder]):
            path = Path(folder) / f"{module.name}.py"
            tree = ast.parse(path.read_text("utf-8")) if path.is_file() else ast.Module([], [])
            modules |= {node.name: module.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return modules


def make_world(package: str, sample: Sample) -> Any:
    """Make an object whose tools are a sample's functions.

    Its attribute `instances` maps the names of the authors' classes to the objects that the functions act on, in their
    initial state.
    """
    modules, about = map_class_modules(package), sample.metadata
    instances = {}
    for name in about["classes"]:
        made = instances[name] = getattr(import_module(f"{package}.{modules[name]}"), name)()
        if hasattr(made, "_load_scenario"):
            config = copy.deepcopy(about["initial_config"].get(name, {}))
            made._load_scenario(config, long_context="long_context" in sample.tags["category"])  # noqa: SLF001 - theirs

    def make_method(name: str) -> Callable[..., str]:
        return lambda self, **arguments: call_function(self.instances, name, (), arguments)

    documents = [ToolDocument(**function["function"]) for function in about["functions"]]
    tools = {each.name: DeclaredTool(each, PythonFunction(make_method(each.name))) for each in documents}
    return type("FunctionWorld", (), {**tools, "instances": instances})()


def call_function(instances: Mapping[str, Any], name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> str:
    """Call a function; return the text that the leaderboard's checker would write for its result or its error."""
    owner = next((made for made in reversed(instances.values()) if hasattr(made, name)), None)  # type: ignore[call-overload]
    try:
        if owner is None or name.startswith("_"):
            raise NameError(f"name {name!r} is not defined")
        result = getattr(owner, name)(*positional, **named)
    except Exception as error:  # noqa: BLE001 - whatever a class of the authors raises
        return f"Error during execution: {error}"
    if isinstance(result, dict):
        with suppress(TypeError, ValueError):
            return json.dumps(result)
    return str(result)


def run_expected_call(instances: Mapping[str, Any], text: str) -> str:
    """Run one of the expected calls; it is a text with literal arguments, such as `mv(source='a', destination='b')`."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call):
            raise TypeError("it is not a call")
        values = [ast.literal_eval(value) for value in call.args]
        named = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, TypeError, ValueError) as error:
        raise ScoringError(f"bfcl: the right call {text[:200]!r} cannot be read: {error}") from error
    return call_function(instances, ast.unparse(call.func), values, named)


class _UncheckedRegistry(Registry):
    """Passes the arguments of known functions unchanged, because the authors' classes check the arguments."""

    def convert_call_arguments(
        self, name: str, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Any], tuple[CallFault, ...]]:
        """Return a known function's arguments unchanged, with no faults."""
        return (dict(arguments), ()) if name in self else super().convert_call_arguments(name, arguments)


@dataclass(frozen=True, slots=True)
class MultiTurnSolver:
    """Sends a sample's requests one after another; for each, the model calls functions until it answers with text."""

    package: str
    max_tokens: int

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        world = World(partial(make_world, self.package), outside=False)
        loop = tool_loop(
            [world],
            system="",
            ending="text",
            max_turns=MOST_STEPS,
            patience=1,
            temperature=0,
            max_tokens=self.max_tokens,
        )
        async with open_tools([world], sample, getattr(model, "effects", None)) as opened:
            episode = Episode(loop, dataclasses.replace(sample, input=()), model, opened)
            for number, messages in enumerate(sample.metadata["turns"]):
                later = {name for at, names in sample.metadata["missed"].items() if int(at) > number for name in names}
                episode.registry = _UncheckedRegistry(tool for tool in opened.tools if tool.document.name not in later)
                episode.messages += messages or [Message("user", MORE_FUNCTIONS)]
                episode.events.append({"kind": "user", "text": episode.messages[-1].content})
                episode.malformed, before = 0, episode.turns
                if await episode.run_until_answer() is None and episode.turns - before == MOST_STEPS:
                    break
            return await episode.make_transcript()


@dataclass(frozen=True, slots=True)
class CorrectTurns:
    """Scores `correct` for a multi-turn sample: by the results of the calls, and by the final states of the objects."""

    package: str

    async def __call__(self, sample: Sample, transcript: Transcript) -> Mapping[str, Score]:
        """Run the model's calls and the expected calls, and compare their effects; single-turn samples get no score."""
        if "turns" not in sample.metadata:
            return {}
        mistake = await run_in_thread(self.describe_mistake, sample, list_calls_by_turn(transcript))
        return {"correct": Score(float(not mistake), mistake)}

    def describe_mistake(self, sample: Sample, turns: Sequence[Sequence[tuple[str, Mapping[str, Any]]]]) -> str:
        """Describe the first mistake in the model's calls; return an empty text if all turns are correct.

        After each turn, the objects must have the same public attributes as after the expected calls. Each result of an
        expected call must also be the result of a call that the model has made in this or an earlier turn. Turns
        without an expected call are ignored.
        """
        right_turns = sample.metadata["calls"]
        if len(turns) != len(right_turns):
            return f"the model was stopped in turn {len(turns)} of {len(right_turns)}"
        made, right = (make_world(self.package, sample).instances for _ in range(2))
        results: Counter[str] = Counter()
        for number, (calls, texts) in enumerate(zip(turns, right_turns, strict=True), 1):
            results.update(call_function(made, name, (), copy.deepcopy(arguments)) for name, arguments in calls)
            wanted = Counter(run_expected_call(right, text) for text in texts)
            if texts and not calls:
                return f"turn {number}: nothing was called"
            if not texts:
                continue
            if differing := [
                f"{kind}.{name}"
                for kind, instance in right.items()
                for name, value in vars(instance).items()
                if not name.startswith("_") and getattr(made[kind], name) != value
            ]:
                return f"turn {number}: the state differs in {', '.join(differing)}"[:500]
            if missing := wanted - results:
                return f"turn {number}: no call returned {next(iter(missing))}"[:500]
        return ""


def list_calls_by_turn(transcript: Transcript) -> list[list[tuple[str, Mapping[str, Any]]]]:
    """List the executed calls of each turn, that is, all calls except those with unreadable arguments."""
    turns: list[list[tuple[str, Mapping[str, Any]]]] = []
    for event in transcript.events:
        if event["kind"] == "user":
            turns.append([])
        elif event["kind"] == "call" and "unparseable" not in event["faults"]:
            turns[-1].append((event["tool"], event["arguments"]))
    return turns
