"""The model calls and tool calls of one case; each tool call runs only once.

The process that runs the case sends these calls to the gateway's process, which has the journal.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from evalsuite.core.errors import RequestRefused
from evalsuite.core.json_codec import decode_usage, digest, encode_request, encode_usage
from evalsuite.core.types import Completion, Message, Prompt, Request, Usage, convert_message
from evalsuite.gateway.concealment import remove_epoch

if TYPE_CHECKING:
    import asyncio


@dataclass(frozen=True, slots=True)
class NumberedToolCall:
    """A tool call of a case, with its number among the case's tool calls."""

    case: str  # The case's node id with `EPOCH_MARK`; for a call within a tool call, also the number of the outer call.
    epoch: int  # The case's epoch.
    number: int  # The call's number within the case, from 1.
    name: str  # The tool's name.
    arguments: Any  # JSON data.


@dataclass(slots=True)
class ToolModelCalls:
    """The model calls that a tool made. A replay counts a tool's model calls, although the tool does not run."""

    # For each request, the digests of its content, prompt and parameters.
    requests: list[dict[str, str]] = field(default_factory=list)
    # For each answer: its usage, its request's digest, and whether the model simulates a user or a tool.
    answers: list[dict[str, Any]] = field(default_factory=list)

    RESULT: ClassVar = "result"
    CALLS: ClassVar = "model_calls"

    def add_calls(self, other: ToolModelCalls) -> None:
        self.requests += other.requests
        self.answers += other.answers

    def pack_result_with_calls(self, result: Any) -> Any:
        if not self.requests:
            return result
        return {self.RESULT: result, self.CALLS: {"requests": self.requests, "answers": self.answers}}

    @classmethod
    def unpack_result_and_calls(cls, stored: Any) -> tuple[Any, ToolModelCalls]:
        if isinstance(stored, dict) and stored.keys() == {cls.RESULT, cls.CALLS}:
            return stored[cls.RESULT], cls(**stored[cls.CALLS])
        return stored, cls()

    def iterate_usages(self) -> Iterator[tuple[str, Usage, bool]]:
        """Yield for each answer the request's digest, the usage, and whether the model simulates a user or tool."""
        for answer in self.answers:
            yield answer["request"], decode_usage(answer["usage"]), answer["simulator"]


DURING: ContextVar[ToolModelCalls | None] = ContextVar("DURING", default=None)
"""Collects the model calls of the tool call that runs in this context."""


class CaseToolCalls:
    """The tool calls of one case, in the process that runs the case; not thread-safe.

    Args:
        keeper: the gateway, or the connection to the gateway; None stores no calls.

    Attributes:
        recalled: the tool calls whose results came from the journal, in the order of the calls.
        meter: the counter of the case's model calls.
        players: the counter of calls of models that simulate users and tools for the case.
    """

    def __init__(self, keeper: CaseCallProvider | None = None, case: str = "", epoch: int = 1) -> None:
        self._keeper, self._case, self._epoch = keeper, case, epoch
        self._numbers = itertools.count(1)
        self.recalled: list[NumberedToolCall] = []
        self.meter, self.players = UsageMeter(), UsageMeter()
        # The model calls of the tool call to which this object belongs; None if the object belongs to a whole case.
        self._outer: ToolModelCalls | None = None

    async def run_tool_once(self, name: str, arguments: Mapping[str, Any], run: Callable[[], Awaitable[Any]]) -> Any:
        """Return a tool call's stored result; if the journal has none, run the tool and store the result.

        Calls are numbered in the order of their start, so parallel calls must start in a fixed order.

        Args:
            run: function that makes the call and returns JSON data other than None.
        """
        from asyncio import get_running_loop

        if not self.stores_calls:
            return await run()
        effect, kept = await self.begin_tool_call(name, arguments)
        if effect is None:
            return kept
        with self.collect_model_calls(effect, get_running_loop()) as calls:
            result = await run()
        await self.end_tool_call(effect, calls, result)
        return result

    @contextmanager
    def collect_model_calls(
        self, effect: NumberedToolCall, loop: asyncio.AbstractEventLoop
    ) -> Iterator[ToolModelCalls]:
        """Collect a tool call's model calls; within the call, number the calls of `@effect` functions separately.

        If an interrupted tool call runs again, `@effect` functions that it had completed return their stored results.
        """
        calls = ToolModelCalls()
        within = CaseToolCalls(self._keeper, f"{remove_epoch(effect.case)} call {effect.number}", effect.epoch)
        within.meter, within.players, within._outer = self.meter, self.players, calls
        tokens = DURING.set(calls), CASE_EFFECTS.set((within, loop))
        try:
            yield calls
        finally:
            DURING.reset(tokens[0])
            CASE_EFFECTS.reset(tokens[1])

    @property
    def stores_calls(self) -> bool:
        """Whether this object stores calls; during a tool call, only the object made by `collect_model_calls` does."""
        return self.has_journal and (self._outer is not None or DURING.get() is None)

    @property
    def has_journal(self) -> bool:
        return self._keeper is not None

    async def begin_tool_call(self, name: str, arguments: Mapping[str, Any]) -> tuple[NumberedToolCall | None, Any]:
        """Give a tool call its number; return the call if the tool must run, otherwise None and the stored result."""
        effect = NumberedToolCall(self._case, self._epoch, next(self._numbers), name, dict(arguments))
        kept = await self._keeper.read_tool_result(effect) if self._keeper is not None else None
        if kept is None:
            return effect, None
        self.recalled.append(effect)
        result, calls = ToolModelCalls.unpack_result_and_calls(kept)
        for digests in calls.requests:
            self.meter.count_request(digests)
        for _, usage, by_simulator in calls.iterate_usages():
            (self.players if by_simulator else self.meter).add_usage(usage)
        if self._outer is not None:
            self._outer.add_calls(calls)
        return None, result

    async def end_tool_call(self, effect: NumberedToolCall, calls: ToolModelCalls, result: Any) -> None:
        """Store a tool call's result before the case gets the result."""
        if self._outer is not None:
            self._outer.add_calls(calls)
        if self._keeper is not None:
            await self._keeper.store_tool_result(effect, calls.pack_result_with_calls(result))


CASE_EFFECTS: ContextVar[tuple[CaseToolCalls, asyncio.AbstractEventLoop] | None] = ContextVar("effects", default=None)
"""The tool calls of the case whose solver runs in this context, and their event loop."""

ROUTE: ContextVar[Any] = ContextVar("ROUTE", default=None)
"""Receives the calls of an application's own clients; unset while the gateway itself calls a provider."""


class CompletionProvider(Protocol):
    """Sends requests to models and returns their completions."""

    async def ask(self, request: Request) -> Completion:
        """Return the model's completion for a request."""


class CaseCallProvider(CompletionProvider, Protocol):
    """Answers the model calls and tool calls of cases: the gateway itself, or the connection to the gateway."""

    async def record_cancellation(self, request: Request, seconds: float) -> None:
        """Store that the case cancelled a request after this many seconds."""

    async def read_tool_result(self, effect: NumberedToolCall) -> Any: ...

    async def store_tool_result(self, effect: NumberedToolCall, result: Any) -> None: ...


class WaitTimer:
    """Measures how long a case's calls waited: for the gateway's start, for its limits, and between retries.

    Attributes:
        waited: seconds during which calls were open but none was being answered.
    """

    def __init__(self) -> None:
        self.waited = 0.0
        self._open, self._since = 0, 0.0
        self._served: list[tuple[float, float]] = []

    def begin_call(self) -> float:
        """Count a call as open; return the current time."""
        now = time.monotonic()
        if not self._open:
            self._since = now
        self._open += 1
        return now

    def end_call(self, began: float, seconds: float) -> None:
        """Count a call as ended; when no call is open any longer, add the time that the calls waited.

        Args:
            began: the time that `begin_call` returned for this call.
            seconds: time from sending to the answer; 0 means unknown, and the call then counts as sent at `began`.
        """
        now = time.monotonic()
        self._served.append((now - seconds if seconds else began, now))
        self._open -= 1
        if not self._open:
            # Count overlapping times of service once. A stored answer keeps the duration of its original call.
            covered, until = 0.0, -math.inf
            for start, end in sorted(self._served):
                covered += max(0.0, end - max(start, until))
                until = max(until, end)
            self.waited += now - self._since - covered
            self._served.clear()


class UsageMeter:
    """Counts one case's requests and usage over all models.

    Equal requests are numbered, because each should get an answer of its own.

    Args:
        scope: the case's id; if the id is empty, equal requests share one answer.
        share_greedy: whether equal requests with temperature 0 share one answer, over all cases.

    Attributes:
        cancelled: the case's cancelled requests, each with the seconds until its cancellation.
        times: the time in which the case's calls waited.
    """

    def __init__(
        self, whole: UsageMeter | None = None, scope: str = "", *, share_greedy: bool = False, plays: bool = False
    ) -> None:
        self._usages: list[Usage] = []
        self.plays = plays
        self._whole = whole
        self.scope: str = whole.scope if whole else scope
        self.share_greedy: bool = whole.share_greedy if whole else share_greedy
        self._first: dict[str, str] = {}
        self._requests: Counter[str] = Counter()
        self.cancelled: list[tuple[Request, float]] = whole.cancelled if whole else []
        self.times: WaitTimer = whole.times if whole else WaitTimer()

    @property
    def usage(self) -> Usage:
        """The usage of all calls; the costs are added exactly, so that the order of the calls changes nothing."""
        return replace(sum(self._usages, Usage()), cost=math.fsum(usage.cost for usage in self._usages))

    def add_usage(self, usage: Usage) -> None:
        """Count a call; if this meter counts only some of the case's calls, also count it in the case's meter."""
        self._usages.append(usage)
        if self._whole is not None:
            self._whole.add_usage(usage)

    def assign_draw(self, request: Request, *, shared: bool = False) -> Request:
        """Record a request's fingerprints; return the request with its `draw` (the case's id and a counter).

        Args:
            shared: whether equal requests of all cases share one answer.
        """
        plain = encode_request(request)
        # Leave out the server's address and login, because the separate fingerprint `model` covers them.
        content = digest(plain | {"base_url": None})
        prompt = digest({"messages": plain["messages"], "tools": plain["tools"]})
        digests = {"content": content, "prompt": prompt, "params": digest(plain["params"])}
        ordinal, during = self.count_request(digests), DURING.get()
        if during is not None:
            during.requests.append(digests)
        shared = shared or (self.share_greedy and request.params.get("temperature") == 0)
        return request if shared or not self.scope else replace(request, draw=f"{self.scope} #{ordinal}")

    def count_request(self, digests: Mapping[str, str]) -> int:
        """Count a request by the digests of its content, prompt and parameters; return how often its content came."""
        if not self._requests:
            self._first = {name: digests[name] for name in ("prompt", "params")}
        self._requests[digests["content"]] += 1
        return self._whole.count_request(digests) if self._whole else self._requests[digests["content"]]

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return digests of the first request, and of all requests in any order; empty if the case sent no request."""
        if not self._requests:
            return {}
        return {**self._first, "requests": digest(sorted(self._requests.elements()))}


class ModelHandle:
    """Implements `protocols.Model`, which solvers and scorers call, by sending requests to a gateway.

    Args:
        base_url: the model's address; None means the backend's default.
        shared: whether equal requests of all cases share one answer.
    """

    def __init__(
        self,
        asker: CompletionProvider,
        name: str,
        base_url: str | None = None,
        epoch: int = 1,
        overrides: Mapping[str, Any] | None = None,
        meter: UsageMeter | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self._asker, self.name, self._base_url, self._epoch = asker, name, base_url, epoch
        self.overrides: Mapping[str, Any] = overrides or {}
        self.meter = meter or UsageMeter()
        self._shared = shared
        self.players = UsageMeter(self.meter, plays=True)  # Usage of models that simulate users and tools for the case.

    async def chat(self, prompt: Prompt, *, tools: Sequence[Mapping[str, Any]] = (), **params: Any) -> Completion:
        extra = params.get("extra_body")
        params |= self.overrides
        if extra and "extra_body" in self.overrides:
            params["extra_body"] = {**extra, **self.overrides["extra_body"]}
        request = Request(self.name, convert_prompt(prompt), params, tuple(tools), self._base_url, epoch=self._epoch)
        if params.get("n") not in (None, 1):
            raise RequestRefused(
                f"n={params['n']}: a request has one answer; send it {params['n']} times, because each equal request "
                "of a case gets an answer of its own"
            )
        # Let equal texts share one answer of an embedding model, because their vectors are equal.
        shared = self._shared or params.get("api") == "embeddings"
        import asyncio

        request, began, seconds = self.meter.assign_draw(request, shared=shared), self.meter.times.begin_call(), 0.0
        route = ROUTE.set(None)
        try:
            completion = await self._send_request(request)
            seconds = completion.seconds
        except asyncio.CancelledError:
            if request.draw:
                self.meter.cancelled.append((request, time.monotonic() - began))
            raise
        finally:
            ROUTE.reset(route)
            self.meter.times.end_call(began, seconds)
        self.meter.add_usage(completion.usage)
        if (during := DURING.get()) is not None:
            content, usage = digest(encode_request(request)), encode_usage(completion.usage)
            during.answers.append({"request": content, "usage": usage, "simulator": self.meter.plays})
        return completion

    async def _send_request(self, request: Request) -> Completion:
        return await self._asker.ask(request)

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Self:
        """Return a handle for another model of the same case; its usage counts for the case.

        Args:
            base_url: the model's address; None means this handle's address if its model is the same, else the default.
            epoch: the epoch of a simulated tool. If given, equal requests of all cases share one answer.
        """
        same = name == self.name and base_url is None
        return type(self)(
            self._asker,
            name,
            self._base_url if same else base_url,
            epoch or self._epoch,
            self.overrides if same else {},
            self.meter,
            shared=self._shared or epoch is not None,
        )

    def player(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Self:
        """Return a handle for a model that simulates a user or a tool; its usage is counted separately."""
        handle = self.peer(name, base_url, epoch=epoch)
        handle.meter = self.players
        return handle


def convert_prompt(prompt: Prompt) -> tuple[Message, ...]:
    """Convert a prompt to messages; text becomes one message of the user."""
    if isinstance(prompt, str):
        return (Message("user", prompt),)
    return tuple(map(convert_message, prompt))
