"""A conversation between an agent with tools and a user: the shape of tau-bench's tasks (arXiv 2406.12045)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.core.errors import SettingsError
from evalsuite.core.types import Message, Transcript
from evalsuite.gateway.handle import Effects
from evalsuite.solvers.episode import Episode, ToolLoop
from evalsuite.solvers.tool_protocols import Functions, tool_loop
from evalsuite.tools.worlds import open_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample
    from evalsuite.tools.simulated import Speaker
    from evalsuite.tools.worlds import ToolSource


@dataclass(frozen=True, slots=True)
class Conversation:
    """Lets an agent and a user talk until one of them ends it; made by `conversation`."""

    loop: ToolLoop
    user: Speaker
    max_turns: int

    @property
    def tags(self) -> Mapping[str, str]:
        return self.loop.tags

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        effects: Effects = getattr(model, "effects", None) or Effects()
        async with open_tools(self.loop.tools, sample, effects) as opened:
            silent = dataclasses.replace(sample, input=())
            episode = Episode(self.loop, silent, model, opened, effects)
            spoken: list[tuple[str, str]] = []
            ended = await self._talk(episode, sample, model, spoken)
            transcript = await episode.transcript()
        answer = next((text for who, text in reversed(spoken) if who == "agent"), "")
        exchanges = sum(who == "user" for who, _ in spoken)
        facts = {**transcript.facts, "ended": ended, "exchanges": exchanges}
        return dataclasses.replace(transcript, answer=answer, facts=facts)

    async def _talk(self, episode: Episode, sample: Sample, model: Model, spoken: list[tuple[str, str]]) -> str:
        """Run the conversation and return the reason for its end."""
        for _ in range(self.max_turns):
            line = await self.user.speak(sample, spoken, model)
            if line is None:
                return "user"
            spoken.append(("user", line))
            episode.messages.append(Message("user", line))
            episode.events.append({"kind": "user", "text": line})
            answer = await episode.reply()
            if answer is None:
                return episode.find_limit() or "turn limit"
            spoken.append(("agent", answer))
        return "exchange limit"


def conversation(
    agent: ToolLoop | Sequence[ToolSource] = (),
    *,
    user: Speaker,
    world: ToolSource | None = None,
    policy: str | None = None,
    max_turns: int = 20,
) -> Conversation:
    """Let the model under test, as an agent with tools, talk to a user.

    The transcript's answer is the agent's last message. Its facts hold the number of messages of the user
    (`exchanges`), what ended the conversation (`user`, `exchange limit`, `turn limit`, `time limit`, `token limit`,
    `cost limit`), and the final `state` of the world if that has a method `state()`.

    Args:
        agent: tools, or `tool_loop(..., ending="text")` to configure the agent further.
        user: a `Persona` or a `Scripted`.
        world: makes the world of each conversation; its tools are added to the agent's.
        policy: the agent's system prompt; None keeps that of `agent`.
        max_turns: maximum number of messages of the user.

    Raises:
        SettingsError: the agent ends its turns by a tool, or `max_turns` is less than 1.
    """
    loop = agent if isinstance(agent, ToolLoop) else tool_loop(list(agent), ending="text", max_turns=30)
    if not isinstance(loop.protocol, Functions) or loop.protocol.finishes:
        raise SettingsError("the agent of a conversation answers in plain text: tool_loop(..., ending='text')")
    if max_turns < 1:
        raise SettingsError(f"conversation was given max_turns={max_turns}; it must be at least 1")
    protocol = loop.protocol if policy is None else dataclasses.replace(loop.protocol, system=policy)
    tools = [*loop.tools, *([world] if world is not None else [])]
    return Conversation(dataclasses.replace(loop, tools=tools, protocol=protocol), user, max_turns)
