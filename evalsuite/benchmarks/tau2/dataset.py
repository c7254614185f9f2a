"""Reads the published files of a domain of tau2-bench: its tasks and its policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import expect, read_json, read_text, take
from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Dataset
from evalsuite.core.types import Sample
from evalsuite.tools.worlds import World

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalsuite.core.protocols import Setup

TASKS, POLICY = "tasks.json", "policy.md"


@dataclass(frozen=True, slots=True)
class Tau2Options:
    """The arguments of `@benchmark("tau2", ...)`.

    Attributes:
        world: a class with the domain's tools, or a function of the sample that makes such an object.
        domain: the folder of the domain within that of the data, as in the published repository.
        max_turns: times the customer speaks, at most.
    """

    world: Any = None
    domain: str | None = None
    max_turns: int = 30

    @classmethod
    def of(cls, setup: Setup) -> Tau2Options:
        """The options of a setup.

        Raises:
            SettingsError: there is no such option, or no world.
        """
        options = read_options("tau2", cls, setup.args)
        if options.world is None:
            raise SettingsError(
                "tau2 needs the tools of its domain, which are not published as data: @benchmark('tau2', "
                "world=Airline) with a class that has @tool methods and a state()"
            )
        return options

    @property
    def own_world(self) -> World:
        """The world; one that was given by its class keeps everything in memory."""
        return self.world if isinstance(self.world, World) else World(self.world, outside=False)


def _folder(setup: Setup) -> Path:
    if setup.data is None:
        raise SettingsError("tau2 has no shipped tasks; name a domain's folder with --data=DIR (DIR/tau2)")
    domain = Tau2Options.of(setup).domain
    return setup.data / domain if domain else setup.data


def read_policy(setup: Setup) -> str:
    """What the agent is told.

    Raises:
        SettingsError: there is no folder.
        DatasetError: the file cannot be read.
    """
    return read_text(_folder(setup) / POLICY)


def load(setup: Setup) -> Dataset:
    """One sample a task.

    Raises:
        SettingsError: there is no folder, or no world.
        DatasetError: the file is not of the published form.
    """
    path = _folder(setup) / TASKS
    samples = [
        _sample(expect(task, dict, path, f"task {number}"), path, f"task {number}")
        for number, task in enumerate(read_json(path, list), 1)
    ]
    return Dataset(samples, f"{path.parent.name}/{path.name}")


def _sample(task: Mapping[str, Any], path: Path, where: str) -> Sample:
    scenario = take(task, "user_scenario", dict, path, where)
    criteria = task.get("evaluation_criteria") or {}
    goal, knowledge = _instructions(scenario, path, where)
    return Sample(
        id=str(task.get("id", where.removeprefix("task "))),
        input=goal,
        tags={"basis": " and ".join(criteria.get("reward_basis") or ["nothing"])},
        metadata={
            "knows": knowledge,
            # Of tasks in which the customer has tools, too, what the agent itself should do.
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


def _instructions(scenario: Mapping[str, Any], path: Path, where: str) -> tuple[str, str]:
    """What the customer wants and how they behave; and what they know."""
    persona = [scenario["persona"]] if scenario.get("persona") else []
    instructions = scenario.get("instructions")
    if isinstance(instructions, str):
        return "\n\n".join([*persona, instructions]), "nothing more"
    instructions = expect(instructions, dict, path, f"{where}, field 'instructions'")
    goal = [instructions.get(name) or "" for name in ("reason_for_call", "task_instructions")]
    knowledge = [instructions.get(name) or "" for name in ("known_info", "unknown_info")]
    return "\n\n".join(filter(None, [*persona, *goal])), "\n\n".join(
        filter(None, knowledge)
    ) or "nothing more"
