"""How long a request is retried: failures are limited in number, refusals and outages in time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from evalsuite.core.errors import CallFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.models.protocol import RateLimited, Transient

ATTEMPTS = 6
"""Most calls for one request, not counting those that were refused or made during an outage."""

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds to wait after the first failure, doubled for each further one, and the longest wait."""

FIRST_REFUSED_WAIT, LONGEST_REFUSED_WAIT = 0.1, 8.0
"""As above, after a refusal without a `Retry-After`; the rate itself is the limiter's concern."""


class Effort:
    """The attempts of one request so far.

    Args:
        clock: seconds that only go forward.
        patience: seconds from the first refusal, or the first failure in an outage, to the last attempt.
    """

    def __init__(self, clock: Callable[[], float], patience: float) -> None:
        self._clock, self._patience = clock, patience
        self._deadline: float | None = None
        self._refusals = 0
        self.failures = self.unreached = 0

    def after_refusal(self, error: RateLimited) -> float:
        """Seconds to wait before the next attempt.

        Raises:
            CallFailed: they would go beyond the deadline.
        """
        wait = error.retry_after
        if wait is None:
            wait = _doubled(FIRST_REFUSED_WAIT, LONGEST_REFUSED_WAIT, self._refusals)
        self._refusals += 1
        self._check(error, wait)
        return wait

    def after_failure(self, error: Transient, *, outage: bool) -> float:
        """Seconds to wait before the next attempt.

        Args:
            error: the failure.
            outage: whether the whole server is down, so that the request is not to blame.

        Raises:
            CallFailed: the attempts are used up, or the time is.
        """
        if outage:
            self._check(error, 0.0)
            return 0.0
        self.failures += 1
        if self.failures >= ATTEMPTS:
            raise CallFailed(f"{error} (the last of {self.failures} attempts)") from error
        return _doubled(FIRST_WAIT, LONGEST_WAIT, self.failures - 1)

    def _check(self, error: Exception, wait: float) -> None:
        now = self._clock()
        self._deadline = self._deadline or now + self._patience
        if now + wait > self._deadline:
            raise CallFailed(
                f"{error} (not tried any longer than {self._patience:g} s, see --patience)"
            ) from error


def _doubled(first: float, longest: float, times: int) -> float:
    return min(longest, first * 2.0**times) * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, no secret
