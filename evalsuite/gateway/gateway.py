"""The gateway: the one place in a run through which every model call passes.

Store, then a call under way for the same request, then the spend limit, then the limiter, then the
backend, then the store again: in this order, so that each distinct request is paid once and nothing paid
for is lost.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from evalsuite.errors import BackendUnavailable, CallFailed, EvalsuiteError, RequestRefused, RunError
from evalsuite.gateway.concealment import Vault
from evalsuite.gateway.spend import Ledger, answer_bound, estimate_tokens, price_of
from evalsuite.gateway.wire import request_key
from evalsuite.models.protocol import Hopeless, RateLimited, Transient, Unreachable
from evalsuite.types import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalsuite.gateway.limiter import Limiter
    from evalsuite.gateway.spend import Price
    from evalsuite.gateway.store import Store
    from evalsuite.models.protocol import Backend
    from evalsuite.types import Completion, Request

ATTEMPTS = 6
"""Calls for one request at most, those answered 429 not counted."""

PATIENCE = 900.0
"""Seconds after its first 429 at which a request that is still refused has failed."""

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before the second attempt, doubled for each further one, and their bound."""

NEVER_REACHED = 3
"""Attempts at a server that has not answered anything yet: it is not there rather than busy."""

GRACE = 10.0
"""Seconds that the end of a run waits for calls under way that cost money."""


class Asker(Protocol):
    """What answers requests: the gateway itself, or the wire to it."""

    async def ask(self, request: Request) -> Completion:
        """Answers a request.

        Raises:
            ModelError: it failed for good.
        """
        ...


class Gateway:
    """See the module. All methods belong to one event loop's thread.

    Args:
        open_backend: makes the backend for a model and base URL.
        store: keeps the answers.
        limiter: admits the calls.
        ledger: counts what is paid.
        prices: by model.
        on_hopeless: told once, when no call to a model can succeed at all.
        clock: seconds that only go forward.
        vault: remembers the secrets behind the hashes in requests.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts that it is made of, most given by name
        self,
        open_backend: Callable[[str, str | None], Backend],
        store: Store,
        limiter: Limiter,
        ledger: Ledger | None = None,
        prices: Mapping[str, Price] | None = None,
        on_hopeless: Callable[[EvalsuiteError], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        vault: Vault | None = None,
    ) -> None:
        self._vault = vault or Vault()
        self.store, self.limiter, self.ledger = store, limiter, ledger or Ledger()
        self._open_backend, self._prices, self._on_hopeless = open_backend, prices or {}, on_hopeless
        self._clock = clock
        self._backends: dict[tuple[str, str | None], Backend] = {}
        self._slots: dict[Backend, asyncio.Semaphore] = {}
        self._answered: set[Backend] = set()
        self._hopeless: dict[Backend, str] = {}
        self._flights: dict[str, asyncio.Task[Completion]] = {}
        self._used: dict[str, Usage] = {}
        # Why answers cannot be kept.
        self._lost = ""

    async def ask(self, request: Request) -> Completion:
        """Answers a request, from the store where it can.

        Raises:
            EvalsuiteError: the call failed for good, or the model's name makes no sense.
        """
        try:
            return await self._ask(request)
        except EvalsuiteError:
            raise
        except Exception as error:
            # The same words in every process, and nobody is left waiting, whatever it was.
            raise CallFailed(f"{request.model}: {type(error).__name__}: {error}") from error

    async def _ask(self, request: Request) -> Completion:
        backend = self._backend(request)
        request = self._vault.conceal(request)
        key = request_key(backend.identity, request)
        flight = self._flights.get(key)
        if flight is None:
            kept = self.store.get(key)
            if kept is not None:
                self._used[key] = kept.usage
                return kept
            flight = asyncio.create_task(self._fly(key, backend, request))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        # Whoever asked may give up; the call goes on, since others may have joined it and it is paid for.
        return await asyncio.shield(flight)

    def _landed(self, key: str, flight: asyncio.Task[Completion]) -> None:
        self._flights.pop(key, None)
        # Nobody may be left to hear of the failure.
        if not flight.cancelled():
            flight.exception()

    def _backend(self, request: Request) -> Backend:
        address = (request.model, request.base_url)
        if address not in self._backends:
            self._backends[address] = self._open_backend(*address)
        return self._backends[address]

    async def _fly(self, key: str, backend: Backend, request: Request) -> Completion:
        price = self._price(backend, request.model)
        tokens = estimate_tokens(request), answer_bound(request)
        reserved = price.of(*tokens) if price else 0.0
        await self.ledger.reserve(reserved)
        completion = None
        try:
            completion = await self._persist(backend, request, sum(tokens))
            if price:
                cost = price.of(completion.usage.prompt_tokens, completion.usage.completion_tokens)
                completion = dataclasses.replace(
                    completion, usage=dataclasses.replace(completion.usage, cost=cost)
                )
            # By the backend's own name for its address, which has no secrets in it.
            self._keep(key, dataclasses.replace(request, base_url=backend.identity), completion)
            self._used[key] = completion.usage
            # As a replay will hear it: half a surrogate pair is no part of a file.
            return self.store.get(key) or completion
        finally:
            self.ledger.settle(reserved, completion.usage if completion else None)

    def _keep(self, key: str, request: Request, completion: Completion) -> None:
        try:
            self.store.put(key, request, completion)
        except RunError as error:
            # A full disk: whatever was asked from here on would be paid for in vain.
            self._lost = str(error)
            self._on_hopeless(error)
            raise

    def _price(self, backend: Backend, model: str) -> Price | None:
        price = price_of(model, self._prices) if backend.metered else None
        if price is None and backend.metered and self.ledger.limit is not None:
            error = BackendUnavailable(
                f"--max-cost cannot be kept, as no price of {model} is known: name it with "
                f"--price {model}=PROMPT/COMPLETION in US dollars a million tokens (0/0 for a server of your own)"
            )
            self._give_up(backend, error)
            raise error
        return price

    async def _persist(self, backend: Backend, request: Request, tokens: int) -> Completion:
        """Tries until it succeeds, can never succeed, or the bounds are reached."""
        deadline, failures = math.inf, 0
        while True:
            try:
                return await self._call(backend, request, tokens)
            except RateLimited as error:
                deadline = min(deadline, self._clock() + PATIENCE)
                if self._clock() + (error.retry_after or 0.0) > deadline:
                    raise CallFailed(f"{error} (no use in waiting longer than {PATIENCE:g} s)") from error
            except Transient as error:
                failures += 1
                self._despair(backend, error, failures)
                wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (failures - 1))
                await asyncio.sleep(wait * random.uniform(0.75, 1.25))  # noqa: S311 - jitter, no secret
            except Hopeless as error:
                self._answered.discard(backend)
                gone = BackendUnavailable(str(error))
                self._give_up(backend, gone)
                raise gone from error
            except BackendUnavailable as error:
                self._give_up(backend, error)
                raise
            except RequestRefused:
                self._answered.add(backend)
                raise

    def _despair(self, backend: Backend, error: Transient, failures: int) -> None:
        """Raises what comes of a failure after which nothing is to be hoped for."""
        absent = isinstance(error, Unreachable) and backend not in self._answered
        if absent and failures >= NEVER_REACHED:
            gone = BackendUnavailable(f"{error}; is the server running, is --model-base-url right?")
            self._give_up(backend, gone)
            raise gone from error
        if failures >= ATTEMPTS:
            raise CallFailed(f"{error} (the last of {failures} attempts)") from error

    async def _call(self, backend: Backend, request: Request, tokens: int) -> Completion:
        async with self._slot(backend), self.limiter.admit(tokens) as admitted:
            if self._lost:
                raise CallFailed(f"not asked, as no answer can be kept any more: {self._lost}")
            if backend in self._hopeless:
                raise BackendUnavailable(self._hopeless[backend])
            try:
                completion = await backend.complete(self._vault.reveal(request))
            except RateLimited as error:
                # Who wants to be left alone for hours is not waited for, by nobody.
                if (error.retry_after or 0.0) <= PATIENCE:
                    self.limiter.refused(admitted, error.retry_after)
                raise
        self._answered.add(backend)
        used = completion.usage.prompt_tokens + completion.usage.completion_tokens
        self.limiter.accepted(admitted, tokens, used or tokens)
        return completion

    def _slot(self, backend: Backend) -> asyncio.Semaphore:
        if backend not in self._slots:
            self._slots[backend] = asyncio.Semaphore(backend.connections or self.limiter.connections)
        return self._slots[backend]

    def _give_up(self, backend: Backend, error: BackendUnavailable) -> None:
        """Tells, once; a backend that has answered before may do so again."""
        if backend not in self._hopeless and backend not in self._answered:
            self._hopeless[backend] = str(error)
            self._on_hopeless(error)

    def used(self) -> Usage:
        """What the completions that were asked for in this run took when they were made, each once.

        Unlike what was paid in this session, this is the same for a run and its replay.
        """
        return sum((self._used[key] for key in sorted(self._used)), Usage())

    async def aclose(self) -> None:
        """Ends the calls under way, those that cost money only after a moment's wait; closes everything."""
        metered = [backend for backend in self._backends.values() if backend.metered]
        if metered and self.limiter.in_flight:
            await self._drain()
        for flight in list(self._flights.values()):
            flight.cancel()
        await asyncio.gather(*self._flights.values(), return_exceptions=True)
        for backend in self._backends.values():
            await backend.aclose()
        self.store.close()

    async def _drain(self) -> None:
        """Lets the calls under way finish, and admits no further ones."""
        self.limiter.connections = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self.limiter.idle()
