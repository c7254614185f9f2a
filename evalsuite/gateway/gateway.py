"""The gateway, through which every model call of a run passes.

A request is looked up in the store, then among the calls in flight. A new request must pass the spend limit and the
limiter; then the backend answers, and the answer is stored. Because the store is searched first and keeps every answer,
each distinct request is paid for only once, and no paid answer is lost.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol

from evalsuite.core import errors
from evalsuite.core.types import Completion, Request, Usage
from evalsuite.gateway import concealment, spend
from evalsuite.gateway.channel import decode_error, encode_error
from evalsuite.gateway.handle import NumberedToolCall, ToolModelCalls
from evalsuite.gateway.upstream import RetrySchedule, Upstream
from evalsuite.models import protocol

if TYPE_CHECKING:
    from evalsuite.gateway.limiter import Limiter
    from evalsuite.journal.answers import StoredToolCalls, UnansweredRequests

CallEnd = Literal["answered", "failed", "refused"]
PATIENCE = 900.0  # A request fails this many seconds after its first refusal or after the start of an outage.
NEVER_REACHED = 3  # Number of failed attempts after which a server that never answered counts as absent.
STRETCH, SLACK = 1.5, 1.0
"""Delay of the answer to a request that its case cancelled when it ran before: STRETCH times the seconds until the
cancellation, plus SLACK seconds. So the case cancels the request again before the answer arrives."""

GRACE = 10.0  # Seconds for which a run waits at its end for calls in flight that cost money.


@dataclasses.dataclass(slots=True)
class _Call:
    """One call that the gateway is processing."""

    key: str  # The request's key in the store.
    request: Request  # The request as it is sent, without secrets.
    reserved: float  # US dollars reserved for the call.
    attempt: int | None = None  # The attempt's number in the journal; None until the call is sent.


class Gateway:
    """Answers requests from the journal or a backend. All methods must be called in the event loop's thread.

    Args:
        patience: maximum seconds that a request waits for a server that is down or has no capacity.
        call_timeout: seconds that one call of a backend may take; None means no limit.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts that it is made of, most given by name
        self,
        open_backend: Callable[[str, str | None], protocol.Backend],
        store: Store,
        limiter: Limiter,
        ledger: spend.Ledger | None = None,
        prices: Mapping[str, spend.Price] | None = None,
        on_hopeless: Callable[[errors.EvalsuiteError], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        vault: concealment.HashedSecrets | None = None,
        patience: float = PATIENCE,
        call_timeout: float | None = None,
    ) -> None:
        self._patience, self._call_timeout = patience, call_timeout
        self._vault = vault or concealment.HashedSecrets()
        self.store, self.limiter, self.ledger = store, limiter, ledger or spend.Ledger()
        self._open_backend, self._prices, self._on_hopeless = open_backend, prices or {}, on_hopeless
        self._clock = clock
        self._upstreams: dict[tuple[str, str | None], Upstream] = {}  # By model and address.
        self.notices: list[str] = []  # Messages about outages for the terminal.
        self._calls: dict[str, asyncio.Task[Completion]] = {}
        self._storing: set[asyncio.Task[Completion]] = set()  # Tasks that are storing the answers of calls.
        self._used: dict[str, Usage] = {}
        # Keys of requests that their cases cancelled. Cancelled requests are not counted in records, even if their
        # answers arrived later.
        self._cancelled: set[str] = set()
        self.lost = ""  # The reason why answers cannot be stored; empty while answers can be stored.
        # Function that is called with each request that a backend answered, and with the answer.
        self.on_answer: Callable[[Request, Completion], None] | None = None
        # Number of requests by how they were served: `kept` (from the store), `joined` (to a call in flight), `asked`
        # (anew).
        self.served: Counter[str] = Counter()

    async def ask(self, request: Request) -> Completion:
        """Answer a request, from the store if possible."""
        try:
            return await self._ask_model(request)
        except errors.EvalsuiteError:
            raise
        except Exception as error:
            # Convert exceptions of other classes, so that the callers in all processes get the same message.
            raise errors.InternalError(
                f"the gateway failed on a request to {request.model}: {type(error).__name__}: {error}"
            ) from error

    async def _ask_model(self, request: Request) -> Completion:
        """Return a completion from the store, from an equal call under way, or from a new call."""
        upstream = self._get_or_open_upstream(request)
        request = self._vault.conceal_request(request)
        keys = concealment.make_request_keys(
            upstream.backend.identity, request, with_older_keys=self.store.has_older_keys
        )
        key, outcomes = keys[0], self.store.outcomes
        self._cancelled.discard(key)
        cancelled = [outcomes.cancelled[each] for each in keys if each in outcomes.cancelled] if outcomes else []
        if cancelled:
            await asyncio.sleep(SLACK + STRETCH * cancelled[0])
        call = self._calls.get(key)
        self.served["joined"] += call is not None
        if call is None:
            for each in keys:
                kept = self.store.get(each)
                if kept is not None:
                    self.served["kept"] += 1
                    self._used[each] = kept.usage
                    return kept
            if outcomes:
                case = concealment.get_case_name(request.draw)
                failed = next(filter(None, (outcomes.find_error(each, case) for each in keys)), None)
                if failed is not None:
                    raise decode_error(failed)
            self.served["asked"] += 1
            call = asyncio.create_task(self._call_and_store_completion(key, upstream, request))
            self._calls[key] = call
            call.add_done_callback(lambda done: self._remove_ended_call(key, done))
        # The call continues even if the caller gives up, because the call is paid for.
        return await asyncio.shield(call)

    async def record_cancellation(self, request: Request, seconds: float) -> None:
        """Store that a case cancelled a request after `seconds`, so that a rerun repeats the cancellation."""
        key, *_ = concealment.make_request_keys(
            self._get_or_open_upstream(request).backend.identity, self._vault.conceal_request(request)
        )
        self._cancelled.add(key)
        if self.store.outcomes and not self.store.read_only:
            await self.store.outcomes.store_cancellation(key, seconds)

    async def read_tool_result(self, effect: NumberedToolCall) -> Any:
        """Read the result of a tool call from the journal; None if the journal has no result."""
        calls = self.store.tool_calls
        # Also look up the case's name with the epoch, because older journals contain this name.
        names = (concealment.remove_epoch(effect.case), concealment.remove_epoch_mark(effect.case))
        kept = next(filter(None, (calls.get(name, effect.epoch, effect.number) for name in names)), None)
        if kept is None or kept[:2] != (effect.name, effect.arguments):
            if calls.read_only:
                instead = f"a call of {kept[0]} with {kept[1]!r:.200}" if kept else "nothing"
                raise errors.ReplayMiss(
                    f"the journal holds {instead} where {names[0]} (epoch {effect.epoch}) makes its tool call "
                    f"{effect.number}, {effect.name} with {effect.arguments!r:.200}; a replay never runs a tool"
                )
            return None
        for request, usage, _ in ToolModelCalls.unpack_result_and_calls(kept[2])[1].iterate_usages():
            self._used[f"recalled {request}"] = usage
        return kept[2]

    async def store_tool_result(self, effect: NumberedToolCall, result: Any) -> None:
        calls, case = self.store.tool_calls, concealment.remove_epoch(effect.case)
        with self._end_run_if_store_fails():
            if calls.read_only:
                raise errors.RunError("a replay never runs a tool")
            calls.store_call(case, effect.epoch, effect.number, effect.name, effect.arguments, result)

    @contextmanager
    def _end_run_if_store_fails(self) -> Iterator[None]:
        try:
            yield
        except errors.RunError as error:
            # Further answers would be paid for but could not be stored, for example because the disk is full.
            self.lost = str(error)
            self._on_hopeless(error)
            raise

    def _remove_ended_call(self, key: str, call: asyncio.Task[Completion]) -> None:
        self._calls.pop(key, None)
        self._storing.discard(call)
        # Retrieve the exception of the task, because asyncio logs exceptions that nobody retrieves.
        if not call.cancelled():
            call.exception()

    def _get_or_open_upstream(self, request: Request) -> Upstream:
        address = (request.model, request.base_url)
        if address not in self._upstreams:
            backend = self._open_backend(*address)
            limiter = self.limiter.make_connection_sharing_limiter() if self._upstreams else self.limiter
            self._upstreams[address] = Upstream(
                backend, limiter, self._patience, lambda words: self.notices.append(f"{backend.identity}: {words}")
            )
        return self._upstreams[address]

    async def _call_and_store_completion(self, key: str, upstream: Upstream, request: Request) -> Completion:
        price = spend.find_price(request.model, self._prices)
        if price is None and upstream.backend.metered and self.ledger.limit is not None:
            unavailable = errors.BackendUnavailable(spend.explain_unknown_price(request.model))
            self._report_unavailable_model(upstream, unavailable)
            raise unavailable
        try:
            completion = await self._send_request_with_retries(key, upstream, request, price)
        except errors.ModelError as error:
            if self.store.outcomes and not self.store.read_only and not isinstance(error, errors.BatchNotAwaited):
                with suppress(errors.RunError):
                    await self.store.outcomes.store_error(key, encode_error(error))
            raise
        # Store the backend's identity instead of the address, because the identity contains the address without
        # secrets.
        self._storing.add(self._calls[key])
        address, draw = upstream.backend.identity, concealment.remove_epoch(request.draw)
        with self._end_run_if_store_fails():
            kept = await self.store.store_completion(
                key, dataclasses.replace(request, base_url=address, draw=draw), completion
            )
        self._used[key] = completion.usage
        if self.on_answer is not None:
            self.on_answer(request, completion)
        return kept

    async def _send_request_with_retries(
        self, key: str, upstream: Upstream, request: Request, price: spend.Price | None
    ) -> Completion:
        retries, limiter = RetrySchedule(self._clock, self._patience), upstream.limiter
        while True:
            try:
                return await self._attempt_request(key, upstream, request, price, is_retry=retries.refusals > 0)
            except (protocol.RateLimited, protocol.Transient) as error:
                self._raise_if_server_absent(upstream, error, retries)
                is_plain, refusing_since = limiter.pacing.plain, limiter.breaker.refusing_since
                with limiter.count_retry_wait():
                    await asyncio.sleep(retries.compute_wait(error, is_unpaced=is_plain, refusing_since=refusing_since))
            except protocol.PermanentFailure as error:
                upstream.answered = False
                gone = errors.BackendUnavailable(str(error))
                self._report_unavailable_model(upstream, gone)
                raise gone from error
            except errors.BackendUnavailable as error:
                self._report_unavailable_model(upstream, error)
                raise
            except protocol.WithheldAnswer as error:
                raise errors.RequestRefused(str(error)) from error

    def _raise_if_server_absent(self, upstream: Upstream, error: Exception, retries: RetrySchedule) -> None:
        absent = isinstance(error, protocol.UnreachableServer) and not upstream.answered
        # Count these failures separately, because `RetrySchedule.failures` omits failures during an outage.
        retries.unreached += absent
        # Add up the probes of all requests, because a single request rarely gets its turn to probe a silent server.
        probed = upstream.limiter.breaker.probes + 1 if absent else 0
        if max(retries.unreached, probed) >= NEVER_REACHED:
            gone = errors.BackendUnavailable(f"{error}; is the server running, is --model-base-url right?")
            self._report_unavailable_model(upstream, gone)
            raise gone from error

    async def _attempt_request(
        self, key: str, upstream: Upstream, request: Request, price: spend.Price | None, *, is_retry: bool
    ) -> Completion:
        """Make one call: reserve its maximum cost before the call, and book its actual cost after the call."""
        concealment.UNLIMITED_REQUEST.set(request)
        # Limit the answer's length only if spending is limited, because a limit could cut the answer off.
        sent = spend.limit_completion_tokens(request) if price and self.ledger.limit is not None else request
        answer = spend.bound_completion_tokens(sent)
        text = spend.encode_prompt(sent)
        reserved = price.bound_cost(spend.bound_prompt_tokens(sent, text), answer) if price else 0.0
        call, tokens = _Call(key, sent, reserved), spend.estimate_prompt_tokens(sent, text) + answer
        await self.ledger.reserve_cost(reserved)
        usage, answered = None, True
        try:
            completion = await upstream.send_call(
                lambda: self._ask_backend(upstream.backend, call), tokens, is_retry=is_retry
            )
            usage = self._compute_usage_with_cost(upstream.backend, request, completion, price)
            self._record_call_end(call, "answered", usage)
        except (protocol.LostAnswer, protocol.WithheldAnswer, asyncio.CancelledError) as error:
            # A call without an attempt's number was never sent, so it cost nothing.
            if price and (stated := getattr(error, "usage", None)):
                counted = spend.find_plausible_usage(sent, Completion("", usage=stated))
                usage = (
                    None if counted.estimated else dataclasses.replace(counted, cost=price.compute_usage_cost(counted))
                )
            self._record_call_end(call, "failed", usage, error=str(error))
            if price and usage is None and call.attempt is not None:
                usage, answered = Usage(1, 0, 0, reserved, 1), False
            raise
        except BaseException as error:
            self._record_call_end(call, "refused", error=str(error))
            raise
        else:
            return dataclasses.replace(completion, usage=usage)
        finally:
            self.ledger.book_cost(reserved, usage, request.model, answered=answered)

    async def _ask_backend(self, backend: protocol.Backend, call: _Call) -> Completion:
        if self.lost:
            raise errors.RunError(f"not sent, because no answer can be stored: {self.lost}")
        if backend.metered and not self.store.read_only:
            # Record the call now, so that its possible cost is known even if the process dies during the call.
            call.attempt = self.store.record_call_start(call.key, call.reserved)
        sent = self._clock()
        limit = asyncio.timeout(self._call_timeout)
        try:
            async with limit:
                completion = await self._vault.complete_request(backend, call.request)
            # If a shared gateway answered, keep the seconds that it measured.
            return completion if completion.seconds else dataclasses.replace(completion, seconds=self._clock() - sent)
        except (errors.EvalsuiteError, protocol.RateLimited, protocol.Transient):
            raise
        except Exception as error:
            if limit.expired():
                words = f"{backend.identity} gave no answer within {self._call_timeout:g} s (evalsuite_call_timeout)"
                # Do not call a user's function again after its time limit, because the first call may still run.
                raise (protocol.LostAnswer if backend.metered else errors.CallFailed)(words) from error
            # An unknown exception is an internal error if evalsuite's own backend raised it; from other backends, it is
            # a failed call.
            kind = errors.InternalError if type(backend).__module__.startswith("evalsuite.") else errors.CallFailed
            raise kind(f"{call.request.model}: {errors.describe_error(error)}") from error

    def _record_call_end(self, call: _Call, state: CallEnd, usage: Usage | None = None, error: str = "") -> None:
        if call.attempt is not None:
            self.store.record_call_end(call.attempt, state, usage, error)

    def _compute_usage_with_cost(
        self, backend: protocol.Backend, request: Request, completion: Completion, price: spend.Price | None
    ) -> Usage:
        if price is None and not backend.metered:
            return completion.usage
        usage = spend.find_plausible_usage(request, completion)
        if price is None:
            return dataclasses.replace(usage, unpriced=usage.calls)
        return dataclasses.replace(usage, cost=price.compute_usage_cost(usage), unpriced=0)

    @property
    def upstreams(self) -> list[Upstream]:
        """The models that were called so far; other threads may read this list."""
        return list(self._upstreams.values())

    def describe_outages(self) -> list[str]:
        """Describe each outage: the server, the time since its first failure, and the time until the next probe."""
        return [words for upstream in self.upstreams if (words := upstream.describe_outage())]

    def _report_unavailable_model(self, upstream: Upstream, error: errors.BackendUnavailable) -> None:
        """Report an unavailable model once, unless its backend answered earlier, because it may then recover."""
        if not (upstream.given_up or upstream.answered):
            upstream.given_up = str(error)
            upstream.limiter.fail_waiting_calls(errors.BackendUnavailable(str(error)))
            self._on_hopeless(error)

    def sum_usage(self) -> Usage:
        """Sum the usage of all completions that cases received in this run; count each completion once.

        A replay has the usage of the run that it replays, although a replay pays nothing.
        """
        return sum((self._used[key] for key in sorted(self._used.keys() - self._cancelled)), Usage())

    def reset_for_next_run(self) -> None:
        """Prepare the gateway for the next run in this process: reset the usage, and try unavailable models again."""
        for upstream in self._upstreams.values():
            upstream.given_up = ""
        self.lost = ""
        self._used.clear()
        self._cancelled.clear()

    async def aclose(self) -> None:
        """Close everything and end the calls in flight; calls that cost money get a short time to finish."""
        if self.limiter.connections.in_flight and any(each.backend.metered for each in self._upstreams.values()):
            self.limiter.connections.most = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await self.limiter.connections.wait_until_idle()
        await asyncio.gather(*self._storing, return_exceptions=True)
        for call in list(self._calls.values()):
            call.cancel()
        await asyncio.gather(*self._calls.values(), return_exceptions=True)
        for upstream in self._upstreams.values():
            await upstream.backend.aclose()
        self.store.close()


class Store(Protocol):
    """A store of a gateway's answers, implemented by a run's journal and by the stores of a gateway service."""

    # Whether older versions stored some answers under keys that do not distinguish equal requests.
    has_older_keys: bool
    # The log of requests that ended without an answer; None if this process does not run cases.
    outcomes: UnansweredRequests | None
    tool_calls: StoredToolCalls

    @property
    def read_only(self) -> bool:
        """Whether the store accepts no answers, as in a replay."""

    def get(self, key: str) -> Completion | None:
        """Read the completion stored under a key, if there is one."""

    async def store_completion(self, key: str, request: Request, completion: Completion) -> Completion:
        """Store a completion; return the completion that `get` will return for this key."""

    def record_call_start(self, key: str, reserved: float = 0.0) -> int:
        """Record that a call is sent; return the attempt's number."""

    def record_call_end(self, attempt: int, state: CallEnd, usage: Usage | None = None, error: str = "") -> None:
        """Record how a call ended."""

    def close(self) -> None:
        """Write every accepted answer, then close the store."""
