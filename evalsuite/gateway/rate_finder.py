"""Finds out how many requests a second a server allows, from what it accepts and what it refuses.

Until a server refuses, nothing is held back but the first requests, a little: `AT_ONCE` leave together, the others
within a fifth of a second or so, so that few are under way when the first refusal is heard. From then on requests are
spaced at a rate that follows these rules:

- each request raises it by `RISE / sqrt(rate)`, and a refusal lowers it by `CUT` or by the share that was refused
  lately, at most once in `EPOCH` seconds and only where more than `FEW` of the requests are refused: refusals of
  requests that were sent before the last cut say nothing new. Two runs that do not know of each other settle at the
  same rate (the argument of TCP's congestion control, F. Kelly et al., "Rate control for communication networks",
  1998);
- at hundreds of requests a second, requests leave unevenly for a server without any store of permits: up to `MANY` of
  them may be refused, and the rate rises faster while hardly any are;
- a long row without a refusal doubles it every `DOUBLING` seconds, so that a lifted limit is found soon;
- where much of a window was refused, the rate becomes the geometric mean of what was asked and what was accepted;
- a row of refusals without anything accepted pauses everybody, for as long as the server asks;
- refusals that do not follow the rate (`other_refusals`) are no reason to go slower.

Every method takes the time, in seconds, so that a test can bring its own.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import astuple
from typing import TYPE_CHECKING

from evalsuite.gateway.other_refusals import Window, other_share

if TYPE_CHECKING:
    from collections.abc import Sequence

RISE, STEEPEST_RISE = 0.7, 0.1
CUT, MILD_CUT, SEARCH_CUT = 0.15, 0.1, 0.25
"""Share of the rate that a refusal costs: usually, at UNEVEN requests a second, and where it ends a search."""

EPOCH, SEARCH_EPOCH = 0.3, 0.2
"""Seconds between two cuts at least."""

DOUBLING = 0.35
"""Seconds in which the rate doubles while it looks for the limit."""

CLEAN_SECONDS, CLEAN_REQUESTS, CLEAN_SHARE = 5.0, 10, 21.0
"""Without a refusal for so long and so many requests, or for CLEAN_SHARE * sqrt(rate) requests, it looks again."""

FIRST_ROW, ROW = 4, 8
"""Refusals in a row, with nothing accepted between, that pause everybody."""

SHORT_ROW, BRAKE = 3, 0.05
"""So many refusals in a row stop new requests for so many seconds: what is under way says whether to pause."""

TAKEN_BACK = 12.0
"""A refusal costs at least what so many requests raised the rate by, up to SEARCH_CUT: at a few requests a second each
of them raises it much."""

MANY_LATELY = 0.4
"""Share of the latest requests whose refusal costs as much as the end of a search: the rate is far too high."""

FEW = 0.04
"""Share of requests that may be refused at no cost: a server without any store of permits refuses some at any rate
that uses it up."""

MANY, UNEVEN = 0.07, 400.0
"""FEW grows to MANY at UNEVEN requests a second, where the delays of timers alone have such a server refuse some."""

MADE_UP = 0.5
"""Gaps between requests that a late one is made up for at most."""

EAGER = 3.0
"""How many times faster the rate rises at UNEVEN requests a second while none is refused."""

TWO_NEAR = 0.25
"""What `_lately` is above when two of five requests were refused, which ends a search; one may have left late."""

MEASURED = 16
"""Answers between two pauses, in FIRST_PAUSE seconds at least, that give a rate to go on with, without a search."""

AT_ONCE, FIRST_RATE, FIRST_SECONDS = 8, 240.0, 0.35
"""The first requests leave at once, those of the first FIRST_SECONDS at FIRST_RATE a second: a server that refuses is
heard before all connections have asked it."""

NEW = 1.0
"""Seconds from the first request in which FIRST_ROW refusals pause everybody."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
LONG_PAUSE = 5.0
TOLD = 0.1
"""Seconds in which all connections ask again where the server says when to, doubled while that is in vain."""

FLOOR = 0.05
"""Requests a second that are sent whatever happens."""

TIMER = 1e-3
"""Seconds that a timer may be early."""

SENDS_KEPT = 16
UNUSED = 2.0
"""A rate of more than so many times what is sent was never used up, and says nothing."""

WINDOW_SECONDS, WINDOW_REQUESTS = 0.25, 16
WINDOWS_KEPT = 24
MOSTLY_REFUSED, WORTH_PACING = 0.25, 0.15
DEEPEST_FALL = 0.6
"""What a window leaves of a rate that was known."""

TOLERATED = 1.5
"""Refusals up to so many times the share that comes whatever the rate cost nothing."""

NUMBERS: dict[str, type] = {
    "rate": float,
    "resume_at": float,
    "_free_at": float,
    "_begun": float,
    "_searching": bool,
    "_cut_at": float,
    "_clean": int,
    "_clean_since": float,
    "_row": int,
    "_fruitless": int,
    "_paused_at": float,
    "_cycle_start": float,
    "_cycle_accepted": int,
    "_summed": bool,
    "_window_start": float,
    "_other_share": float,
    "_refused_share": float,
    "_lately": float,
}
"""What a finder knows, besides the latest sendings and windows."""


class RateFinder:
    """What is known of one server's rate; it may be handed from process to process (`numbers`, `adopt`).

    Args:
        connections: requests in flight at most; after a pause the server is approached like plain exponential
            back-off with so many workers would.
    """

    def __init__(self, connections: int) -> None:
        self.rate: float | None = None
        self.resume_at = 0.0
        self._connections = max(1, connections)
        self._free_at = -math.inf
        self._begun: float | None = None
        self._sends: deque[float] = deque(maxlen=SENDS_KEPT)
        self._searching = False
        self._cut_at = -math.inf
        self._clean, self._clean_since = 0, 0.0
        self._row, self._fruitless = 0, 0
        self._paused_at = -math.inf
        self._cycle_start: float | None = None
        self._cycle_accepted, self._summed = 0, False
        self._window_start: float | None = None
        self._window = [0, 0]
        self._windows: deque[Window] = deque(maxlen=WINDOWS_KEPT)
        # The share that is refused whatever the rate, and the share that was refused lately.
        self._other_share = 0.0
        self._refused_share = self._lately = 0.0

    def numbers(self) -> list[float]:
        """All that is known, for `adopt` in another process; NaN stands for what is not known."""
        values = [getattr(self, name) for name in NUMBERS]
        plain = [math.nan if value is None else float(value) for value in values]
        windows = [number for window in self._windows for number in astuple(window)]
        return [*plain, *self._window, float(len(self._sends)), *self._sends, *windows]

    def adopt(self, numbers: Sequence[float]) -> None:
        """Takes over what another finder knows.

        Raises:
            ValueError: these are not the numbers of a finder.
        """
        count = len(NUMBERS)
        if len(numbers) < count + 3:
            raise ValueError(f"{len(numbers)} numbers are not enough")
        for name, number in zip(NUMBERS, numbers, strict=False):
            setattr(self, name, None if math.isnan(number) else NUMBERS[name](number))
        self._window = [int(number) for number in numbers[count : count + 2]]
        first = count + 3
        last = first + int(numbers[count + 2])
        self._sends = deque(numbers[first:last], maxlen=SENDS_KEPT)
        windows = (numbers[at : at + 3] for at in range(last, len(numbers) - 2, 3))
        self._windows = deque(
            (Window(seconds, int(accepted), int(refused)) for seconds, accepted, refused in windows),
            maxlen=WINDOWS_KEPT,
        )

    def book(self, now: float) -> float:
        """Books the next free instant for a request, which may have passed already."""
        if self.rate is None:
            return max(self._first(now), self.resume_at)
        in_use = self._in_use(now)
        # A request that left late is made up for by half a gap: a whole one would let the next two leave together.
        instant = max(self._free_at, now - MADE_UP / self.rate)
        self._free_at = instant + 1.0 / self.rate
        if in_use and not self._looking(now):
            self.rate += _rise(self.rate) * self._eagerness(self.rate)
        return max(instant, self.resume_at)

    def _first(self, now: float) -> float:
        """Books an instant before anything is known: soon as many as there are connections, but not all at once."""
        if self._begun is None:
            self._begun = now
        if now - self._begun > FIRST_SECONDS:
            return now
        instant = max(self._free_at, now - (AT_ONCE - 1) / FIRST_RATE)
        self._free_at = instant + 1.0 / FIRST_RATE
        return max(now, instant)

    def _is_new(self, now: float) -> bool:
        """Whether the first requests are under way."""
        return self.rate is None and self._begun is not None and now - self._begun <= NEW

    def send(self, now: float) -> bool:
        """A request goes now, at its instant; False if everybody has been paused since that was booked."""
        if self.resume_at - now > TIMER:
            return False
        self._sends.append(now)
        if self._cycle_start is None:
            self._cycle_start = now
        return True

    def accepted(self, now: float) -> None:
        """A request was answered."""
        self._count(refused=False, now=now)
        self._row = self._fruitless = 0
        self._cycle_accepted += 1
        self._grow(now)

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
        if self._row >= SHORT_ROW and self.rate is None:
            self.resume_at = max(self.resume_at, now + BRAKE)
        weight = self._weight()
        if self._row >= (FIRST_ROW if self._is_new(now) else ROW):
            self._pause(retry_after, now)
        elif self.rate is None or weight == 0.0:
            self._grow(now)
        elif sent > self._cut_at and self._is_limit(self.rate):
            self._lower(self.rate, weight, now)
        elif self._refused_share > _few(self.rate) / 2:
            # Near the limit, where a search would only have more refused.
            self._clean, self._clean_since = 0, now

    def wait_for(self, seconds: float, now: float) -> None:
        """Everybody waits, as a server's headers say that nothing is left for so long."""
        self.resume_at = max(self.resume_at, now + min(seconds, LONGEST_PAUSE))

    def _in_use(self, now: float) -> bool:
        """Whether the rate is what holds requests back."""
        return self.rate is not None and now <= self._free_at + 2.0 / self.rate

    def _looking(self, now: float) -> bool:
        """Whether the rate doubles until the limit is found."""
        calm = self._clean >= CLEAN_REQUESTS and now - self._clean_since >= CLEAN_SECONDS
        return self._searching or calm or self._clean >= CLEAN_SHARE * math.sqrt(self.rate or 0.0)

    def _grow(self, now: float) -> None:
        if self.rate is None:
            return
        self._clean += 1
        if self._in_use(now) and self._looking(now):
            self.rate += math.log(2) / DOUBLING

    def _eagerness(self, rate: float) -> float:
        """How much faster than usual the rate rises: where hardly anything is refused of many requests."""
        room = max(0.0, 1.0 - self._refused_share / _few(rate))
        return 1.0 + EAGER * _unevenness(rate) * room

    def _is_limit(self, rate: float) -> bool:
        """Whether a refusal is due to the rate, rather than to a request that left late."""
        return (self._searching and self._lately > TWO_NEAR) or self._refused_share > _few(rate)

    def _weight(self) -> float:
        """How much of a refusal is due to the rate."""
        if not self._other_share:
            return 1.0
        return min(1.0, max(0.0, self._refused_share / (TOLERATED * self._other_share) - 1.0))

    def _lower(self, rate: float, weight: float, now: float) -> None:
        self._clean, self._clean_since = 0, now
        if now - self._cut_at >= (SEARCH_EPOCH if self._searching else EPOCH):
            used = min(rate, UNUSED * self._sending(now))
            least = CUT + (MILD_CUT - CUT) * _unevenness(rate)
            usual = max(least, min(SEARCH_CUT, max(TAKEN_BACK * _rise(rate) / rate, self._refused_share)))
            cut = SEARCH_CUT if self._searching or self._lately > MANY_LATELY else usual
            rate = max(FLOOR, used * (1.0 - cut * weight))
            self.rate, self._searching, self._cut_at = rate, False, now
        # Two runs in step with each other would have the same one refused again and again.
        self._free_at = max(self._free_at, now) + random.random() / rate  # noqa: S311 - jitter, no secret

    def _sending(self, now: float) -> float:
        if len(self._sends) < 2:
            return float(self._connections)
        return len(self._sends) / max(now - self._sends[0], 0.05)

    def _pause(self, retry_after: float | None, now: float) -> None:
        wait = FIRST_PAUSE * 2**self._fruitless
        self._fruitless = min(self._fruitless + 1, 7)
        pause = min(wait if retry_after is None else retry_after, LONGEST_PAUSE)
        self.resume_at = max(self.resume_at, now + pause)
        # From the end of one pause to the end of the next: at both the server grants again.
        cycle = self.resume_at - (self._cycle_start if self._cycle_start is not None else now)
        # Who comes back at once, because the server says so, finds no more permits than in FIRST_PAUSE seconds.
        goodput = self._cycle_accepted / max(cycle, FIRST_PAUSE)
        patience = wait if retry_after is None else wait * TOLD / FIRST_PAUSE
        eager = self._connections / max(min(patience, LONGEST_PAUSE), pause)
        self.rate = max(FLOOR, goodput if self._cycle_accepted >= 4 else eager)
        # A long pause is the end of a window of the server's, whose rate is known then; so it is after many answers.
        measured = pause >= LONG_PAUSE or (self._cycle_accepted >= MEASURED and cycle >= FIRST_PAUSE)
        # Over several pauses it is too low where a server keeps few permits: those of a long pause are lost.
        self._searching = self._cycle_accepted < 4 or self._summed or not measured
        self._free_at = self.resume_at
        self._paused_at = self._cut_at = now
        # Fewer tell nothing: those of the next cycle are added.
        self._summed = 0 < self._cycle_accepted < 4
        if not self._summed:
            self._cycle_start, self._cycle_accepted = self.resume_at, 0
        self._row, self._clean, self._clean_since = 0, 0, self.resume_at
        self._window_start, self._window = None, [0, 0]
        self._sends.clear()
        self._refused_share = self._lately = 0.0

    def _count(self, *, refused: bool, now: float) -> None:
        self._refused_share += (refused - self._refused_share) / max(30.0, (self.rate or 0.0) / 4)
        self._lately += (refused - self._lately) / 6
        if now < self.resume_at:
            # What was under way when a pause began says nothing of the time after it.
            self._window_start, self._window = None, [0, 0]
            return
        if self._window_start is None:
            self._window_start = now
        self._window[refused] += 1
        seconds, count = now - self._window_start, sum(self._window)
        if seconds >= WINDOW_SECONDS and count >= WINDOW_REQUESTS:
            self._close(Window(seconds, *self._window), now)
            self._window_start, self._window = now, [0, 0]

    def _close(self, window: Window, now: float) -> None:
        self._windows.append(window)
        before, self._other_share = self._other_share, other_share(self._windows, self._other_share)
        if self._other_share and not before and self.rate:
            # What was cut was cut in vain.
            self._searching = True
        unknown = self.rate is None or self._searching
        if self.rate is None and window.share > WORTH_PACING:
            self.rate = window.sent
        if window.share > MOSTLY_REFUSED + TOLERATED * self._other_share and window.accepted:
            # Between what was asked and what was granted: a server without any store of permits grants less to one
            # who comes too early.
            rate = min(self.rate or window.sent, window.sent)
            least = FLOOR if unknown else DEEPEST_FALL * rate
            self.rate, self._searching = max(least, math.sqrt(rate * window.goodput)), False
            self._cut_at = now


def _rise(rate: float) -> float:
    """What a request raises the rate by."""
    return min(RISE / math.sqrt(rate), STEEPEST_RISE * rate)


def _unevenness(rate: float) -> float:
    """From 0 to 1: how much the delays of timers matter."""
    return min(1.0, rate / UNEVEN)


def _few(rate: float) -> float:
    """Share of requests that may be refused at no cost."""
    return FEW + (MANY - FEW) * _unevenness(rate)
