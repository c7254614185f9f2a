"""A circuit breaker: while a server refuses everything, all calls wait, and one at a time probes whether it is back."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.gateway.pacing import PacedCall

DRY_SHARE = 0.2
"""Pause before each probe, as a share of the time without an answer: at most so much of an outage is lost after it."""

FIRST_PROBE, LONGEST_PROBE = 0.1, 30.0
"""Shortest and longest pause in seconds: some round trips; and what a user accepts after a long outage."""

SERVED = 2.0
"""A probe counts as accepted once it has taken so many times as long as a refusal, because answers may take minutes."""


@dataclass(frozen=True, slots=True)
class DownTime:
    """A server that is down just now.

    Attributes:
        seconds: since the first call came to nothing.
        next_try: seconds until the next one; None while one is under way.
    """

    seconds: float
    next_try: float | None


class Breaker:
    """Pauses all requests to a server while it refuses everything, but for one probe.

    Args:
        clock: seconds that only go forward.

    Attributes:
        on_change: called with one line when the server turns out to be down, and when it is back.
        probes: how many have failed since the circuit opened.
        try_at: when the server's headers say that it accepts more, which makes a try earlier, and never later.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.on_change: Callable[[str], None] = lambda _: None
        self.probes = self._row = 0
        self.try_at = 0.0
        self._row_since = self._row_began = 0.0
        self._open = self._down = False
        self._next_try = 0.0
        self._probe: PacedCall | None = None
        self._refusal_seconds = FIRST_PROBE

    @property
    def dry_since(self) -> float | None:
        """Since when the server refuses everything, so that calls wait; None where it does not."""
        return self._row_since if self._open else None

    @property
    def next_try_in(self) -> float | None:
        """Seconds until the next probe; None while one is under way, or while the circuit is closed."""
        return max(0.0, self._next_try - self._clock()) if self._open and self._probe is None else None

    def outage(self) -> DownTime | None:
        """Return how long the server has been down and when it is tried again; None where it is up."""
        if not self._open or not self._down:
            return None
        return DownTime(self._clock() - self._row_since, self.next_try_in)

    def delay(self) -> float:
        """Return the seconds until the next call may go."""
        if not self._open:
            return 0.0
        now = self._clock()
        if self._probe is None:
            return self._next_try - now
        served_at = self._probe.sent + SERVED * self._refusal_seconds
        if now >= served_at - 1e-9:
            self.close()
            return 0.0
        return served_at - now

    def send(self, call: PacedCall) -> None:
        """Note the call that probes."""
        self._probe = call

    def drop(self, call: PacedCall) -> None:
        """Note that a call has ended: another may probe."""
        if call is self._probe:
            self._probe = None

    def answered(self, call: PacedCall) -> None:
        """Note that a call was answered; one that was sent before the refusals says nothing of the time since then."""
        if call.sent >= self._row_began:
            self.close()

    def close(self) -> None:
        """Let all calls go."""
        was_down = self._open and self._down
        self.probes = self._row = 0
        self._open, self._probe = False, None
        if was_down:
            self.on_change(f"the server is back after {self._clock() - self._row_since:.0f} s")

    def refused(
        self, call: PacedCall, wait: float | None, longest_row: int, words: str, least: float
    ) -> None:
        """Note a call that was refused or did not reach the server.

        Args:
            call: the call.
            wait: seconds that the server asks to wait, if it does.
            longest_row: refusals in a row that may be chance.
            words: the failure where the server is down, for the terminal; empty for a rate limit.
            least: seconds before the first probe.
        """
        now = self._clock()
        self._refusal_seconds = max(0.01, now - call.sent)
        self._row += 1
        if self._row == 1:
            self._row_since = now
            self._row_began = call.sent
        if call is self._probe:
            self.probes += 1
        elif self._open or self._row < longest_row:
            return
        if not self._open:
            self._open, self._down = True, bool(words)
            if words:
                self.on_change(f"all calls wait, and one at a time tries again: {words}")
        pause = min(LONGEST_PROBE, max(FIRST_PROBE, least, DRY_SHARE * (now - self._row_since)))
        self._next_try = now + (pause if wait is None else wait)
        if now < self.try_at < self._next_try:
            self._next_try = self.try_at
