"""tau2-bench's tasks: an agent with tools serves a simulated customer by a policy.

Barres et al., "tau2-bench", arXiv 2506.07982. A domain's published files (`tasks.json`, `policy.md`) are read from
`--data`. Its tools are Python code, which is not published as data. Pass them as a world, a class with `@tool`
methods and a `state()`:

    @benchmark("tau2", world=Airline)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import expect, read_json, read_text, take
from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Benchmark, Dataset
from evalsuite.core.types import SHARE, Sample
from evalsuite.scorers.trajectories import ToolUse, agrees, tool_uses
from evalsuite.tools.execution import ToolFailure, as_json
from evalsuite.tools.worlds import World, open_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evalsuite.core.protocols import Setup, Solver
    from evalsuite.core.types import Transcript


TASKS, POLICY = "tasks.json", "policy.md"


@dataclass(frozen=True, slots=True)
class Tau2Options:
    """The arguments of `@benchmark("tau2", ...)`."""

    world: Any = None  # A class with the domain's tools, or a function that makes such an object from the sample.
    domain: str | None = None  # The domain's folder within the data folder, as in the published repository.
    max_turns: int = 30  # Maximum number of the customer's messages.

    @classmethod
    def of(cls, setup: Setup) -> Tau2Options:
        options = read_options("tau2", cls, setup.args)
        if options.world is None:
            raise SettingsError(
                "tau2 needs the tools of its domain, which are not published as data: @benchmark('tau2', "
                "world=Airline) with a class that has @tool methods and a state()"
            )
        return options

    @property
    def own_world(self) -> World:
        """Return the world; a plain class is taken to keep all state in memory."""
        return self.world if isinstance(self.world, World) else World(self.world, outside=False)


def _find_folder(setup: Setup) -> Path:
    if setup.data is None:
        raise SettingsError("tau2 has no shipped tasks; name a domain's folder with --data=DIR (DIR/tau2)")
    domain = Tau2Options.of(setup).domain
    return setup.data / domain if domain else setup.data


def read_policy(setup: Setup) -> str:
    """Read the agent's policy."""
    return read_text(_find_folder(setup) / POLICY)


def load(setup: Setup) -> Dataset:
    """Load one sample per task."""
    path = _find_folder(setup) / TASKS
    samples = [
        _make_sample(expect(task, dict, path, f"task {number}"), path, f"task {number}")
        for number, task in enumerate(read_json(path, list), 1)
    ]
    return Dataset(samples, f"{path.parent.name}/{path.name}")


def _make_sample(task: Mapping[str, Any], path: Path, where: str) -> Sample:
    scenario = take(task, "user_scenario", dict, path, where)
    criteria = task.get("evaluation_criteria") or {}
    goal, knowledge = _make_instructions(scenario, path, where)
    return Sample(
        id=str(task.get("id", where.removeprefix("task "))),
        input=goal,
        tags={"basis": " and ".join(criteria.get("reward_basis") or ["nothing"])},
        metadata={
            "knows": knowledge,
            # Only the agent's actions, because in some tasks the customer has tools, too.
            "actions": [
                action
                for action in criteria.get("actions") or []
                if action.get("requestor", "assistant") == "assistant"
            ],
            "communicate": list(criteria.get("communicate_info") or []),
            "basis": list(criteria.get("reward_basis") or []),
            "initial_state": task.get("initial_state"),
        },
    )


def _make_instructions(scenario: Mapping[str, Any], path: Path, where: str) -> tuple[str, str]:
    persona = [scenario["persona"]] if scenario.get("persona") else []
    instructions = scenario.get("instructions")
    if isinstance(instructions, str):
        return "\n\n".join([*persona, instructions]), "nothing more"
    instructions = expect(instructions, dict, path, f"{where}, field 'instructions'")
    goal = [instructions.get(name) or "" for name in ("reason_for_call", "task_instructions")]
    knowledge = [instructions.get(name) or "" for name in ("known_info", "unknown_info")]
    return "\n\n".join(filter(None, [*persona, *goal])), "\n\n".join(filter(None, knowledge)) or "nothing more"


BASES = {"DB": "db", "COMMUNICATE": "communicate", "ACTION": "actions"}
"""The criteria that are scored; a task with other criteria has no `reward`."""


@dataclass(frozen=True, slots=True)
class Reward:
    """Scores one conversation; a fresh world runs the task's own actions for comparison."""

    world: World

    async def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        """Return three criteria, and the product of those that the task rewards.

        `db`: the final state of the world equals that after the task's actions. `communicate`: the agent told the
        customer everything required. `actions`: all of the task's actions were taken. `reward`: the product.
        """
        if "state" not in transcript.facts:
            raise ScoringError("the world of tau2 has no method `state()`, so it cannot be compared with")
        scores = {
            "db": float(transcript.facts["state"] == await self.compute_wanted_state(sample)),
            "communicate": float(_is_told(sample, transcript)),
            "actions": float(agrees("superset", _list_actions(sample), tool_uses(transcript))),
        }
        basis = sample.metadata["basis"]
        if basis and set(basis) <= set(BASES):
            scores["reward"] = math.prod(scores[BASES[name]] for name in basis)
        return scores

    async def compute_wanted_state(self, sample: Sample) -> Any:
        """Compute the state of a fresh world after the task's actions; a failing action changes nothing."""
        nobody: Any = None
        async with open_tools([self.world], sample) as opened:
            tools = {tool.document.name: tool for tool in opened.tools}
            for action in sample.metadata["actions"]:
                tool = tools.get(action["name"])
                if tool is None:
                    raise ScoringError(f"the world of tau2 has no tool {action['name']!r}, which task {sample.id} uses")
                try:
                    await tool.executor.run(tool.document, action.get("arguments") or {}, nobody)
                except ToolFailure:
                    continue
            return as_json(await opened.worlds[0].state())


def _list_actions(sample: Sample) -> list[ToolUse]:
    return [ToolUse(action["name"], _select_arguments(action), partial=True) for action in sample.metadata["actions"]]


def _select_arguments(action: Mapping[str, Any]) -> dict[str, Any]:
    """Select the arguments to compare: all, or those that the task names."""
    arguments: Mapping[str, Any] = action.get("arguments") or {}
    names = action.get("compare_args")
    return {name: value for name, value in arguments.items() if names is None or name in names}


def _is_told(sample: Sample, transcript: Transcript) -> bool:
    """Tell whether each piece of information occurs in the agent's messages, ignoring case and commas."""
    spoken = [
        message.content.lower().replace(",", "") for message in transcript.messages if message.role == "assistant"
    ]
    return all(
        any(str(piece).lower().replace(",", "") in text for text in spoken) for piece in sample.metadata["communicate"]
    )


def _make_solver(setup: Setup) -> Solver:
    from evalsuite.solvers.conversations import conversation
    from evalsuite.tools.simulated import Persona

    options = Tau2Options.of(setup)
    policy = read_policy(setup)
    return conversation(user=Persona(), world=options.own_world, policy=policy, max_turns=options.max_turns)


def _list_scorers(setup: Setup) -> Sequence[Any]:
    return [Reward(Tau2Options.of(setup).own_world)]


TAU2 = Benchmark(
    name="tau2",
    title="tau2-bench",
    load=load,
    solver=_make_solver,
    scorers=_list_scorers,
    metrics={"*": SHARE},
    primary="reward",
)
