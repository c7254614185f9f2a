"""Decides, for a model at an address, when calls may be sent, how often to retry, and whether calls can succeed."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from evalsuite.core.errors import BackendUnavailable, CallFailed, RequestRefused
from evalsuite.models.protocol import Backend, LostAnswer, Outage, RateLimited, Transient, UnreachableServer

if TYPE_CHECKING:
    from evalsuite.core.types import Completion
    from evalsuite.gateway.limiter import Limiter
    from evalsuite.gateway.pacing import CallInFlight

ATTEMPTS = 6  # Maximum calls per request if answers are lost or unreadable, because each call may be billed.
FIRST_WAIT, LONGEST_WAIT, PACED_WAIT = 0.5, 8.0, 0.1
"""FIRST_WAIT: maximum seconds to wait after the first failure; each further failure doubles the maximum, up to
LONGEST_WAIT (both values are the openai package's). A refused request that is paced waits at most PACED_WAIT, so that
others are tried before it."""
# Maximum jitter from the second refusal on, as a share of the demanded wait; never over FIRST_WAIT.
JITTER_SHARE = 0.25


class RetrySchedule:
    """Counts the failed attempts of one request, and computes when to try again.

    Args:
        patience: seconds from the first refusal, or the first failure in an outage, to the last attempt.
    """

    def __init__(self, clock: Callable[[], float], patience: float) -> None:
        self._clock, self._patience = clock, patience
        self._deadline: float | None = None
        self.refusals = self._doublings = self.failures = self.unreached = 0

    def compute_wait(self, error: RateLimited | Transient, *, is_unpaced: bool, refusing_since: float | None) -> float:
        """Return the seconds to wait before the next attempt; raise CallFailed after too many attempts or seconds.

        Args:
            refusing_since: the time since which the server has refused all calls; None if it accepts calls.
        """
        lost = refusing_since is None and (isinstance(error, LostAnswer) or not isinstance(error, RateLimited | Outage))
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self._doublings, 10)) if is_unpaced or lost else PACED_WAIT
        wait: float = random.uniform(0.0, longest)  # noqa: S311 - jitter, not a secret
        self._doublings += is_unpaced or lost
        if lost:
            self.failures += 1
            if self.failures >= ATTEMPTS:
                raise CallFailed(f"{error} (the last of {self.failures} attempts)") from error
            return wait
        self.refusals += 1
        told = getattr(error, "retry_after", None)
        if told is not None:
            # Add jitter, because many requests may be told the same wait, and would be refused if sent together.
            spread = min(FIRST_WAIT, JITTER_SHARE * told) if self.refusals > 1 else 0.0
            wait = told + random.uniform(0.0, spread)  # noqa: S311 - jitter, not a secret
        now = self._clock()
        self._deadline = self._deadline or (now if refusing_since is None else refusing_since) + self._patience
        if now + wait > self._deadline:
            raise CallFailed(f"{error} (not tried any longer than {self._patience:g} s, see --patience)") from error
        return wait


SHORTEST_SHOWN_PAUSE = 1.5  # Shortest pause in seconds that the terminal shows.
FIRST_CONNECTION = 1.0  # Seconds until an unreachable server, which may be starting, is tried again.


class Upstream:
    """A backend and its limiter; used only in the event loop's thread.

    Args:
        patience: maximum seconds that one request waits for a server that refuses or is down.

    Attributes:
        answered: whether any call was ever answered, which proves that the server exists.
        given_up: the reason why no call can succeed; empty if calls may succeed.
    """

    def __init__(self, backend: Backend, limiter: Limiter, patience: float, on_change: Callable[[str], None]) -> None:
        self.backend, self.limiter = backend, limiter
        self.answered, self.given_up = False, ""
        self._patience = patience
        self._prepared = False
        # Show only the host, because a whole address is too long for a terminal of 80 columns.
        self._host = backend.identity.partition("://")[2].partition("/")[0] or backend.identity
        limiter.breaker.on_change, limiter.most = on_change, backend.connections
        if hasattr(backend, "on_exhausted"):
            backend.on_exhausted = limiter.set_quota_reset

    async def send_call(self, send: Callable[[], Awaitable[Completion]], tokens: int, *, is_retry: bool) -> Completion:
        """Send a call as soon as the limiter admits it, and record how the call ended."""
        # Prepare the backend before the first call is admitted, because an admitted call must be sent immediately.
        if not self._prepared and hasattr(self.backend, "prepare"):
            await self.backend.prepare()
        self._prepared = True
        call = await self.limiter.admit_call(tokens, is_retry=is_retry)
        try:
            if self.given_up:
                raise BackendUnavailable(self.given_up)
            completion = await send()
            self.limiter.record_answer(call)
        except Exception as error:
            self._report_failure_to_limiter(error, call)
            raise
        finally:
            self.limiter.end_call(call)
        self.answered = True
        used = completion.usage.prompt_tokens + completion.usage.completion_tokens
        self.limiter.correct_tokens(tokens, used or tokens)
        return completion

    def _report_failure_to_limiter(self, error: Exception, call: CallInFlight) -> None:
        if isinstance(error, CallFailed):
            # Do not count this attempt, because the request was not sent.
            return
        if isinstance(error, Outage):
            min_seconds = FIRST_CONNECTION if isinstance(error, UnreachableServer) else 0.0
            self.limiter.record_refusal(call, None, str(error), min_seconds)
        elif not isinstance(error, RateLimited):
            self.limiter.record_answer(call)
            self.answered = self.answered or isinstance(error, RequestRefused)
        # If the server wants a request to wait for more than `patience` seconds, the request fails instead.
        elif (error.retry_after or 0.0) <= self._patience:
            self.limiter.record_refusal(call, error.retry_after)

    def describe_outage(self) -> str:
        """Describe the server's outage by its start and the next probe; empty while the server is up."""
        seconds_down, next_try = self.limiter.breaker.seconds_down, self.limiter.breaker.seconds_until_probe
        if seconds_down is None:
            return ""
        since = time.strftime("%H:%M", time.localtime(time.time() - seconds_down)).removeprefix("0")
        following = "trying again" if next_try is None else f"next try in {next_try:.0f} s"
        return f"{self._host} refused since {since}, {following}"

    def describe_pause(self) -> str:
        """Describe a pause of at least `SHORTEST_SHOWN_PAUSE` seconds without calls; empty without a pause."""
        seconds = self.limiter.breaker.seconds_until_probe or 0.0
        is_told = seconds >= SHORTEST_SHOWN_PAUSE and self.limiter.waiting
        return f"{self._host} is at its limit, goes on in {seconds:.0f} s" if is_told else ""
