"""Worlds (simulated environments): objects whose methods are an episode's tools, faults to inject, and states.

If a final state is large, a run stores its differences from the initial state, which is stored only once.
"""

import asyncio
import base64
import inspect
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias

from evalsuite.core.errors import SettingsError, ToolError, write_count
from evalsuite.core.protocols import Model
from evalsuite.core.threads import call_maybe_async
from evalsuite.core.types import CHANGES, Sample
from evalsuite.gateway.handle import CaseToolCalls
from evalsuite.tools.execution import (
    Executor,
    Tool,
    ToolDocument,
    ToolFailure,
    convert_to_json,
    convert_to_text,
    find_tool_methods,
    list_tool_documents,
    tools_of,
)
from evalsuite.tools.mcp_servers import McpServer


@dataclass(slots=True)
class FaultyExecutor:
    """Runs a tool of an episode, and injects faults into some of its calls."""

    executor: Executor
    # The kind and argument of each fault, by the number of the call; calls before a resume count, too.
    faults: Mapping[int, tuple[str, Any]]
    effects: CaseToolCalls  # Store of the episode's tool calls.
    calls: int = 0  # Number of calls since the start or, after a resume, since the resume.
    results: list[Any] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The kind of the executor into whose calls faults are injected."""
        return self.executor.kind

    def __getattr__(self, name: str) -> Any:
        """Pass on the attributes `timed`, `lock` and `seconds`, which not every executor has."""
        return getattr(self.executor, name)

    async def run_tool(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:
        self.calls += 1
        earlier = sum(call.name == document.name for call in self.effects.recalled)
        kind, detail = self.faults.get(earlier + self.calls, ("", None))
        if kind == "fails":
            raise ToolFailure(str(detail))
        if kind == "slow":
            await asyncio.sleep(float(detail))
        if kind == "stale" and self.results:
            return self.results[-1]
        result = await self.executor.run_tool(document, arguments, model)
        self.results.append(result)
        return f"{convert_to_text(result)}\n{detail}" if kind == "poisoned" else result


ToolSource: TypeAlias = "Tool | World | McpServer | Callable[[Sample], object]"
"""A tool without state, a source that each episode opens, or a class or function of the sample that makes tools."""


class World:
    """Makes the world of an episode, and injects faults into its tools.

    Args:
        make: a class, or a function of the sample (sync or async), that makes the world's object. The object may be a
            context manager, async or not, or have a method `close` or `aclose`. The tools of a class are known before
            an object exists. A replay also calls `make`, so a function should have no side effects.
        outside: whether tools change anything outside the object. If False, all state is in memory: a resumed episode
            repeats its calls on a new object, which then has the same state. If True, a resumed episode repeats no
            call; the object needs a method `restore(calls)`, which gets the names and arguments of the calls so far.
    """

    def __init__(self, make: Callable[[Sample], Any], *, outside: bool = True) -> None:
        if not callable(make):
            raise SettingsError(f"World({make!r:.200}): give a class, or a function of the sample that makes it")
        self.make, self.outside = make, outside
        # The kind (`fails`, `slow`, `stale`, `poisoned`) and argument of each fault, by tool and number of the call.
        self.faults: Mapping[tuple[str, int], tuple[str, Any]] = {}
        # Function that brings a new object to the initial state of a sample; None leaves the object as it is.
        self.prepare: Callable[[Any, Sample], Awaitable[None]] | None = None

    @property
    def documents(self) -> list[ToolDocument]:
        """The documents of a class's tools; empty for a function, whose tools are known only after it is called."""
        return list_tool_documents(self.make) if isinstance(self.make, type) else []

    def fails(self, tool: str, *, at: int = 1, message: str = "the service is unavailable") -> Self:
        """Make call number `at` of a tool fail without effect; the first call has the number 1."""
        return self._copy_with_fault(tool, at, "fails", message)

    def slow(self, tool: str, *, seconds: float, at: int = 1) -> Self:
        """Make call number `at` of a tool slower."""
        return self._copy_with_fault(tool, at, "slow", seconds)

    def stale(self, tool: str, *, at: int = 2) -> Self:
        """Make call number `at` of a tool return the result of the call before it."""
        return self._copy_with_fault(tool, at, "stale", None)

    def poisoned(self, tool: str, text: str, *, at: int = 1) -> Self:
        """Add a prompt injection to the result of call number `at` of a tool."""
        return self._copy_with_fault(tool, at, "poisoned", text)

    def _copy_with_fault(self, tool: str, at: object, kind: str, detail: Any) -> Self:
        documents = self.documents
        if documents:
            self.require_tool(tool, {document.name for document in documents})
        first = 2 if kind == "stale" else 1
        if not isinstance(at, int) or at < first:
            raise SettingsError(f"World(...).{kind}({tool!r}, at={at!r}): at is the number of a call, from {first}")
        if kind == "slow" and not (isinstance(detail, int | float) and detail > 0):
            raise SettingsError(f"World(...).slow({tool!r}, seconds={detail!r}): give a number above 0")
        changed = copy(self)
        changed.faults = {**self.faults, (tool, at): (kind, detail)}
        return changed

    def require_tool(self, tool: str, names: Collection[str]) -> None:
        """Raise SettingsError if a tool with a fault is not among the world's tools."""
        if tool not in names:
            raise SettingsError(
                f"{self.make!r} has no tool {tool!r}, so no fault can be injected into it; it has {', '.join(names)}"
            )


def describe_faults(worlds: Iterable[World]) -> list[str]:
    """Describe each injected fault in a line such as "search fails at call 2", for records and tags."""
    return [
        f"{tool} {kind if kind == 'fails' else f'is {kind}'} at call {at}"
        for world in worlds
        for (tool, at), (kind, _) in sorted(world.faults.items())
    ]


# A state with at least this many characters of JSON is large; smaller states are stored as a whole.
LARGE_STATE = 1 << 16
Change: TypeAlias = "Mapping[str, Any]"
"""One difference: its path `at`, and the values `from` and `to`. If an object gained or lost a key, one of the values
is absent. If a list changed its length, the items `from` became the items `to` at the position `index`."""


def list_changes(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """List the differences between two JSON values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() - after.keys():
            yield {"at": [*path, key], "from": before[key]}
        for key, value in after.items():
            if key in before:
                yield from list_changes(before[key], value, (*path, key))
            else:
                yield {"at": [*path, key], "to": value}
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) == len(after):
            for number, (old, new) in enumerate(zip(before, after, strict=True)):
                yield from list_changes(old, new, (*path, number))
        else:
            # Leave out the equal items at the beginning and the end of both lists.
            shorter = min(len(before), len(after))
            first = next((n for n in range(shorter) if _are_different(before[n], after[n])), shorter)
            rest = shorter - first
            last = next((n for n in range(rest) if _are_different(before[-1 - n], after[-1 - n])), rest)
            old, new = before[first : len(before) - last], after[first : len(after) - last]
            yield {"at": [*path], "index": first, "from": old, "to": new}
    elif type(before) is not type(after) or before != after:
        yield {"at": [*path], "from": before, "to": after}


def _are_different(before: Any, after: Any) -> bool:
    return next(list_changes(before, after), None) is not None


def apply_changes(before: Any, changes: Sequence[Change]) -> Any:
    """Apply the changes to a value, and return the result."""
    root = {"": deepcopy(before)}
    for change in changes:
        way: list[Any] = ["", *change["at"]]
        place: Any = root
        for step in way[:-1]:
            place = place[step]
        key = way[-1]
        if "index" in change:
            place[key][change["index"] : change["index"] + len(change["from"])] = change["to"]
        elif "to" in change:
            place[key] = change["to"]
        else:
            del place[key]
    return root[""]


def compress_state(state: Any) -> str:
    """Compress a state to Base64 text."""
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode()


def decompress_state(packed: str) -> Any:
    """Reverse `compress_state`."""
    return json.loads(zlib.decompress(base64.b64decode(packed)).decode("utf-8", "surrogatepass"))


@dataclass(eq=False)
class EpisodeWorld:
    """The world of one episode."""

    world: World  # The world's definition, with the faults to inject.
    sample: Sample  # The episode's sample.
    effects: CaseToolCalls  # Store of the episode's tool calls, from the journal and from this run.
    stack: AsyncExitStack  # Stack that closes the world at the end of the episode.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    names: frozenset[str] = frozenset()
    # Differences between the final and the initial state; None if the state is small.
    changes: Sequence[Change] | None = None
    _made: Any = None
    _initial: str | None = None
    _is_restored: bool = False
    STATE: ClassVar[str] = "state of the world"

    async def list_tools(self) -> list[Tool]:
        """List the tools that the world provides; if a function makes the world, call this function."""
        kind = self.world.make if isinstance(self.world.make, type) else None
        if kind is None:
            self._made = await self._make_world_object()
            tools = tools_of(self._made)
            kind = type(self._made)
        if not issubclass(kind, list | tuple):
            methods = find_tool_methods(kind)
            self.names = frozenset(method.document.name for method in methods.values())
            if not methods:
                raise SettingsError(f"{kind!r} holds no tools; decorate its methods with @tool")
            tools = [
                Tool(method.document, WorldExecutor(self, name, getattr(method.executor, "seconds", None)))
                for name, method in methods.items()
            ]
        for faulty, _ in self.world.faults:
            self.world.require_tool(faulty, [tool.document.name for tool in tools])
        for place, tool in enumerate(tools):
            faults = {at: fault for (name, at), fault in self.world.faults.items() if name == tool.document.name}
            if faults:
                tools[place] = Tool(tool.document, FaultyExecutor(tool.executor, faults, self.effects))
        return tools

    async def _make_world_object(self) -> Any:
        world = await call_maybe_async(self.world.make, self.sample)
        if hasattr(world, "__aenter__"):
            world = await self.stack.enter_async_context(world)
        elif hasattr(world, "__enter__"):
            world = self.stack.enter_context(world)
        else:
            for name in ("aclose", "close"):
                close = getattr(world, name, None)
                if callable(close) and not isinstance(close, Tool):
                    self.stack.push_async_callback(call_maybe_async, close)
                    break
        if self.world.prepare is not None:
            await self.world.prepare(world, self.sample)
        if self.effects.has_journal and self._has_state_method(type(world)):
            state = await self._read_state(world)
            if len(convert_to_text(state)) >= LARGE_STATE:
                self._initial = compress_state(state)
        return world

    async def get_world_object(self) -> Any:
        """Return the world's object; after a resume, first restore the effects of the calls in the journal."""
        if self._made is None:
            self._made = await self._make_world_object()
        recalled = () if self._is_restored else self.effects.recalled
        self._is_restored = True
        calls = [call for call in recalled if call.name in self.names]
        if not calls:
            return self._made
        restore = getattr(self._made, "restore", None)
        if callable(restore) and not isinstance(restore, Tool):
            result = restore([(call.name, call.arguments) for call in calls])
            if inspect.isawaitable(result):
                await result
        elif self.world.outside:
            raise ToolError(
                f"this episode was interrupted after {write_count(len(calls), 'call')}, which must not be repeated, "
                f"and {type(self._made).__name__} has no method `restore(calls)` to continue from there; if all of its "
                "state is in memory, declare it as World(..., outside=False)"
            )
        else:
            by_name = {tool.document.name: tool for tool in tools_of(self._made)}
            nobody: Any = None
            for call in calls:
                tool = by_name[call.name]
                # Ignore failures, because the same call also failed in the original episode.
                with self.effects.collect_model_calls(call, asyncio.get_running_loop()), suppress(ToolFailure):
                    await tool.executor.run_tool(tool.document, call.arguments, nobody)
        return self._made

    async def read_final_state(self) -> Any:
        """Return what the world's method `state()` returns after the episode; None if it has no such method."""
        if not self._has_state_method(self.world.make if isinstance(self.world.make, type) else type(self._made)):
            return None

        async def encode_state() -> dict[str, Any]:
            state = await self._read_state(await self.get_world_object())
            if self._initial is None:
                return {"state": state}
            return {"initial": self._initial, "changes": list(list_changes(decompress_state(self._initial), state))}

        kept = await self.effects.run_tool_once(self.STATE, {}, encode_state)
        if "state" in kept:
            return kept["state"]
        self.changes = kept["changes"]
        return apply_changes(decompress_state(kept["initial"]), kept["changes"])

    @staticmethod
    def _has_state_method(world_class: type) -> bool:
        method = getattr(world_class, "state", None)
        return callable(method) and not isinstance(method, Tool)

    @staticmethod
    async def _read_state(world: Any) -> Any:
        return convert_to_json(await call_maybe_async(world.state))


async def make_state_facts(worlds: Sequence[EpisodeWorld]) -> dict[str, Any]:
    """Make the facts about the worlds' final states; a record of a large state has only its changes."""
    states = [(state, world.changes) for world in worlds if (state := await world.read_final_state()) is not None]
    if not states:
        return {}
    whole, changes = ([pair[at] for pair in states] for at in (0, 1))
    facts = {"state": whole[0] if len(whole) == 1 else whole}
    if any(change is not None for change in changes):
        facts[CHANGES] = changes[0] if len(changes) == 1 else changes
    return facts


LONGEST_MAKING = 120.0  # Maximum seconds for making a world, which may start a server or a container.


@dataclass(frozen=True, slots=True)
class WorldExecutor:
    """Runs a method of a world's object as a tool."""

    world: EpisodeWorld
    method: str
    seconds: float | None = None  # Time limit of a call in seconds, in addition to the episode's limits.
    kind: str = "python"
    timed: bool = True

    @property
    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Hold the world's lock during a call, and first make the object, so that no call's limit covers making it."""
        async with self.world.lock:
            try:
                async with asyncio.timeout(LONGEST_MAKING) as clock:
                    await self.world.get_world_object()
            except TimeoutError as error:
                if not clock.expired():
                    raise
                raise ToolError(f"the world was not made within {LONGEST_MAKING:g} s") from error
            yield

    async def run_tool(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:
        world = await self.world.get_world_object()
        return await getattr(world, self.method).executor.run_tool(document, arguments, model)


@dataclass(frozen=True, slots=True)
class EpisodeTools:
    """The tools and worlds of an episode."""

    tools: list[Tool]  # The tools of all sources, in the sources' order.
    worlds: list[EpisodeWorld]  # The worlds whose state the tools change.
    effects: CaseToolCalls  # Store of the episode's tool calls.


@asynccontextmanager
async def open_tools(
    sources: Sequence[ToolSource], sample: Sample, effects: CaseToolCalls | None = None
) -> AsyncIterator[EpisodeTools]:
    """Open the tools and worlds of an episode, and close them when it ends; without `effects`, store no calls."""
    effects = effects or CaseToolCalls()
    async with AsyncExitStack() as stack:
        opened = EpisodeTools([], [], effects)
        for source in sources:
            if isinstance(source, Tool):
                opened.tools.append(source)
            elif isinstance(source, McpServer):
                opened.tools.extend(await source.open(effects, stack))
            else:
                world = EpisodeWorld(source if isinstance(source, World) else World(source), sample, effects, stack)
                opened.worlds.append(world)
                opened.tools.extend(await world.list_tools())
        yield opened


def check_distinct_names(sources: Sequence[ToolSource], reserved: Collection[str]) -> None:
    """Raise SettingsError if two tools have the same name or a tool has a reserved name."""
    seen: set[str] = set()
    for source in sources:
        kind = source.make if isinstance(source, World) else source
        own = [source.document] if isinstance(source, Tool) else []
        for document in list_tool_documents(kind) if isinstance(kind, type) else own:
            if document.name in reserved:
                raise SettingsError(
                    f"a tool is named {document.name!r}, like the tool that ends an episode or asks the user; rename "
                    "it: @tool(name=...)"
                )
            if document.name in seen:
                raise SettingsError(f"two tools are named {document.name!r}; rename one: @tool(name=...)")
            seen.add(document.name)
