"""Finds out how many requests a second a server allows, from what it accepts and what it refuses.

Nothing is paced until a server refuses. From then on requests are spaced at a rate that each answer moves:

- an accepted request raises it by `RISE / sqrt(rate)`, a refused one lowers it by `FALL`. That settles where
  `RISE / (FALL * sqrt(rate))` of all requests are refused, 2% at 50 a second, and two runs at one server settle
  at the same rate (the argument of TCP's congestion control, F. Kelly et al., "Rate control for communication
  networks", 1998);
- a long row without a refusal doubles it every half second, so that a lifted limit is found soon;
- where most of a window was refused, the rate becomes what was accepted, the goodput;
- a row of refusals without anything accepted pauses everybody, as long as the server asks;
- refusals that do not follow the rate (a server that fails one request in ten whatever comes) are told by their
  goodput, which falls along with the rate, and are no reason to go slower.

Every method takes the time, in seconds, so that a test can bring its own.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

RISE, FALL = 0.4, 3.0
DEEPEST_FALL = 0.7
"""What one refusal leaves of the rate at least."""

DOUBLING = 0.5
"""Seconds in which the rate doubles while it looks for the limit."""

CLEAN_SECONDS, CLEAN_REQUESTS, CLEAN_SHARE = 5.0, 10, 21.0
"""Without a refusal for so long and so many requests, or for CLEAN_SHARE * sqrt(rate) requests, it looks again."""

ROW = 8
"""Refusals in a row, with nothing accepted between, that pause everybody."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
LONG_PAUSE = 5.0
FLOOR = 0.05
"""Requests a second that are sent whatever happens."""

SENDS_KEPT = 16
WINDOW_SECONDS, WINDOW_REQUESTS = 0.25, 16
MOSTLY_REFUSED, WORTH_PACING = 0.25, 0.15
WINDOWS_KEPT = 16
NOISE_LEAST, NOISE_RATIO = 0.04, 1.5


@dataclass(frozen=True, slots=True)
class Window:
    """What happened in a stretch of time.

    Attributes:
        seconds: how long it was.
        accepted: answers.
        refused: refusals.
    """

    seconds: float
    accepted: int
    refused: int

    @property
    def sent(self) -> float:
        """Requests a second."""
        return (self.accepted + self.refused) / self.seconds

    @property
    def goodput(self) -> float:
        """Answers a second."""
        return self.accepted / self.seconds

    @property
    def share(self) -> float:
        """Refused, of all."""
        return self.refused / (self.accepted + self.refused)


def pool(windows: Sequence[Window]) -> Window:
    """Several windows as one."""
    return Window(
        sum(window.seconds for window in windows),
        sum(window.accepted for window in windows),
        sum(window.refused for window in windows),
    )


class RateFinder:
    """Finds the rate at which a server answers without refusing.

    Args:
        connections: requests in flight at most; after a pause the server is approached like plain exponential
            back-off with so many workers would.
    """

    def __init__(self, connections: int) -> None:
        self.rate: float | None = None
        self.resume_at = 0.0
        self._connections = max(1, connections)
        self._free_at = 0.0
        self._sends: deque[float] = deque(maxlen=SENDS_KEPT)
        self._searching = False
        self._clean, self._clean_since = 0, 0.0
        self._row, self._fruitless = 0, 0
        self._paused_at = -math.inf
        self._cycle_start: float | None = None
        self._cycle_accepted = 0
        self._window_start: float | None = None
        self._window = [0, 0]
        self._windows: deque[Window] = deque(maxlen=WINDOWS_KEPT)
        self._noise = 0.0
        self._refused_share = 0.0

    def delay(self, now: float) -> float:
        """Seconds until the next request may go."""
        wait = self.resume_at - now
        return max(wait, self._free_at - now) if self.rate else wait

    def sent(self, now: float) -> None:
        """A request goes now."""
        self._sends.append(now)
        if self._cycle_start is None:
            self._cycle_start = now
        if self.rate:
            # The timer's delay is made up for, up to two requests.
            self._free_at = max(self._free_at, now - 1.0 / self.rate) + 1.0 / self.rate

    def accepted(self, now: float) -> None:
        """A request was answered."""
        self._count(refused=False, now=now)
        self._row = self._fruitless = 0
        self._cycle_accepted += 1
        self._forgive(now)

    def refused(self, sent: float, retry_after: float | None, now: float) -> None:
        """A request was refused for being one too many.

        Args:
            sent: when it was sent.
            retry_after: seconds that the server asks for, if it does.
            now: the time.
        """
        if sent <= self._paused_at:
            # Under way when the pause began: part of the same refusal.
            self.resume_at = max(self.resume_at, now + min(retry_after or 0.0, LONGEST_PAUSE))
            return
        self._count(refused=True, now=now)
        self._row += 1
        if self._row >= ROW:
            self._pause(retry_after, now)
        elif self.rate is not None and self._weight() > 0.3:
            self._lower(now)
        else:
            self._forgive(now)

    def wait_for(self, seconds: float, now: float) -> None:
        """Everybody waits, as a server's headers say that nothing is left for so long."""
        self.resume_at = max(self.resume_at, now + min(seconds, LONGEST_PAUSE))

    def _forgive(self, now: float) -> None:
        """The rate grows, if it is what holds requests back."""
        if self.rate is None:
            return
        self._clean += 1
        if now > self._free_at + 2.0 / self.rate:
            return
        calm = self._clean >= CLEAN_REQUESTS and now - self._clean_since >= CLEAN_SECONDS
        if self._searching or calm or self._clean >= CLEAN_SHARE * math.sqrt(self.rate):
            self.rate += math.log(2) / DOUBLING
        else:
            self.rate += RISE / math.sqrt(self.rate)

    def _lower(self, now: float) -> None:
        self._searching = False
        self._clean, self._clean_since = 0, now
        # A rate that was never used up says nothing.
        rate = min(self.rate or math.inf, 1.1 * self._sending(now))
        self.rate = max(FLOOR, rate * DEEPEST_FALL, rate - FALL * self._weight())
        # Two runs in step with each other would have the same one refused again and again.
        self._free_at = max(self._free_at, now) + random.random() / self.rate  # noqa: S311 - jitter, no secret

    def _sending(self, now: float) -> float:
        if len(self._sends) < 2:
            return float(self._connections)
        return len(self._sends) / max(now - self._sends[0], 0.05)

    def _weight(self) -> float:
        """How much of a refusal is due to the rate."""
        if not self._noise:
            return 1.0
        return max(0.0, 1.0 - 1.5 * self._noise / max(self._refused_share, 1e-6))

    def _pause(self, retry_after: float | None, now: float) -> None:
        wait = FIRST_PAUSE * 2**self._fruitless
        self._fruitless = min(self._fruitless + 1, 7)
        pause = min(wait if retry_after is None else retry_after, LONGEST_PAUSE)
        self.resume_at = max(self.resume_at, now + pause)
        # From the end of one pause to the end of the next: at both the server grants again.
        cycle = self.resume_at - (self._cycle_start if self._cycle_start is not None else now)
        goodput = self._cycle_accepted / max(cycle, 0.05)
        eager = self._connections / max(min(wait, LONGEST_PAUSE), pause)
        self.rate = max(FLOOR, goodput if self._cycle_accepted >= 4 else eager)
        # A long pause is the end of a window of the server's, whose rate is known then.
        self._searching = self._cycle_accepted < 4 or pause < LONG_PAUSE
        self._free_at = self.resume_at
        self._paused_at, self._cycle_start, self._cycle_accepted = now, self.resume_at, 0
        self._row, self._clean, self._clean_since = 0, 0, self.resume_at
        self._window_start, self._window = None, [0, 0]

    def _count(self, *, refused: bool, now: float) -> None:
        self._refused_share += (refused - self._refused_share) / 30
        if self._window_start is None:
            self._window_start = now
        self._window[refused] += 1
        seconds, count = now - self._window_start, sum(self._window)
        if seconds >= WINDOW_SECONDS and count >= WINDOW_REQUESTS:
            self._close(Window(seconds, *self._window))
            self._window_start, self._window = now, [0, 0]

    def _close(self, window: Window) -> None:
        self._windows.append(window)
        self._noise = self._find_noise()
        if self.rate is None and window.share > WORTH_PACING:
            self.rate = window.sent
        if window.share > MOSTLY_REFUSED + 1.5 * self._noise and window.accepted:
            self.rate = max(FLOOR, min(self.rate or window.goodput, window.goodput))
            # Too low, maybe: a server without any store of permits grants less to one who comes too early.
            self._searching = True

    def _find_noise(self) -> float:
        """The share refused whatever the rate: where the goodput fell along with the rate."""
        if len(self._windows) < 4:
            return self._noise
        by_rate = sorted(self._windows, key=lambda window: window.sent)
        half = len(by_rate) // 2
        slow, fast = pool(by_rate[:half]), pool(by_rate[half:])
        if fast.sent < NOISE_RATIO * slow.sent:
            share = pool(by_rate).share
            return self._noise if share > self._noise / 2 else share
        in_step = slow.goodput < fast.goodput * (1 - 0.8 * (1 - slow.sent / fast.sent))
        alike = slow.share >= 0.75 * fast.share
        return slow.share if in_step and alike and slow.share >= NOISE_LEAST else 0.0
