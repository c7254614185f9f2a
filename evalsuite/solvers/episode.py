"""A tool-using episode: the model speaks, its calls are run, it reads what came of them, until it finishes.

How a call is written is the business of a turn protocol: `react` (text) or `functions` (the native one).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalsuite.errors import SettingsError
from evalsuite.tools.documents import ASK_TO_USER, FINISH
from evalsuite.tools.execution import ToolFailure, as_text, cut
from evalsuite.tools.registry import Registry, Tool, ToolSource, open_tools
from evalsuite.types import Transcript

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.protocols import Model
    from evalsuite.solvers.turns import Call, TurnProtocol
    from evalsuite.tools.documents import ToolDocument
    from evalsuite.tools.users import User
    from evalsuite.types import Sample

MAX_TURNS = 9
OBSERVATION_LIMIT = 4000
NOTHING = "(the tool returned nothing)"
# The paper's generation parameters (ToolEyes, arXiv 2401.00741, section on the experimental setup).
PARAMETERS: Mapping[str, Any] = {"temperature": 0.3, "top_p": 0.5}


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """The solver that both protocols share. Made by `react` and `functions`.

    Attributes:
        protocol: how turns are written and read.
        tools: the sources of each episode's tools; `finish` is added to them, and `ask_to_user` where
            there is a user, unless they bring documents of these names themselves.
        user: who answers `ask_to_user`; None where it is not on offer.
        max_turns: turns in which the model speaks, at most.
        patience: turns in a row that are not of the demanded form, after which an episode is given up;
            None waits for `max_turns`.
        observation_limit: characters of an observation, at most.
        params: generation parameters.
    """

    protocol: TurnProtocol
    tools: Sequence[ToolSource]
    user: User | None = None
    max_turns: int = MAX_TURNS
    patience: int | None = None
    observation_limit: int = OBSERVATION_LIMIT
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("max_turns", "patience", "observation_limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"a tool-using solver was given {name}={value}; it must be at least 1")

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Runs one episode with tools of its own."""
        with open_tools(self.tools, sample) as tools:
            return await _Episode(self, sample, model, tools).run()


class _Episode:
    """One run of the loop; everything that changes during an episode lives here."""

    def __init__(self, loop: ToolLoop, sample: Sample, model: Model, tools: Sequence[Tool]) -> None:
        self.loop, self.sample, self.model = loop, sample, model
        self.registry = Registry(self.with_controls(tools))
        self.messages = list(loop.protocol.opening(sample, self.registry.documents))
        self.events: list[Mapping[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.answer: str | None = None
        self.malformed = 0
        self.reasoning = ""

    async def run(self) -> Transcript:
        for number in range(1, self.loop.max_turns + 1):
            await self.turn(number)
            if self.answer is not None or self.malformed == self.loop.patience:
                break
        return Transcript(
            self.answer or "", tuple(self.messages), self.reasoning, tuple(self.events), self.facts()
        )

    async def turn(self, number: int) -> None:
        protocol = self.loop.protocol
        offered = protocol.offered(self.registry.documents)
        completion = await self.model.chat(self.messages, tools=offered, **self.loop.params)
        turn = protocol.read(completion)
        self.reasoning = completion.reasoning
        self.messages.append(protocol.said(completion))
        event: dict[str, Any] = {"kind": "turn", "turn": number, "thought": turn.thought, "fault": turn.fault}
        self.events.append(event)
        self.malformed = self.malformed + 1 if turn.fault else 0
        if turn.fault:
            written = [[call.name, call.arguments] for call in completion.tool_calls]
            event |= {"words": turn.words, "native_calls": written}
            self.messages += protocol.reminder(completion, turn)
        for call in turn.calls:
            if self.answer is None:
                await self.call(number, call)

    async def call(self, number: int, call: Call) -> None:
        arguments, faults = self.registry.check(call.name, call.arguments)
        executor, failed = "", bool(faults)
        if faults:
            text = "Error: " + "; ".join(fault.words for fault in faults)
        else:
            executor, text, failed = await self.execute(call.name, arguments)
        observation = cut(text or NOTHING, self.loop.observation_limit)
        self.events.append(
            {
                "kind": "call",
                "turn": number,
                "tool": call.name,
                "origin": self.registry[call.name].document.origin if call.name in self.registry else "",
                "arguments": dict(call.arguments if faults else arguments),
                "faults": [fault.kind for fault in faults],
                "executor": executor,
                "observation": observation,
                "failed": failed,
            }
        )
        if self.answer is None:
            self.messages.append(self.loop.protocol.observed(call, observation))

    async def execute(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, str, bool]:
        """Who ran the call, what came of it, and whether it failed."""
        tool = self.registry[name]
        try:
            result = await tool.executor.run(tool.document, arguments, self.model)
            return tool.executor.kind, as_text(result), False
        except ToolFailure as failure:
            return tool.executor.kind, f"Error: {failure}", True

    def with_controls(self, tools: Sequence[Tool]) -> list[Tool]:
        """The tools with `finish` and `ask_to_user` run by this episode, by whomever they are documented."""
        controls: dict[str, Tool] = {FINISH.name: Tool(FINISH, _Finish(self))}
        if self.loop.user:
            controls[ASK_TO_USER.name] = Tool(ASK_TO_USER, _AskUser(self, self.loop.user))
        found = []
        for tool in tools:
            control = controls.pop(tool.document.name, None)
            found.append(Tool(tool.document, control.executor) if control else tool)
        return [*found, *controls.values()]

    def ending(self, turns: int) -> str:
        if self.answer is not None:
            return "finish"
        return "turn limit" if turns == self.loop.max_turns else "patience"

    def facts(self) -> dict[str, Any]:
        turns = [event for event in self.events if event["kind"] == "turn"]
        calls = [event for event in self.events if event["kind"] == "call"]
        faults = Counter(turn["fault"] for turn in turns if turn["fault"])
        for call in calls:
            faults.update(dict.fromkeys(call["faults"], 1))
        faults["tool_failed"] += sum(call["failed"] and not call["faults"] for call in calls)
        return {
            "turns": len(turns),
            "valid_turns": sum(turn["fault"] is None for turn in turns),
            "calls": len(calls),
            "ended": self.ending(len(turns)),
            "faults": {kind: faults[kind] for kind in sorted(faults) if faults[kind]},
            "executors": dict(
                sorted(Counter(call["executor"] for call in calls if call["executor"]).items())
            ),
        }


@dataclass(frozen=True, slots=True)
class _Finish:
    """Ends its episode with the answer."""

    episode: _Episode
    kind: str = "episode"

    async def run(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> str:  # noqa: ARG002 - the executors' signature
        self.episode.answer = as_text(next(iter(arguments.values()), ""))
        return self.episode.answer


class _AskUser:
    """Takes a question to its episode's user."""

    def __init__(self, episode: _Episode, user: User) -> None:
        self.episode, self.user, self.kind = episode, user, f"{user.kind} user"

    async def run(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> str:  # noqa: ARG002 - likewise
        question = as_text(next(iter(arguments.values()), ""))
        reply = await self.user.reply(self.episode.sample, question, self.episode.asked, model)
        self.episode.asked.append((question, reply))
        return reply
