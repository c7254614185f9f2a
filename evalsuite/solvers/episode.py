"""Runs a tool-using episode turn by turn; declares how a format writes and reads these turns."""

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from evalsuite.core.errors import SettingsError, shorten_with_note
from evalsuite.core.protocols import Model
from evalsuite.core.types import Completion, Message, Sample, Transcript
from evalsuite.tools import worlds
from evalsuite.tools.execution import (
    ASK_TO_USER,
    FINISH,
    CallFault,
    Registry,
    Tool,
    ToolDocument,
    ToolFailure,
    convert_to_text,
)
from evalsuite.tools.mcp_servers import McpServer
from evalsuite.tools.simulated import User


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in the form in which the model wrote it."""

    name: str  # The tool's name as written by the model; a tool of this name may not exist.
    arguments: Mapping[str, Any]  # The parsed arguments.
    id: str = ""  # The call's id in the native protocol; a text protocol has no ids, so it is empty.


@dataclass(frozen=True, slots=True)
class ParsedTurn:
    """One turn of the model, as parsed by the tool protocol (the format of turns)."""

    thought: str  # The reasoning that the model wrote before its calls.
    calls: Sequence[Call] = ()  # The calls of this turn, to be run; empty if the turn is malformed.
    fault: str | None = None  # The kind of fault of a malformed turn; None if the turn is well-formed.
    words: str = ""  # A sentence that tells the model what is wrong with its turn.
    # The final answer, if the model gave it as plain text; otherwise None.
    answer: str | None = None


class TurnProtocol(Protocol):
    """A format in which tools are listed for the model, calls are read, and results (observations) are shown."""

    @property
    def finishes(self) -> bool:
        """Whether the tool `finish` ends an episode; otherwise an answer in plain text ends it."""

    def make_opening_messages(self, sample: Sample, documents: Sequence[ToolDocument]) -> tuple[Message, ...]:
        """Make the messages that come before the model's first turn."""

    def list_request_tools(self, documents: Sequence[ToolDocument]) -> Sequence[Mapping[str, Any]]:
        """Return the tools in the format of a request's field `tools`."""

    def parse_completion(self, completion: Completion) -> ParsedTurn: ...

    def make_history_message(self, completion: Completion) -> Message:
        """Convert the model's completion to the message that represents it in later requests."""

    def make_observation_message(self, call: Call, observation: str) -> Message:
        """Return the message that shows a tool's result to the model."""

    def make_reminder_messages(self, completion: Completion, turn: ParsedTurn) -> Sequence[Message]:
        """Return the messages that tell the model that its turn was malformed."""


MAX_TURNS = 9
OBSERVATION_LIMIT = 4000
TOOL_SECONDS = 60.0
_LIMITS = {
    "max_turns": int,
    "patience": int | None,
    "observation_limit": int,
    "tokens": int | None,
    "tool_seconds": int | float,
    "seconds": int | float | None,
    "dollars": int | float | None,
}
NOTHING = "(the tool returned nothing)"
CallOutcome: TypeAlias = "tuple[Mapping[str, Any], Sequence[CallFault], str, str, bool]"
"""A call's arguments, its faults, the executor's kind, the result as text, and whether the call failed."""
# Generation parameters from the paper (ToolEyes, arXiv 2401.00741, section on the experimental setup).
PARAMETERS: Mapping[str, Any] = {"temperature": 0.3, "top_p": 0.5}


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """The solver for tool use, made by `react` and `tool_loop`; `react` describes the fields."""

    protocol: TurnProtocol  # The format in which turns are written and read.
    tools: Sequence[worlds.ToolSource]
    user: User | None = None
    max_turns: int = MAX_TURNS
    patience: int | None = None
    observation_limit: int = OBSERVATION_LIMIT
    tool_seconds: float = TOOL_SECONDS
    # The time of model calls does not count, so that a replay ends at the same call as the original run.
    seconds: float | None = None
    tokens: int | None = None
    dollars: float | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tools: object = self.tools
        for source in tools if isinstance(tools, Collection) else [None]:
            if not (callable(source) or isinstance(source, Tool | McpServer | worlds.World)):
                wrong = f"{tools!r:.200} as" if source is None else f"{source!r:.200} among"
                raise SettingsError(
                    f"a tool-using solver was given {wrong} its tools; tools are a list of @tool functions, worlds and "
                    "servers"
                )
        if self.user is not None and (
            isinstance(self.user, type) or not all(hasattr(self.user, name) for name in ("kind", "reply"))
        ):
            raise SettingsError(
                f"a tool-using solver was given user={self.user!r:.200}; a user is evalsuite.tools.simulated."
                "ScriptedUser(), or an object with its `kind` and `reply`"
            )
        for name, kind in _LIMITS.items():
            value = getattr(self, name)
            if not isinstance(value, kind) or not (value is None or value > 0):
                raise SettingsError(
                    f"a tool-using solver was given {name}={value!r}; a limit is a number above 0, and a whole one "
                    "unless it is of seconds or dollars"
                )
        finish = {FINISH.name} if self.protocol.finishes else set[str]()
        worlds.check_distinct_names(self.tools, finish | ({ASK_TO_USER.name} if self.user else set()))

    @property
    def tags(self) -> Mapping[str, str]:
        """The tag `faults`, which all cases have: the faults that worlds inject; {} without such faults."""
        faults = worlds.describe_faults(source for source in self.tools if isinstance(source, worlds.World))
        return {"faults": ", ".join(faults)} if faults else {}

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        async with worlds.open_tools(self.tools, sample, getattr(model, "effects", None)) as opened:
            episode = Episode(self, sample, model, opened)
            await episode.run_until_answer()
            return await episode.make_transcript()


class Episode:
    """The state of one episode, with the methods that run its turns."""

    def __init__(self, loop: ToolLoop, sample: Sample, model: Model, opened: worlds.EpisodeTools) -> None:
        self.loop, self.sample, self.model = loop, sample, model
        self.worlds, self.effects = opened.worlds, opened.effects
        self.registry = Registry(self.add_controls(opened.tools))
        self.messages = list(loop.protocol.make_opening_messages(sample, self.registry.documents))
        self.events: list[Mapping[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.answer: str | None = None
        self.reasoning = ""
        self.malformed = self.tokens = self.turns = 0
        self.tool_seconds = self.dollars = 0.0

    async def run_until_answer(self) -> str | None:
        """Run turns until the model answers; return the answer, or None if a limit ended the episode."""
        self.answer = None
        for _ in range(self.loop.max_turns):
            self.turns += 1
            await self.run_turn()
            if self.malformed == self.loop.patience or self.find_limit() or self.answer is not None:
                break
        return self.answer

    async def make_transcript(self) -> Transcript:
        """Make the episode's transcript; it contains the final states of the worlds."""
        facts = {**self.make_facts(), **await worlds.make_state_facts(self.worlds)}
        return Transcript(self.answer or "", tuple(self.messages), self.reasoning, tuple(self.events), facts)

    def find_limit(self) -> str:
        """Return the name of the limit that the episode has reached; return "" if it has reached none."""
        limits = (
            ("time limit", self.tool_seconds, self.loop.seconds),
            ("token limit", self.tokens, self.loop.tokens),
            ("cost limit", self.dollars, self.loop.dollars),
        )
        return next((name for name, used, limit in limits if limit is not None and used >= limit), "")

    async def run_turn(self) -> None:
        """Run one turn: request a message from the model, and run the calls in it."""
        protocol = self.loop.protocol
        offered = protocol.list_request_tools(self.registry.documents)
        completion = await self.model.chat(self.messages, tools=offered, **self.loop.params)
        turn = protocol.parse_completion(completion)
        self.tokens += completion.usage.prompt_tokens + completion.usage.completion_tokens
        self.dollars += completion.usage.cost
        self.reasoning = completion.reasoning
        self.messages.append(protocol.make_history_message(completion))
        event: dict[str, Any] = {"kind": "turn", "turn": self.turns, "thought": turn.thought, "fault": turn.fault}
        self.events.append(event)
        self.malformed = self.malformed + 1 if turn.fault else 0
        if turn.fault:
            written = [[call.name, call.arguments] for call in completion.tool_calls]
            event |= {"words": turn.words, "native_calls": written}
            self.messages += protocol.make_reminder_messages(completion, turn)
        if turn.answer is not None:
            self.answer = turn.answer
        await self.run_calls(turn.calls)

    async def run_calls(self, calls: Sequence[Call]) -> None:
        """Run a turn's calls in parallel; a call of `finish` waits for the calls before it.

        Calls that follow a successful `finish` in the same turn are recorded but not run.
        """
        names = [call.name for call in calls]
        end = names.index(FINISH.name) if self.loop.protocol.finishes and FINISH.name in names else len(calls)
        results = await asyncio.gather(*(self.run_call(call) for call in calls[:end]))
        for call, result in zip(calls, results, strict=False):
            self.record_call(call, result)
        if end == len(calls):
            return
        self.record_call(calls[end], await self.run_call(calls[end]))
        if self.answer is None:
            # The call of `finish` did not end the episode, because it had faults, so run the calls after it.
            await self.run_calls(calls[end + 1 :])
            return
        for call in calls[end + 1 :]:
            late = CallFault("after_finish", "the episode has ended")
            _, faults = self.registry.convert_call_arguments(call.name, call.arguments)
            self.record_call(call, (call.arguments, (*faults, late), "", f"Error: {late.words}", True))

    async def run_call(self, call: Call) -> CallOutcome:
        """Run a call, and return its outcome; if its arguments have faults, return the faults without running it."""
        arguments, faults = self.registry.convert_call_arguments(call.name, call.arguments)
        if faults:
            text = "Error: " + "; ".join(fault.words for fault in faults)
            return call.arguments, faults, "", text, True
        tool = self.registry[call.name]
        executor = tool.executor
        if executor.kind == "episode":
            answer = await executor.run_tool(tool.document, arguments, self.model)
            return arguments, faults, executor.kind, answer, False
        passed: Mapping[str, Any] = arguments
        if executor.kind == "live":
            # Published documents declare lists and numbers as strings, too; the functions expect what the model wrote.
            texts = {name for name, value in arguments.items() if isinstance(value, str)}
            passed = {**arguments, **{name: call.arguments[name] for name in texts}}
        kept = await self.effects.run_tool_once(call.name, arguments, lambda: self.run_tool(tool, passed))
        self.tool_seconds += kept["seconds"]
        return arguments, faults, executor.kind, kept["text"], kept["failed"]

    def record_call(self, call: Call, outcome: CallOutcome) -> None:
        """Record a call, and show the model the observation (result)."""
        arguments, faults, executor, text, failed = outcome
        observation = shorten_with_note(text or NOTHING, self.loop.observation_limit)
        self.events.append(
            {
                "kind": "call",
                "turn": self.turns,
                "tool": call.name,
                "origin": self.registry[call.name].document.origin if call.name in self.registry else "",
                "arguments": dict(arguments),
                "faults": [fault.kind for fault in faults],
                "executor": executor,
                "observation": observation,
                "failed": failed,
            }
        )
        if self.answer is None:
            self.messages.append(self.loop.protocol.make_observation_message(call, observation))

    async def run_tool(self, tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool, and return its result in the form that the journal stores."""
        executor, failed = tool.executor, False
        async with getattr(executor, "lock", contextlib.nullcontext()):
            started, limit = time.monotonic(), None
            if getattr(executor, "timed", False):
                rest = math.inf if self.loop.seconds is None else max(0.001, self.loop.seconds - self.tool_seconds)
                limit = min(self.loop.tool_seconds, getattr(executor, "seconds", None) or math.inf, rest)
            try:
                async with asyncio.timeout(limit) as clock:
                    text = convert_to_text(await executor.run_tool(tool.document, arguments, self.model))
            except ToolFailure as failure:
                text, failed = f"Error: {failure}", True
            except TimeoutError:
                if not clock.expired():
                    raise
                text, failed = f"Error: no answer within {limit:g} s", True
            seconds = 0.0 if limit is None else time.monotonic() - started
        shown = shorten_with_note(text or NOTHING, self.loop.observation_limit)
        return {"text": shown, "failed": failed, "seconds": round(seconds, 3)}

    def add_controls(self, tools: Sequence[Tool]) -> list[Tool]:
        """Add the tools `finish` and `ask_to_user`; if a tool has one of these names, only replace its executor."""
        controls: dict[str, Tool] = {}
        if self.loop.protocol.finishes:
            controls[FINISH.name] = Tool(FINISH, _EpisodeExecutor(self))
        if self.loop.user:
            controls[ASK_TO_USER.name] = Tool(ASK_TO_USER, _EpisodeExecutor(self, self.loop.user))
        combined = []
        for tool in tools:
            control = controls.pop(tool.document.name, None)
            combined.append(Tool(tool.document, control.executor) if control else tool)
        return [*combined, *controls.values()]

    def make_facts(self) -> dict[str, Any]:
        """Make the transcript's facts: counts of turns, calls, faults and executors, and how the episode ended."""
        turns = [event for event in self.events if event["kind"] == "turn"]
        calls = [event for event in self.events if event["kind"] == "call"]
        faults = Counter(turn["fault"] for turn in turns if turn["fault"])
        for call in calls:
            faults.update(dict.fromkeys(call["faults"], 1))
        faults["tool_failed"] += sum(call["failed"] and not call["faults"] for call in calls)
        ended = "finish" if self.loop.protocol.finishes else "answer"
        if self.answer is None:
            ended = self.find_limit() or ("turn limit" if self.turns == self.loop.max_turns else "patience")
        injected = worlds.describe_faults(opened.world for opened in self.worlds)
        return {
            **({"injected": injected} if injected else {}),
            "turns": len(turns),
            "valid_turns": sum(turn["fault"] is None for turn in turns),
            "calls": len(calls),
            "ended": ended,
            "faults": {kind: faults[kind] for kind in sorted(faults) if faults[kind]},
            "executors": dict(sorted(Counter(call["executor"] for call in calls if call["executor"]).items())),
        }


class _EpisodeExecutor:
    """Runs `finish`, which ends the episode with an answer, and `ask_to_user`, which passes a question to the user."""

    def __init__(self, episode: Episode, user: User | None = None) -> None:
        self.episode, self.user, self.kind = episode, user, f"{user.kind} user" if user else "episode"

    async def run_tool(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> str:  # noqa: ARG002 - the executors' signature
        text = convert_to_text(next(iter(arguments.values()), ""))
        if self.user is None:
            self.episode.answer = text
            return text
        reply = await self.user.reply(self.episode.sample, text, self.episode.asked, model)
        self.episode.asked.append((text, reply))
        return reply
