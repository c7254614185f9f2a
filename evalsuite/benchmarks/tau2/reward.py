"""tau2-bench's reward: what a task's criteria say of the world, of what was told, and of what was done."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError
from evalsuite.scorers.trajectories import ToolUse, agrees, tool_uses
from evalsuite.tools.execution import ToolFailure, as_json
from evalsuite.tools.worlds import open_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.core.types import Sample, Transcript
    from evalsuite.tools.worlds import World

BASES = {"DB": "db", "COMMUNICATE": "communicate", "ACTION": "actions"}
"""The criteria that are scored here; a task that is also rewarded for others has no `reward`."""


@dataclass(frozen=True, slots=True)
class Reward:
    """Scores one conversation.

    Attributes:
        world: makes the world in which the task's own actions are carried out, to compare with.
    """

    world: World

    async def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        """Three criteria, and the product of those that the task is rewarded for.

        `db`: the world is left as the task's actions leave it. `communicate`: everything that the customer should be
        told was said. `actions`: all of the task's actions were taken. `reward`: the product.

        Raises:
            ScoringError: the world has no `state()`.
        """
        if "state" not in transcript.facts:
            raise ScoringError("the world of tau2 has no method `state()`, so it cannot be compared with")
        scores = {
            "db": float(transcript.facts["state"] == await self.wanted(sample)),
            "communicate": float(_was_told(sample, transcript)),
            "actions": float(agrees("superset", _actions(sample), tool_uses(transcript))),
        }
        basis = sample.metadata["basis"]
        if basis and set(basis) <= set(BASES):
            scores["reward"] = math.prod(scores[BASES[name]] for name in basis)
        return scores

    async def wanted(self, sample: Sample) -> Any:
        """The state of a fresh world after the task's actions; one that fails changes nothing, as in a conversation."""
        nobody: Any = None
        async with open_tools([self.world], sample) as opened:
            tools = {tool.document.name: tool for tool in opened.tools}
            for action in sample.metadata["actions"]:
                tool = tools.get(action["name"])
                if tool is None:
                    raise ScoringError(
                        f"the world of tau2 has no tool {action['name']!r}, which task {sample.id} uses"
                    )
                try:
                    await tool.executor.run(tool.document, action.get("arguments") or {}, nobody)
                except ToolFailure:
                    continue
            return as_json(await opened.worlds[0].state())


def _actions(sample: Sample) -> list[ToolUse]:
    return [ToolUse(action["name"], _compared(action), partial=True) for action in sample.metadata["actions"]]


def _compared(action: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that an action is known by: all, or those that the task names."""
    arguments: Mapping[str, Any] = action.get("arguments") or {}
    names = action.get("compare_args")
    return {name: value for name, value in arguments.items() if names is None or name in names}


def _was_told(sample: Sample, transcript: Transcript) -> bool:
    """Whether each piece of information stands in some message of the agent's, whatever its case and commas."""
    spoken = [
        message.content.lower().replace(",", "")
        for message in transcript.messages
        if message.role == "assistant"
    ]
    return all(
        any(str(piece).lower().replace(",", "") in text for text in spoken)
        for piece in sample.metadata["communicate"]
    )
