"""Infers a server's limits from the calls that it accepts and refuses.

Periods without pacing (plain) and with pacing (paced) alternate. In a plain period (without pacing), each refused
request backs off by itself, and the answers per second are measured. In a paced period, calls follow the inferred
limit. A paced period ends when its answers fall behind those expected at the rate without pacing. The allowed shortfall
is a share (`ALLOWED`) of the answers in the period without pacing, so pacing loses at most this share. A paced period
also ends if pacing does not lower the share of refused calls.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

FLOOR = 0.5  # Lowest rate in requests per second; plain back-off with four workers has this rate.
FEW, TOLERATED = 2.0, 0.02  # Maximum refusals without pacing: a number, plus a share of the answers.
MEASURED, MEASURED_SECONDS, MEASURED_LATENCIES = 24, 2.0, 2.0
"""Minimum answers, seconds and latencies from which the plain rate is computed, because a burst is not a rate."""

PAUSE = 4.0  # A gap between two answers is a pause if it exceeds the usual gap plus latency by this factor.
ALLOWED = 0.125  # Share of the answers without pacing by which a paced period may fall behind.
# If pacing gave less than this many times the answers without pacing, the next period without pacing is twice as long.
HELD = 4
CUT = 0.125  # Share by which a refusal lowers the rate. With a larger cut, the rate would recover too slowly.
GROWTH = 100.0
"""A call raises the limit by (calls since the last refusal / GROWTH) squared. After a cut, 16 calls restore the limit,
so about 6% are refused. After 43 calls the limit is ten times as high, in case the server lifted its own."""

INSTANT = 1e-3  # Calls sent within this many seconds may reach the server in a different order.
REMEMBERED = 32  # Number of latest calls from which a concurrency limit is inferred; usual limits are not higher.
MISFITS = 1 / 8
"""Share of refusals that may have come with fewer calls in service than the inferred limit, because the server's count
differs from ours while answers are on their way."""

LEAST_ROW, CHANCE = 8, 7.0
"""Fewest refusals in a row that open the circuit, and -ln(0.001): at most one such row in a thousand is chance."""


@dataclass(eq=False, slots=True)
class Burst:
    """Calls that were sent at one instant, in whatever order they reached the server."""

    sent: float  # The time at which the calls were sent.
    ahead: int  # Number of calls that the server was serving when the burst was sent.
    served: int = 0  # Number of the burst's calls that were not refused.
    freed: int = 0  # Number of calls that may have ended before the burst reached the server.

    @property
    def fewest_ahead(self) -> int:
        """The number of calls that the server was certainly still serving when the burst arrived."""
        return self.ahead - self.freed


@dataclass(eq=False, slots=True)
class PacedCall:
    """A call in flight."""

    sent: float  # The time at which the call was sent.
    burst: Burst  # The calls that were sent together with this call.


@dataclass(slots=True)
class PacingPeriod:
    """A period in which all calls are plain (sent at once), or all calls are paced."""

    began: float = math.inf  # The period's start; without pacing, the time of the first answer after a refusal.
    answered: int = 0  # Calls that were answered since `began`.
    sent: int = 0  # Number of calls that were sent in the period.
    refused: int = 0  # Number of refused calls in the period; a paced period counts only calls sent within it.


class Pacing:
    """One server's inferred limits, and the time at which the next call may be sent.

    Attributes:
        plain: whether the current period is without pacing, so that each refused request backs off by itself.
        rate: requests per second; None means no limit.
        at_once: maximum number of concurrent calls; None means no limit.
    """

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self.plain = True
        self.rate: float | None = None
        self.at_once: float | None = None
        self._period, self._needed = PacingPeriod(), MEASURED
        self._plain_rate = self._plain_share = self._allowed = 0.0
        self._calls: dict[PacedCall, None] = {}
        self._bursts: deque[Burst] = deque(maxlen=REMEMBERED)
        self._outcomes: deque[tuple[Burst, bool]] = deque(maxlen=REMEMBERED)
        self._free_at = self._cut_at = -math.inf
        self._clean = 0
        self._refusal_seconds = self._refused_share = self._answer_at = self._latency = 0.0

    @property
    def longest_row(self) -> float:
        """The largest number of consecutive refusals that may be chance."""
        return max(LEAST_ROW, round(CHANCE / -math.log(min(0.95, max(0.05, self._refused_share)))))

    @property
    def in_flight(self) -> int:
        return len(self._calls)

    def compute_delay(self, now: float, backing_off: int | None) -> float:
        """Return the seconds until the next call may be sent; infinite if another call has to end first."""
        period = self._period
        behind = self._plain_rate * (now - period.began) - period.answered > self._allowed
        if not self.plain and (behind or self._is_refused_alike()):
            self._needed = MEASURED if period.answered > HELD * self._needed else 2 * self._needed
            self.plain, self.rate, self.at_once, self._period = True, None, None, PacingPeriod()
        if self.plain:
            full = backing_off is not None and len(self._calls) + backing_off >= self._connections
            return math.inf if full else 0.0
        if self.at_once is not None:
            return 0.0 if len(self._calls) < int(self.at_once) else math.inf
        return self._free_at - now

    def _is_refused_alike(self) -> bool:
        """Tell whether calls are refused as often as in the period without pacing; if so, pacing is useless."""
        sent, refused = self._period.sent, self._period.refused
        return refused >= LEAST_ROW and refused > self._plain_share * sent

    def start_call(self, now: float) -> PacedCall:
        if not self._bursts or now - self._bursts[-1].sent > INSTANT:
            self._bursts.append(Burst(now, len(self._calls)))
        call = PacedCall(now, self._bursts[-1])
        call.burst.served += 1
        self._calls[call] = None
        self._clean += 1
        self._period.sent += 1
        growth = 1.0 + min(1.0, (self._clean / GROWTH) ** 2)
        if self.at_once is not None:
            self.at_once *= growth
        if self.rate is not None:
            # A late request may catch up by at most half an interval; with a whole interval, two requests would be sent
            # at once.
            if now <= self._free_at + 1.0 / self.rate:
                self.rate *= growth
            self._free_at = max(self._free_at, now - 0.5 / self.rate) + 1.0 / self.rate
        return call

    def drop(self, call: PacedCall) -> None:
        self._calls.pop(call, None)

    def note_answer(self, call: PacedCall, now: float) -> None:
        self.drop(call)
        self._outcomes.append((call.burst, False))
        for burst in reversed(self._bursts):
            if now - burst.sent > self._refusal_seconds:
                break
            burst.freed += burst is not call.burst
        self._refused_share -= self._refused_share / REMEMBERED
        self._latency += (now - call.sent - self._latency) / 8
        period, gap, self._answer_at = self._period, now - self._answer_at, now
        if not self.plain:
            period.answered += 1
        elif period.refused:
            self._measure_answer(now, gap)

    def _measure_answer(self, now: float, gap: float) -> None:
        """Count an answer in a period without pacing; once the rate is known, pace calls."""
        period = self._period
        seconds = now - period.began
        usual = self._latency + (seconds - gap if period.answered > 1 else gap) / max(1, period.answered)
        if period.began == math.inf or gap > PAUSE * usual:
            self._period = PacingPeriod(now, refused=period.refused)
            return
        period.answered += 1
        enough = seconds >= MEASURED_SECONDS + MEASURED_LATENCIES * self._latency
        if enough and period.answered >= self._needed:
            if period.refused > FEW + TOLERATED * period.answered:
                self._start_pacing(now, period.answered / seconds)
            else:
                self._period = PacingPeriod()

    def _start_pacing(self, now: float, rate: float) -> None:
        """Begin a paced period with the measured rate."""
        self.plain, self._plain_rate, self._allowed = False, rate, ALLOWED * self._period.answered
        self._plain_share = self._refused_share
        self._period, self._clean, self._free_at = PacingPeriod(now), 0, now
        self._choose_limit()

    def _choose_limit(self) -> None:
        """Limit the number of concurrent calls if such a limit explains the refusals; else limit the rate."""
        self.at_once = self._infer_limit()
        self.rate = max(FLOOR, self._plain_rate) if self.at_once is None else None

    def note_refusal(self, call: PacedCall, now: float, *, probing: bool = False) -> None:
        call.burst.served -= 1
        for burst in reversed(self._bursts):
            if burst is call.burst:
                break
            burst.ahead -= 1
        self.drop(call)
        self._outcomes.append((call.burst, True))
        self._refusal_seconds = max(0.9 * self._refusal_seconds, now - call.sent)
        self._clean = 0
        self._refused_share += (1.0 - self._refused_share) / REMEMBERED
        # Count only refusals of calls that were sent in the paced period.
        self._period.refused += self.plain or call.sent >= self._period.began
        if call.sent < self._cut_at or probing:
            # Do not lower the limit again, because the limit was already lowered after this call was sent.
            return
        self._cut_at = now
        if self.rate is not None:
            self.rate = max(FLOOR, (1.0 - CUT) * self.rate)
        elif self.at_once is not None:
            self._choose_limit()

    def _infer_limit(self) -> int | None:
        """Return the limit on concurrent calls that explains the latest outcomes; None if no limit does."""
        answered = [burst.fewest_ahead for burst, was_refused in self._outcomes if not was_refused]
        refused = sorted(burst.ahead + burst.served for burst, was_refused in self._outcomes if was_refused)
        if not refused:
            return None
        most = refused[int(MISFITS * len(refused))]
        # Tolerate one contradiction: a call that was answered although as many calls as the limit were in service.
        more = sum(ahead >= most for ahead in answered)
        fewer = sum(ahead < most for ahead in refused)
        return most if most and answered and more <= 1 and fewer <= MISFITS * len(refused) else None
