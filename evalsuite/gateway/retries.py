"""How often and for how long a request is retried."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from evalsuite.core.errors import CallFailed
from evalsuite.models.protocol import LostAnswer, Outage, RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.models.protocol import Transient

ATTEMPTS = 6
"""Most calls for one request whose answers were lost or unreadable, because each may have been paid for."""

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds to wait after such a failure, doubled for each further one, and the longest wait."""

FIRST_PLAIN_WAIT, FIRST_PACED_WAIT, LONGEST_REFUSED_WAIT = 0.5, 0.1, 8.0
"""Longest wait after a first refusal, doubled for each further one up to the last. Plain back-off has the values of the
openai package; where calls are paced, a request waits only so that others are tried before it."""


class Retries:
    """The attempts of one request so far.

    Args:
        clock: seconds that only go forward.
        patience: seconds from the first refusal, or the first failure in an outage, to the last attempt.
    """

    def __init__(self, clock: Callable[[], float], patience: float) -> None:
        self._clock, self._patience = clock, patience
        self._deadline: float | None = None
        self.refusals = self.failures = self.unreached = 0

    def wait_after(self, error: RateLimited | Transient, *, plain: bool, dry_since: float | None) -> float:
        """Return the seconds to wait before the next attempt.

        Args:
            error: the failure.
            plain: whether calls are sent without a pace, so that each request backs off by itself.
            dry_since: since when the server refuses everything, so that the request is not to blame; else None.

        Raises:
            CallFailed: the attempts are used up, or the time is.
        """
        lost = isinstance(error, LostAnswer) or not isinstance(error, RateLimited | Outage)
        if lost and dry_since is None:
            self.failures += 1
            if self.failures >= ATTEMPTS:
                raise CallFailed(f"{error} (the last of {self.failures} attempts)") from error
            wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (self.failures - 1))
            return wait * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, not a secret
        told = getattr(error, "retry_after", None)
        first = FIRST_PLAIN_WAIT if plain else FIRST_PACED_WAIT
        wait = random.uniform(0.0, min(LONGEST_REFUSED_WAIT, first * 2.0 ** min(self.refusals, 10)))  # noqa: S311 - jitter, not a secret
        self.refusals += 1
        wait = wait if told is None else told
        now = self._clock()
        self._deadline = self._deadline or (now if dry_since is None else dry_since) + self._patience
        if now + wait > self._deadline:
            raise CallFailed(
                f"{error} (not tried any longer than {self._patience:g} s, see --patience)"
            ) from error
        return wait
