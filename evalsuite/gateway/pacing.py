"""Finds out what a server allows, from what it accepts and what it refuses.

Nothing is held back until a server refuses. From then on calls are sent in one of two ways: paced by the limit that
was found, or plain, each request backing off by itself.

Where fewer calls are accepted than before, the other way is tried for as long as the last comparison took, and the one
that accepts more is kept. The next trial comes TRIAL_SHARE times as much later, so the slower way gets at most that
part of the time.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass

FLOOR = 0.5  # Lowest rate, in requests per second: plain back-off with four workers asks as often.
FEW, TOLERATED = 2.0, 0.02  # Refusals too few to count: a number, and a share of the requests since a change.
DEVIATIONS = 3.0
"""Standard deviations above the share refused by chance: each refusal is tested, so two would be passed soon."""

DOUBLING = 0.35
"""Seconds in which the rate doubles in a search, or three refusals' time: calls in flight then are at most doubled."""

CALM, CALM_SECONDS, LONG_CALM = 12, 1.5, 40
"""Calls without a refusal, for so long, or many of them, after which a search begins, because a limit may be lifted."""

ENOUGH = 8  # Accepted calls that make a share: fewer may be chance.
MUCH_LOWER = 4.0
"""A rate is compared with rates so many times as high: a leaky bucket refuses half at once and at twice its rate."""

COMPARED, COMPARED_SECONDS, COMPARED_LATENCIES = 24, 2.0, 4.0
"""A way of sending is judged by so many answers, for so many seconds and latencies at least: a burst is not enough."""

FALLEN, BETTER, FADING, TRIAL_SHARE = 0.7, 1.1, 0.95, 8.0
"""Below FALLEN of the best, the other way is tried, and kept if it is BETTER than chance; the best fades, because
servers change; a trial is an eighth of the time, because the bound is 1.3."""

INSTANT = 1e-3  # Seconds within which calls may reach the server in another order than they were sent in.
MOMENT = 0.02  # Shortest time in seconds that a rate is computed from, because a burst takes none.
MILD_CUT, DEEPEST_CUT = 0.85, 0.25
"""A refusal leaves at least MILD_CUT of a rate where up to half are refused, as a leaky bucket does just above its
rate; it leaves at least DEEPEST_CUT in any case, because the first samples are small."""

HELPED = 0.8  # A lower rate has helped if at most this part of the share refused is left: eight calls show no less.
RISE = 0.001  # Each call raises the rate by this share, so that about 4% are refused before the next cut.
REMEMBERED = 32  # Outcomes from which a limit of calls at once is inferred: limits up to this number are usual.
MISFITS = 1 / 8
"""Share of the refusals that a limit at once need not explain: answers on their way have others refused too early."""

FIRST_TRY, LAST_TRY = 2, 16
"""Answers after which one more call at once is tried, at first and at most, so that at most 6% are refused."""

LEAST_ROW, CHANCE = 8, 7.0
"""Refusals in a row that open the circuit: enough for one in a thousand by chance (-ln p) with half refused."""


@dataclass(eq=False, slots=True)
class Period:
    """The calls between two changes of the limit."""

    began: float  # The time at which this limit began.
    sent: int = 0  # Calls that were sent.
    refused: int = 0  # Calls that were refused.
    asked: float = 0.0  # Requests sent per second, known at the end.
    searched: bool = False  # Whether the rate kept rising, so that the refused share belongs to several rates.


@dataclass(eq=False, slots=True)
class Burst:
    """Calls that were sent at one instant, in whatever order they reached the server."""

    sent: float  # The instant.
    ahead: int  # Calls that the server was serving when the burst was sent.
    served: int = 0  # Calls of the burst that were not refused.
    freed: int = 0  # Places that may have become free before the burst reached the server.

    @property
    def fewest_ahead(self) -> int:
        """Calls that the server was certainly still serving when the burst arrived."""
        return self.ahead - self.freed


@dataclass(eq=False, slots=True)
class PacedCall:
    """A call in flight."""

    sent: float  # The time at which the call was sent.
    burst: Burst  # The calls that were sent together with this call.
    period: Period  # The calls since the latest change.
    again: bool = False  # Whether the request was refused before.


@dataclass(slots=True)
class Trial:
    """A time in which calls are sent in one way."""

    began: float  # When it began.
    best: float = 0.0  # The best rate so far, in answers per second.
    ends_at: float = math.inf  # The time at which a trial of the other way ends; infinite without a trial.
    next_at: float = 0.0  # Earliest time of the next trial.
    answered: int = 0  # Calls that were answered.
    refused: int = 0  # Calls that were refused.


class Pacing:
    """The known facts about one server's limit, and the way of sending that follows from them.

    Attributes:
        rate: requests per second; None for no limit.
        at_once: calls at once; None for no limit.
        background: share of the requests that is refused whatever the rate.
        searching: whether the rate rises quickly until a request is refused.
        plain: whether each request backs off by itself, without a pace.
    """

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self.plain = self.searching = False
        self.rate: float | None = None
        self.at_once: int | None = None
        self.background = 0.0
        self.trial, self._period = Trial(0.0), Period(0.0)
        self._calls: dict[PacedCall, None] = {}
        self._bursts: deque[Burst] = deque(maxlen=REMEMBERED)
        self._outcomes: deque[tuple[Burst, bool]] = deque(maxlen=REMEMBERED)
        self._cuts: deque[Period] = deque(maxlen=16)
        self._judge_at: float | None = None
        self._free_at = -math.inf
        self._clean, self._try_after, self._since_try = 0, FIRST_TRY, 0
        self._clean_since = 0.0
        self._refusal_seconds = self._latency = self._sent_at = 0.0
        # Requests that were accepted at their first try, and at a later one.
        self._accepted = {False: 0, True: 0}

    @property
    def longest_row(self) -> float:
        """Refusals in a row that may be chance."""
        if self.plain:
            return math.inf
        return max(LEAST_ROW, round(CHANCE / -math.log(min(0.95, max(0.05, self.background)))))

    @property
    def in_flight(self) -> int:
        return len(self._calls)

    def delay(self, now: float, backing_off: int | None) -> float:
        """Return the seconds until the next call may go; infinite if another has to end first."""
        if self.trial.ends_at <= now:
            self._compare(now)
        if self.plain:
            full = backing_off is not None and len(self._calls) + backing_off >= self._connections
            return math.inf if full else 0.0
        if self._judge_at is not None:
            if now < self._judge_at:
                return self._judge_at - now
            self._judge_at = None
            self._judge(now)
        if self.at_once is not None and len(self._calls) >= self.at_once:
            if len(self._calls) > self.at_once or self._since_try < self._try_after:
                return math.inf
            # Apart from other calls, or a limit of the rate would refuse it.
            return max(0.0, self._sent_at + self._latency / 2 / self.at_once - now)
        return 0.0 if self.rate is None else self._free_at - now

    def send(self, now: float, *, again: bool = False) -> PacedCall:
        if not self._period.sent:
            self._period.began = now
        if not self._bursts or now - self._bursts[-1].sent > INSTANT:
            self._bursts.append(Burst(now, len(self._calls)))
        call = PacedCall(now, self._bursts[-1], self._period, again)
        call.burst.served += 1
        if self.at_once is not None and len(self._calls) >= self.at_once:
            self._since_try = 0
        self._calls[call] = None
        self._sent_at = now
        self._period.sent += 1
        if self.rate is not None:
            self._book_next(now, self.rate)
        return call

    def _book_next(self, now: float, rate: float) -> None:
        """Book the next instant, and raise the rate."""
        self._clean += 1
        if self._clean == 1:
            self._clean_since = now
        calm = self._clean >= CALM and now - self._clean_since >= CALM_SECONDS
        self.searching = self.searching or calm or self._clean >= LONG_CALM
        # A late request may catch up by at most half an interval: after a whole one, the next two would leave together.
        instant = max(self._free_at, now - 0.5 / rate)
        in_use = now <= self._free_at + 1.0 / rate
        gap = 1.0 / rate
        if in_use and self.searching:
            doubling = max(DOUBLING, 3 * self._refusal_seconds)
            gap = doubling / math.log(2) * math.log(1.0 + math.log(2) / (doubling * rate))
            self.rate = rate * 2.0 ** (gap / doubling)
        elif in_use:
            self.rate = rate * (1.0 + RISE)
        self._free_at = instant + gap

    def drop(self, call: PacedCall) -> None:
        self._calls.pop(call, None)

    def note_answer(self, call: PacedCall, now: float) -> None:
        self.drop(call)
        self._outcomes.append((call.burst, False))
        for burst in reversed(self._bursts):
            if now - burst.sent > self._refusal_seconds:
                break
            burst.freed += burst is not call.burst
        self._latency += (now - call.sent - self._latency) / 8
        self._accepted[call.again] += 1
        # Calls that were sent before belong to the other way.
        self.trial.answered += call.sent >= self.trial.began
        seconds = max(COMPARED_SECONDS, COMPARED_LATENCIES * self._latency)
        if self.trial.answered >= COMPARED and now - self.trial.began >= seconds:
            self._compare(now)
        self._since_try += 1
        if self.at_once is not None and call.burst.fewest_ahead >= self.at_once:
            self._outgrow(now, self.at_once)

    def _compare(self, now: float) -> None:
        """Try the other way of sending where less is accepted than before, and keep the one that accepts more."""
        trial = self.trial
        seconds = now - trial.began
        rate = trial.answered / seconds
        if trial.ends_at < math.inf:
            if rate <= BETTER * trial.best:
                self._switch(now)
            self.trial = Trial(now, best=max(rate, trial.best), next_at=now + TRIAL_SHARE * seconds)
        elif rate < FALLEN * trial.best and trial.refused and now >= trial.next_at:
            self._switch(now)
            self.trial = Trial(now, best=rate, ends_at=now + seconds)
        else:
            self.trial = Trial(now, best=max(rate, FADING * trial.best), next_at=trial.next_at)

    def _switch(self, now: float) -> None:
        self.plain = not self.plain
        self._change(now, self.rate, self.at_once)

    def _outgrow(self, now: float, at_once: int) -> None:
        """Raise the number at once, or look for a rate, as more than that number was accepted."""
        self._try_after = max(FIRST_TRY, self._try_after // 2)
        if self._infer_at_once(0) is not None:
            self.at_once = at_once + 1
        else:
            self._change(now, max(FLOOR, at_once / max(self._latency, MOMENT)), None)
            self.searching = True

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
        self.trial.refused += 1
        if not self.plain and not call.again and not self._accepted[False] and self._accepted[True] >= ENOUGH:
            # Each request is refused once, however they are sent.
            self._switch(now)
        if probing:
            call.period.sent -= 1
            return
        call.period.refused += 1
        if self.at_once is not None and call.burst.ahead >= self.at_once:
            self._try_after, self._since_try = min(LAST_TRY, 2 * self._try_after), 0
        if self._judge_at is None and call.period is self._period and self._is_too_many() and not self.plain:
            # Others that were sent with it are answered at about the same time.
            self._judge_at = now + max(INSTANT, self._refusal_seconds / 4)

    def _is_too_many(self) -> bool:
        """Return whether more calls were refused than chance explains."""
        period = self._period
        chance = self.background * period.sent
        few = 0.0 if self.searching else FEW
        return period.refused > few + TOLERATED * period.sent + chance + DEVIATIONS * math.sqrt(chance)

    def _judge(self, now: float) -> None:
        """Lower the limit that the refusals since the latest change are due to."""
        period = self._period
        if not self._is_too_many():
            return
        # The outcomes of the latest calls are not known yet.
        sent_late = now - self._refusal_seconds * 1.25
        unknown = sum(1 for _ in itertools.takewhile(lambda call: call.sent >= sent_late, reversed(self._calls)))
        known = max(1, period.sent - unknown)
        at_once = self._infer_at_once(len(self._calls) - unknown)
        if at_once is not None:
            if at_once != self.at_once:
                self._change(now, None, at_once)
            return
        if self.at_once is not None:
            self._change(now, self.rate, None)
            return
        asked = known / max(now - period.began - self._refusal_seconds, MOMENT)
        if self.rate is not None:
            asked = self.rate if known < 8 else min(1.5 * asked, self.rate)
        period.asked, period.searched = asked, self.searching
        self._cuts.append(period)
        share = period.refused / known
        if self._is_slowing_useless(known):
            self.background = share
            self._cuts.clear()
            self._change(now, None, None)
            return
        mild = share <= 0.55 or self.searching
        self.searching = not mild
        rate = max(1.0 - share, MILD_CUT if mild else DEEPEST_CUT) * asked
        self._change(now, max(FLOOR, rate), None)

    def _is_slowing_useless(self, known: int) -> bool:
        """Return whether the rate is a quarter of what it was, and as many are refused."""
        latest, *earlier = reversed(self._cuts)
        refused, fastest = latest.refused, latest.asked
        before: list[Period] = []
        for cut in earlier:
            if cut.searched:
                continue
            if known - refused < ENOUGH or known < 2 * ENOUGH:
                known, refused, fastest = known + cut.sent, refused + cut.refused, max(fastest, cut.asked)
            elif cut.asked >= MUCH_LOWER * fastest:
                before.append(cut)
        if not before:
            return False
        share = sum(cut.refused for cut in before) / sum(cut.sent for cut in before)
        return refused / known >= HELPED * share

    def _change(self, now: float, rate: float | None, at_once: int | None) -> None:
        self.rate, self.at_once = rate, at_once
        self._period = Period(now)
        if rate is not None:
            self._free_at = min(max(self._free_at, now), now + 1.0 / rate)

    def _infer_at_once(self, known_calls: int) -> int | None:
        """Return the number of calls at once that explains the latest outcomes, if one does."""
        answered = [burst.fewest_ahead for burst, was_refused in self._outcomes if not was_refused]
        answered += [call.burst.fewest_ahead for call in itertools.islice(self._calls, known_calls)]
        refused = sorted(burst.ahead + burst.served for burst, was_refused in self._outcomes if was_refused)
        if not refused:
            return None
        most = refused[int(MISFITS * len(refused))]
        # The last one sent may have raised the number.
        more = sum(ahead >= most for ahead in answered)
        fewer = sum(ahead < most for ahead in refused)
        return most if most and answered and more <= 1 and fewer <= MISFITS * len(refused) else None
