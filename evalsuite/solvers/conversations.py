"""A conversation between an agent and a user, as in the tasks of tau-bench (arXiv 2406.12045)."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalsuite.core.errors import SettingsError
from evalsuite.core.json_codec import encode_message
from evalsuite.core.protocols import Model
from evalsuite.core.types import Message, Sample, Transcript
from evalsuite.solvers.applications import Application
from evalsuite.solvers.episode import Episode, ToolLoop
from evalsuite.solvers.services import CaseExchange
from evalsuite.solvers.tool_protocols import NativeProtocol, tool_loop
from evalsuite.tools.simulated import GREETING, ConversationUser, Persona, make_user_model_message
from evalsuite.tools.worlds import EpisodeTools, EpisodeWorld, ToolSource, World, make_state_facts, open_tools

MAX_AGENT_TURNS = 30  # Maximum messages of the agent's model, including tool calls, per message of the user.


@dataclass(frozen=True, slots=True)
class ConversationSolver:
    """Lets an agent and a user talk until the conversation ends; the function `conversation` makes it."""

    agent: ToolLoop | Application
    user: ConversationUser
    max_turns: int
    tools: Sequence[ToolSource]
    until: Callable[[str], bool] | None = None
    # Function that returns the messages with which a conversation begins.
    history: Callable[[Sample], Sequence[Message]] | None = None

    @property
    def tags(self) -> Mapping[str, str]:
        """The tag `faults`, which all cases have: the faults that the agent's world injects; {} without faults."""
        return self.agent.tags if isinstance(self.agent, ToolLoop) else {}

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        async with open_tools(self.tools, sample, getattr(model, "effects", None)) as every:
            user, opened = self.user, every
            if isinstance(user, Persona) and user.tools:
                rest = [tool for tool in every.tools if tool.document.name not in user.tools]
                user, opened = PersonaEpisode(user, sample, model, every), dataclasses.replace(every, tools=rest)
            silent = dataclasses.replace(sample, input=())
            episode: Episode | ApplicationEpisode
            if isinstance(self.agent, ToolLoop):
                episode = Episode(self.agent, silent, model, opened)
            else:
                world = await opened.worlds[0].get_world_object() if opened.worlds else None
                case_model: Any = model
                episode = ApplicationEpisode(self.agent, CaseExchange(sample, case_model, world), opened.worlds)
            history = self.history(sample) if self.history else ()
            episode.messages += history
            who = {"user": "user", "assistant": "agent"}
            spoken = [(who[one.role], one.content) for one in history if one.role in who and one.content]
            ended = await self._run_conversation(episode, user, sample, model, spoken)
            transcript = await episode.make_transcript()
        answer = next((text for who, text in reversed(spoken) if who == "agent"), "")
        facts = {**transcript.facts, "ended": ended, "exchanges": sum(who == "user" for who, _ in spoken)}
        return dataclasses.replace(transcript, answer=answer, facts=facts)

    async def _run_conversation(
        self,
        episode: "Episode | ApplicationEpisode",
        user: ConversationUser,
        sample: Sample,
        model: Model,
        spoken: list[tuple[str, str]],
    ) -> str:
        """Run the conversation, and return why it ended."""
        # The agent speaks next if a history is given and its last message is from the user or a tool.
        is_agents_turn = bool(spoken) and episode.messages[-1].role != "assistant"
        for _ in range(self.max_turns):
            if not is_agents_turn:
                line = await user.speak(sample, spoken, model)
                if isinstance(user, PersonaEpisode):
                    episode.events += user.call_events
                if line is None:
                    return "user"
                spoken.append(("user", line))
                episode.messages.append(Message("user", line))
                episode.events.append({"kind": "user", "text": line})
            is_agents_turn = False
            answer = await episode.run_until_answer()
            if answer is None:
                return (isinstance(episode, Episode) and episode.find_limit()) or "turn limit"
            spoken.append(("agent", answer))
            if self.until is not None and self.until(answer):
                return "until"
        return "exchange limit"


class PersonaEpisode:
    """A simulated user with tools: to write a message, its model runs turns with tools until it answers."""

    def __init__(self, persona: Persona, sample: Sample, model: Model, opened: EpisodeTools) -> None:
        tools = {tool.document.name: tool for tool in opened.tools}
        if unknown := [name for name in persona.tools if name not in tools]:
            raise SettingsError(f"Persona(tools=...): the world has no tool {unknown[0]!r}; it has {', '.join(tools)}")
        params: Any = {"temperature": 0, "max_tokens": persona.max_tokens}
        loop = tool_loop([], system=persona.write_role(sample), ending="text", max_turns=MAX_AGENT_TURNS, **params)
        greeted = dataclasses.replace(sample, input=(GREETING,))
        allowed = sample.metadata.get("user_tools")
        own = [tools[name] for name in persona.tools if allowed is None or name in allowed]
        offered = dataclasses.replace(opened, tools=own, worlds=[])
        self._episode = Episode(loop, greeted, persona.find_simulating_model(model), offered)
        self._persona, self._heard = persona, 0
        self.call_events: list[Mapping[str, Any]] = []  # The user's tool calls before its last message.

    async def speak(self, sample: Sample, spoken: Sequence[tuple[str, str]], model: Model) -> str | None:  # noqa: ARG002 - the speakers' signature
        """Send all new messages to the model that plays the user, and return the message that it writes."""
        self._episode.messages += map(make_user_model_message, spoken[self._heard :])
        self._heard, known = len(spoken) + 1, len(self._episode.events)
        text = await self._episode.run_until_answer()
        new = self._episode.events[known:]
        self.call_events = [{**event, "kind": "user_call"} for event in new if event["kind"] == "call"]
        return self._persona.parse_line(text or "", "it only used tools" if text is None else "an empty message")


class ApplicationEpisode:
    """One conversation between an application and a user."""

    def __init__(self, application: Application, exchange: CaseExchange, worlds: Sequence[EpisodeWorld]) -> None:
        self._application, self._exchange, self._worlds = application, exchange, worlds
        self.messages: list[Message] = []
        self.events: list[Mapping[str, Any]] = []
        self._facts: dict[str, Any] = {}

    async def run_until_answer(self) -> str:
        """Send the conversation so far to the application, and return its answer."""
        answer = await self._application.reply(list(map(encode_message, self.messages)), self._exchange)
        self._facts |= answer.facts
        self.messages.append(Message("assistant", answer.answer))
        self.events.append({"kind": "turn", "turn": len(self.messages) // 2, "thought": answer.answer, "fault": None})
        return answer.answer

    async def make_transcript(self) -> Transcript:
        """Make the transcript from the application's model calls; if it made none, from the conversation."""
        facts = {**self._facts, **await make_state_facts(self._worlds)}
        if self._exchange.model.log.calls:
            return Transcript("", facts=facts)
        return Transcript("", tuple(self.messages), events=tuple(self.events), facts=facts)


def conversation(
    agent: ToolLoop | Application | Sequence[ToolSource] = (),
    *,
    user: ConversationUser,
    world: "ToolSource | None" = None,
    policy: str | None = None,
    max_turns: int = 20,
    until: Callable[[str], bool] | None = None,
) -> ConversationSolver:
    """Let an agent talk to a user; the agent is the tested model with tools, or your own application.

    At each turn, a function or program gets all messages of the conversation, in the OpenAI format; a service gets the
    user's message as `{input}`. A function's parameter `world` gets the object that the argument `world` makes.

    The answer in the transcript is the agent's last message. Facts of the transcript are `exchanges`, the number of the
    user's messages, and `ended`, the reason why the conversation ended (`user`, `until`, `exchange limit`, `turn
    limit`, `time limit`, `token limit` or `cost limit`), and `state` if the world has a method `state()`.

    Args:
        agent: the agent's tools; `tool_loop(..., ending="text")`, which has further options; or `application(...)`.
        user: the simulated user: a `Persona` or a `Scripted`.
        world: makes the world of each conversation, an object whose methods are tools that share its state. The agent
            gets these tools in addition to its own.
        policy: the agent's system prompt; with None, the system prompt of `agent` is used.
        max_turns: how many messages the user may write.
        until: a function of each message of the agent; the conversation ends if it returns true.

    Raises:
        SettingsError: the agent's tools are invalid, or the agent ends its turns by a tool; `user` has no method
            `speak`; `max_turns` is not a whole number of at least 1; `until` is not a function; or an application is
            combined with a `policy` or with a world that injects faults.
    """
    turns: object = max_turns
    if not isinstance(turns, int) or turns < 1:
        raise SettingsError(f"conversation was given max_turns={max_turns!r}; it must be a whole number of at least 1")
    if isinstance(user, type) or not hasattr(user, "speak"):
        raise SettingsError(
            f"conversation was given user={user!r:.200}; give a Persona(), a Scripted([...]), or an object with their "
            "method"
        )
    if not (until is None or callable(until)):
        raise SettingsError(f"conversation was given until={until!r:.200}; give a function of a message, or None")
    worlds = [world] if world is not None else []
    if isinstance(agent, Application):
        if policy is not None or (isinstance(world, World) and world.faults):
            raise SettingsError(
                "conversation: policy and injected faults need tools that evalsuite runs; an application has its own"
            )
        return ConversationSolver(agent, user, max_turns, worlds, until)
    loop = agent if isinstance(agent, ToolLoop) else tool_loop(agent, ending="text", max_turns=MAX_AGENT_TURNS)
    if not isinstance(loop.protocol, NativeProtocol) or loop.protocol.finishes:
        raise SettingsError("the agent of a conversation answers in plain text: tool_loop(..., ending='text')")
    protocol = loop.protocol if policy is None else dataclasses.replace(loop.protocol, system=policy)
    tools = [*loop.tools, *worlds]
    loop = dataclasses.replace(loop, tools=tools, protocol=protocol)
    return ConversationSolver(loop, user, max_turns, tools, until)
