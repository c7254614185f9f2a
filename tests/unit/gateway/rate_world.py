"""Clients and servers in virtual time: what a rate finder is held against."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalsuite.gateway.common_rate import CommonRate
    from evalsuite.gateway.rate_finder import RateFinder

LATENCY = 0.05
Ask = Callable[[float, int], float | None]
"""A server: at a time, for a request's number; None accepts, a number refuses with that Retry-After, -1 without."""


def bucket(rate: float, burst: float, retry_after: float = -1.0) -> Ask:
    """So many a second, and so many at once; a leaky bucket has a burst of one."""
    level, at = burst, 0.0

    def ask(now: float, _number: int) -> float | None:
        nonlocal level, at
        level, at = min(burst, level + (now - at) * rate), now
        if level < 1:
            return retry_after
        level -= 1
        return None

    return ask


def at_random(share: float, retry_after: float = -1.0) -> Ask:
    return lambda _now, _number: retry_after if random.random() < share else None


def each_once(retry_after: float) -> Ask:
    seen: set[int] = set()

    def ask(_now: float, number: int) -> float | None:
        if number in seen:
            return None
        seen.add(number)
        return retry_after

    return ask


def lifted(rate: float, at: float) -> Ask:
    limited = bucket(rate, rate)
    return lambda now, number: None if now > at else limited(now, number)


@dataclass
class Client:
    """One run: what it still has to ask, and what came of it."""

    finder: RateFinder | CommonRate | None
    queue: list[tuple[int, int]]
    flying: int = 0
    pumping: bool = False
    answers: list[float] = field(default_factory=list)
    refused: int = 0
    busy_until: float = 0.0
    # The instant that it has booked.
    instant: float | None = None
    # Timers of a real loop are late, by half a millisecond or so.
    lateness: float = 0.0005
    connections: int = 32

    @property
    def share(self) -> float:
        return self.refused / (self.refused + len(self.answers))


class World:
    """Clients with some connections each at one server; without a finder they back off exponentially.

    Args:
        server: accepts and refuses.
        clients: who asks.
        work: seconds of computing that a client spends on each sending and each hearing, on average; requests of a
            busy client leave late and unevenly.
        answering: seconds that answers take, unlike refusals, on average.
    """

    def __init__(self, server: Ask, clients: list[Client], work: float = 0.0, answering: float = 0.0) -> None:
        self.answering = answering
        self.server, self.work, self.events = server, work, []  # type: ignore[var-annotated] # times and calls
        self.number = 0
        self.now = 0.0
        for client in clients:
            self.at(0.0, self.pump, client)

    def at(self, time: float, call: Callable[..., None], *args: Any) -> None:
        self.number += 1
        heapq.heappush(self.events, (time, self.number, call, args))

    def run(self, until: float) -> None:
        while self.events and self.events[0][0] <= until:
            self.now, _, call, args = heapq.heappop(self.events)
            call(self.now, *args)

    def pump(self, now: float, client: Client) -> None:
        client.pumping = False
        while client.queue and client.flying < client.connections:
            if client.finder:
                instant = client.instant or client.finder.book(now)
                if instant > now + 1e-9:
                    client.instant, client.pumping = instant, True
                    self.at(instant + abs(random.gauss(0, client.lateness)), self.pump, client)
                    return
                client.instant = None
                if not client.finder.send(now):
                    continue
            self.send(now, client, client.queue.pop(0))

    def send(self, now: float, client: Client, request: tuple[int, int]) -> None:
        client.flying += 1
        leaves = self.computed(now, client)
        self.at(leaves + LATENCY / 2 * random.uniform(0.98, 1.02), self.arrive, client, request, now)

    def computed(self, now: float, client: Client) -> float:
        if self.work:
            client.busy_until = max(now, client.busy_until) + random.expovariate(1 / self.work)
        return max(now, client.busy_until)

    def arrive(self, now: float, client: Client, request: tuple[int, int], sent: float) -> None:
        verdict = self.server(now, request[0])
        answering = self.answering * random.uniform(0.7, 1.3) if verdict is None else 0.0
        self.at(now + answering + LATENCY / 2, self.receive, client, request, sent, verdict)

    def receive(self, now: float, client: Client, *more: Any) -> None:
        self.at(self.computed(now, client), self.hear, client, *more)

    def hear(
        self, now: float, client: Client, request: tuple[int, int], sent: float, verdict: float | None
    ) -> None:
        number, times = request
        if verdict is None:
            client.flying -= 1
            client.answers.append(now)
            if client.finder:
                client.finder.accepted(now)
        else:
            client.refused += 1
            self.refuse(now, client, (number, times + 1), sent, None if verdict < 0 else verdict)
        if not client.pumping:
            self.pump(now, client)

    def refuse(
        self, now: float, client: Client, request: tuple[int, int], sent: float, retry_after: float | None
    ) -> None:
        doubled = 2 ** min(request[1] - 1, 6) * random.uniform(0.75, 1.25)
        if client.finder is None:
            # A worker that backs off does nothing else.
            self.at(now + (retry_after or 0.5 * doubled), self.resend, client, request)
            return
        client.flying -= 1
        client.finder.refused(sent, retry_after, now)
        wait = min(8.0, 0.1 * doubled) if retry_after is None else retry_after
        self.at(now + wait, self.requeue, client, request)

    def resend(self, now: float, client: Client, request: tuple[int, int]) -> None:
        client.flying -= 1
        self.send(now, client, request)

    def requeue(self, now: float, client: Client, request: tuple[int, int]) -> None:
        client.queue.insert(0, request)
        if not client.pumping:
            self.pump(now, client)
