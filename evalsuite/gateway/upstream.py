"""A model at its address, as the gateway sees it: when it may be asked, and whether asking makes sense at all."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from evalsuite.core.errors import BackendUnavailable, CallFailed, RequestRefused
from evalsuite.models.protocol import Outage, RateLimited

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from evalsuite.core.types import Completion
    from evalsuite.gateway.breaker import Breaker
    from evalsuite.gateway.limiter import Limiter
    from evalsuite.models.protocol import Backend

WORTH_TELLING = 1.5
"""Seconds of a pause that the terminal tells of."""


class Upstream:
    """One of these for each backend of a gateway; it belongs to the loop's thread.

    Args:
        backend: makes the calls.
        limiter: its own, so that a slow model holds up nobody else.
        breaker: its own.
        patience: seconds that one request waits for a server.

    Attributes:
        answered: whether any call was ever answered, so that the server is there.
        given_up: why no call can succeed; empty while one may.
    """

    def __init__(self, backend: Backend, limiter: Limiter, breaker: Breaker, patience: float) -> None:
        self.backend, self.limiter, self.breaker = backend, limiter, breaker
        self.answered, self.given_up = False, ""
        self._patience = patience
        self._slots = asyncio.Semaphore(backend.connections or limiter.places.most)
        self._prepared = False
        # A terminal of 80 columns has no place for a whole address.
        self._host = backend.identity.partition("://")[2].partition("/")[0] or backend.identity
        if hasattr(backend, "on_exhausted"):
            backend.on_exhausted = limiter.exhausted

    def give_up(self, words: str) -> None:
        """No call can succeed; those that wait are told so at once."""
        self.given_up = words
        self.breaker.abandon()

    async def call(self, ask: Callable[[], Awaitable[Completion]], tokens: int) -> Completion:
        """Makes a call when it is its turn.

        Args:
            ask: makes the call.
            tokens: estimate of what it takes, prompt and answer.

        Raises:
            BackendUnavailable: no call can succeed.
            Exception: whatever `ask` raises.
        """
        completion = None
        if not self._prepared:
            await self._prepare()
        while completion is None:
            probes = await self.breaker.passage()
            try:
                completion = await self._admitted(ask, tokens, probes=probes)
            finally:
                if probes:
                    self.breaker.tried()
        self.answered = True
        used = completion.usage.prompt_tokens + completion.usage.completion_tokens
        self.limiter.accepted(tokens, used or tokens)
        return completion

    async def _prepare(self) -> None:
        """Has the backend opened before the first call is admitted; whoever is admitted sends at once."""
        if hasattr(self.backend, "prepare"):
            await self.backend.prepare()
        self._prepared = True

    async def _admitted(
        self, ask: Callable[[], Awaitable[Completion]], tokens: int, *, probes: bool
    ) -> Completion | None:
        """The call itself; None where the server went down while the call waited for its turn."""
        async with self._slots, self.limiter.admit(tokens) as admitted:
            if self.breaker.is_open and not probes:
                return None
            if self.given_up:
                raise BackendUnavailable(self.given_up)
            try:
                completion = await ask()
            except BaseException as error:
                self._heed(error, admitted, probes=probes)
                raise
        self.breaker.answered()
        return completion

    def _heed(self, error: BaseException, admitted: float, *, probes: bool) -> None:
        """Lets limiter and breaker know of a failure."""
        if isinstance(error, CallFailed):
            # Nobody was asked.
            return
        if isinstance(error, Outage):
            self.breaker.down(str(error), probe=probes)
            return
        self.breaker.answered()
        self.answered = self.answered or isinstance(error, RequestRefused)
        # A server that wants to be left alone for hours is not waited for, by nobody.
        if isinstance(error, RateLimited) and (error.retry_after or 0.0) <= self._patience:
            self.limiter.refused(admitted, error.retry_after)

    def outage(self) -> str:
        """Since when the server is down, and when it is tried again; empty while it is up."""
        down = self.breaker.outage()
        if down is None:
            return ""
        since = time.strftime("%H:%M", time.localtime(time.time() - down.seconds)).removeprefix("0")
        following = "trying again" if down.next_try is None else f"next try in {down.next_try:.0f} s"
        return f"{self._host} refused since {since}, {following}"

    def pause(self) -> str:
        """How long nothing is sent to a server that wants to be left alone; empty for less than a second or two."""
        seconds = self.limiter.paused_for
        if seconds < WORTH_TELLING or not self.limiter.waiting:
            return ""
        return f"{self._host} is at its limit, goes on in {seconds:.0f} s"
