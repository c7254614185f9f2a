"""Infers a server's limit from the calls that it accepts and refuses.

Periods without pacing (plain) and with pacing (paced) alternate. In a plain period, each refused request backs off by
itself, and the answers per second are measured. In a paced period, calls follow the inferred limit. If nearly all
refusals came at the same number of calls in service, this number is the limit; otherwise, the limit is a request rate.
A paced period ends if it has fewer answers than expected at the rate without pacing. Pacing loses at most the share
`ALLOWED` of the answers that a plain period gives. A paced period also ends if pacing does not lower the share of
refused calls.
"""

import math
from collections import deque
from dataclasses import dataclass

LOWEST_RATE = 0.5  # Lowest rate, in requests per second: that of four workers with plain back-off.
FEW, TOLERATED = 2.0, 0.02  # Maximum refusals in a period without pacing: a constant, plus a share of the answers.
MEASURED, MEASURED_SECONDS, MEASURED_LATENCIES = 24, 2.0, 2.0
"""Minimum answers, seconds and latencies from which the plain rate is computed, because a burst is not a rate."""

PAUSE = 4.0  # A gap between two answers is a pause if it exceeds PAUSE times (usual gap + latency).
ALLOWED = 0.125  # Share of the answers without pacing that a paced period may lose.
# If a paced period ends with at most HELD times the answers of a plain period, the next plain period is twice as long.
HELD = 4
CUT = 0.125  # Share by which a refusal lowers the limit; a larger share would take too long to recover.
GROWTH, FROM_TIME = 100.0, 10.0
"""An answer raises the limit by ((answers + FROM_TIME * seconds since the last refusal) / GROWTH) squared. After a cut,
16 answers restore a high limit, so about 6% are refused. The seconds let a low limit grow within 5 s, because answers
alone would take a minute."""

REMEMBERED_CALLS = 32  # Number of latest calls from which the share of refusals and the kind of limit are computed.
MISFIT_SHARE = 1 / 8
"""Share of refusals at fewer calls in service than the inferred limit, and share at more: the server's count differs
from ours while requests and answers are on their way."""

LEAST_ROW, CHANCE = 8, 7.0
"""Fewest refusals in a row that open the circuit, and -ln(0.001): at most one such row in a thousand is chance."""


@dataclass(eq=False, slots=True)
class CallInFlight:
    """A call that was sent to a server and has not ended."""

    sent: float  # The time at which the call was sent.


@dataclass(slots=True)
class PacingPeriod:
    """A period in which all calls are plain (sent at once), or all calls are paced."""

    began: float = math.inf  # The period's start; a plain period starts at the first answer after a refusal.
    answered: int = 0  # Calls that were answered since `began`.
    sent: int = 0  # Number of calls that were sent in the period.
    refused: int = 0  # Number of refused calls in the period; a paced period counts only calls sent within it.


class Pacing:
    """One server's inferred limit, and the time at which the next call may be sent.

    Attributes:
        plain: whether the current period is without pacing, so that each refused request backs off by itself.
        spaced: whether a paced period limits the requests per second; otherwise it limits the number of calls at once.
        limit: the limit of a paced period: requests per second if `spaced`, otherwise calls at once.
        calls: the calls in flight, in the order in which they were sent.
    """

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self.plain, self.spaced, self.limit = True, False, math.inf
        self.calls: dict[CallInFlight, None] = {}
        self._serving: deque[int] = deque(maxlen=REMEMBERED_CALLS)
        self._period, self._needed = PacingPeriod(), MEASURED
        self._plain_rate, self._plain_share, self._allowed = math.inf, 0.0, 0.0
        self._free_at = self._cut_at = self._grown_at = -math.inf
        self._clean, self._held = 0.0, False
        self._refused_share = self._answer_at = self._latency = 0.0

    @property
    def rate(self) -> float | None:
        """The inferred requests per second; None without such a limit."""
        return self.limit if self.spaced and not self.plain else None

    @property
    def most_chance_refusals(self) -> float:
        """The largest number of consecutive refusals that still counts as chance."""
        return max(LEAST_ROW, round(CHANCE / -math.log(min(0.95, max(0.05, self._refused_share)))))

    def compute_delay(self, now: float, backing_off: int | None) -> float:
        """Return the seconds until the next call may be sent; infinite if another call must end first."""
        period = self._period
        # If no answer arrives by this time, the paced period has too few answers, and ends.
        due = period.began + (period.answered + self._allowed) / self._plain_rate
        refused_alike = period.refused >= LEAST_ROW and period.refused > self._plain_share * period.sent
        if not self.plain and (now >= due or refused_alike):
            self._needed = MEASURED if period.answered > HELD * self._needed else 2 * self._needed
            self.plain, self._period = True, PacingPeriod()
        if self.plain:
            full = backing_off is not None and len(self.calls) + backing_off >= self._connections
            return math.inf if full else 0.0
        free_at = self._free_at if self.spaced else now if len(self.calls) < int(self.limit) else due
        self._held |= free_at > now
        return min(free_at, due) - now

    def record_sent_call(self, now: float) -> CallInFlight:
        """Count a call as sent now, and return it."""
        self._period.sent += 1
        # A late request may catch up by at most half an interval; with a whole interval, two could be sent at once.
        self._free_at = max(self._free_at, now - 0.5 / self.limit) + 1.0 / self.limit
        self.calls[call := CallInFlight(now)] = None
        return call

    def record_answer(self, call: CallInFlight, now: float) -> None:
        self._refused_share -= self._refused_share / REMEMBERED_CALLS
        self._latency += (now - call.sent - self._latency) / 8
        gap, self._answer_at = now - self._answer_at, now
        if self.plain:
            if self._period.refused:
                self._count_answer_without_pacing(now, gap)
            return
        self._period.answered += 1
        self._clean += 1 + FROM_TIME * (now - self._grown_at)
        # Raise the limit only if it has delayed a call since the last answer.
        if self._held:
            self.limit *= 1.0 + min(1.0, (self._clean / GROWTH) ** 2)
        self._held, self._grown_at = False, now

    def _count_answer_without_pacing(self, now: float, answer_gap: float) -> None:
        """Count an answer; once enough are counted, end the period, and pace calls if too many were refused."""
        period = self._period
        seconds = now - period.began
        usual = self._latency + (seconds - answer_gap if period.answered > 1 else answer_gap) / max(1, period.answered)
        if period.began == math.inf or answer_gap > PAUSE * usual:
            self._period = PacingPeriod(now, refused=period.refused)
            return
        period.answered += 1
        enough = seconds >= MEASURED_SECONDS + MEASURED_LATENCIES * self._latency
        if not enough or period.answered < self._needed:
            return
        self._period = PacingPeriod()
        if period.refused > FEW + TOLERATED * period.answered:
            self.plain, self._period.began = False, now
            self._plain_rate, self._plain_share = period.answered / seconds, self._refused_share
            self._allowed = ALLOWED * period.answered
            self._clean, self._free_at, self._grown_at = 0.0, now, now
            self._set_call_or_rate_limit()

    def _set_call_or_rate_limit(self) -> None:
        """Limit the number of calls at once if such a limit explains the latest refusals; otherwise, limit the rate."""
        serving = sorted(self._serving)
        misfits = int(MISFIT_SHARE * len(serving))
        at_once = serving[misfits] if serving[misfits] >= serving[-1 - misfits] - 1 else 0
        self.spaced, self.limit = not at_once, at_once or max(LOWEST_RATE, self._plain_rate)

    def record_refusal(self, call: CallInFlight, now: float, *, probing: bool = False) -> None:
        self._refused_share += (1.0 - self._refused_share) / REMEMBERED_CALLS
        # A server refuses calls immediately, so earlier calls that are still in flight have been accepted.
        self._serving.append(list(self.calls).index(call))
        # A paced period counts only refusals of calls that were sent in it.
        self._period.refused += self.plain or call.sent >= self._period.began
        self._clean, self._grown_at = 0.0, now
        # Do not lower the limit again for a call that was sent before the limit was last lowered.
        if not probing and call.sent >= self._cut_at:
            self._cut_at = now
            if self.spaced:
                self.limit = max(LOWEST_RATE, (1.0 - CUT) * self.limit)
            elif not self.plain:
                self._set_call_or_rate_limit()
