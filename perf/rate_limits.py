"""Servers that refuse for being asked too often: how close to their rate a run comes, beside plain back-off.

Each server stands in a process of its own on loopback and answers after 50 ms. A run with 32 connections asks it
through the gateway; beside it stand 32 workers that each back off exponentially. Columns: seconds until the last
answer of either; the share of the server's rate that the run got, from the first answer to the last (the burst not
counted); the share of its requests that were refused. For leaky buckets, which no client can use up, also answers a
second once the rate is found (from the fourth second on), beside what a client gets that knows the rate: it sends at
the best constant pace of which at most a tenth is refused, once through the same gateway, and once without it, where
nothing is journalled.

With `--two`, two runs in processes of their own ask one server at the same time. Columns: answers of either until the
first of them is done, the first seconds not counted; their ratio; answers a second; and the share that was refused.

Timers decide here. On a busy machine, `chrt -r 50 python perf/rate_limits.py` (as root) keeps them punctual.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import multiprocessing
import random
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from evalsuite.core.given_settings import read_settings
from evalsuite.core.types import Message, Request
from evalsuite.gateway.fine_timers import new_loop
from evalsuite.gateway.opening import open_gateway
from evalsuite.gateway.rate_finder import RateFinder
from evalsuite.journal.answers import Answers
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.protocol import RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from multiprocessing.connection import Connection

LATENCY = 0.05
CONNECTIONS = 32
UNCOUNTED = 3.0
"""Seconds at the beginning, in which rates are found."""

PACES, PACE_SECONDS, MOST_REFUSED = (0.7, 0.8, 0.9, 0.95), 4.0, 0.1
"""Shares of a leaky bucket's rate at which a client sends that knows it, for how long, and what it may have refused."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a server allows.

    Attributes:
        calls: of the measurement.
        rate: requests a second; None refuses at random, or each request once.
        burst: requests at once; a leaky bucket has a burst of one.
        at_random: share of the requests that is refused whatever comes.
        each_once: whether each request is refused the first time.
        retry_after: the header's seconds; None sends none.
    """

    calls: int
    rate: float | None = None
    burst: float = 1.0
    at_random: float = 0.0
    each_once: bool = False
    retry_after: float | None = None


LIMITS = {
    "bucket of 50/s, 100 calls": Limit(100, 50, 50),
    "bucket of 50/s, 300 calls": Limit(300, 50, 50),
    "bucket of 50/s": Limit(1000, 50, 50),
    "bucket of 50/s, Retry-After 1": Limit(1000, 50, 50, retry_after=1),
    "bucket of 500/s": Limit(5000, 500, 500),
    "leaky bucket of 50/s": Limit(600, 50),
    "leaky bucket of 50/s, Retry-After 1": Limit(600, 50, retry_after=1),
    "leaky bucket of 500/s": Limit(3000, 500),
    "one in ten at random": Limit(600, at_random=0.1),
    "one in ten at random, Retry-After 1": Limit(600, at_random=0.1, retry_after=1),
    "each once, Retry-After 0": Limit(32, each_once=True, retry_after=0),
}


class Server:
    """Grants and refuses; counts both."""

    def __init__(self, limit: Limit) -> None:
        self._limit, self._level, self._at = limit, limit.burst, time.monotonic()
        self._met: set[str] = set()
        self.granted: list[tuple[float, str]] = []
        self.refused = 0

    def grants(self, text: str) -> bool:
        """Whether a request that comes now is answered."""
        limit, now = self._limit, time.monotonic()
        if limit.each_once:
            first = text not in self._met
            self._met.add(text)
            return not first
        if limit.rate is None:
            return random.random() >= limit.at_random
        self._level, self._at = min(limit.burst, self._level + (now - self._at) * limit.rate), now
        if self._level < 1:
            return False
        self._level -= 1
        return True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                size = int(head.partition("content-length:")[2].partition("\r\n")[0])
                text = json.loads(await reader.readexactly(size))["messages"][-1]["content"]
                granted = self.grants(text)
                await asyncio.sleep(LATENCY)
                writer.write(self._answer(text, granted=granted))
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    def _answer(self, text: str, *, granted: bool) -> bytes:
        if granted:
            self.granted.append((time.monotonic(), text))
            usage = {"prompt_tokens": 1, "completion_tokens": 1}
            plain: Any = {"choices": [{"message": {"content": text}}], "usage": usage}
            head = "HTTP/1.1 200 OK\r\n"
        else:
            self.refused += 1
            plain, head = {"error": {"message": "too many requests"}}, "HTTP/1.1 429 Too Many Requests\r\n"
            if self._limit.retry_after is not None:
                head += f"Retry-After: {self._limit.retry_after:g}\r\n"
        body = json.dumps(plain).encode()
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def serve(limit: Limit, pipe: Connection) -> None:
    """The server's process: tells its port, and at the end what it granted and refused."""

    async def main() -> None:
        state = Server(limit)
        server = await asyncio.start_server(state.serve, "127.0.0.1", 0, backlog=512)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(pipe.recv)
        pipe.send((state.granted, state.refused))

    asyncio.run(main())


class Constant(RateFinder):
    """Sends at one pace, whatever is refused."""

    def __init__(self, pace: float) -> None:
        super().__init__(CONNECTIONS)
        self._pace = pace

    def book(self, now: float) -> float:
        """Books the next instant; one that was missed is not made up for."""
        instant = max(now, self._free_at)
        self._free_at = instant + 1.0 / self._pace
        return instant

    def accepted(self, now: float) -> None:
        """Learns nothing."""

    def refused(self, sent: float, retry_after: float | None, now: float) -> None:
        """Learns nothing."""


async def through_gateway(limit: Limit, port: int, run: str = "call") -> None:
    """Asks as a run does."""
    address = f"http://127.0.0.1:{port}/v1"
    settings = read_settings({"model": "m", "model_base_url": address, "max_connections": CONNECTIONS})
    with tempfile.TemporaryDirectory() as folder:
        gateway = open_gateway(settings, Answers.open(Path(folder) / "journal.sqlite"))
        await asyncio.gather(*(gateway.ask(request(n, address, run)) for n in range(limit.calls)))
        await gateway.aclose()


async def without_gateway(limit: Limit, port: int, pace: float) -> None:
    """Asks at a pace, once each, and keeps nothing."""
    backend = OpenAIBackend(f"http://127.0.0.1:{port}/v1")
    await backend.prepare()
    timing, calls = Constant(pace), []
    for number in range(limit.calls):
        now = time.monotonic()
        await asyncio.sleep(timing.book(now) - now)
        calls.append(asyncio.create_task(backend.complete(request(number))))
    await asyncio.gather(*calls, return_exceptions=True)
    await backend.aclose()


async def with_back_off(limit: Limit, port: int) -> None:
    """Workers that each ask, and back off exponentially."""
    backend = OpenAIBackend(f"http://127.0.0.1:{port}/v1")
    waiting = list(range(limit.calls))

    async def work() -> None:
        while waiting:
            await ask_patiently(backend, waiting.pop())

    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    await backend.aclose()


async def ask_patiently(backend: OpenAIBackend, number: int) -> None:
    """One request: half a second after the first refusal, doubled for each further one, or as the server says."""
    for times in range(1000):
        try:
            await backend.complete(request(number))
        except RateLimited as error:
            doubled = 0.5 * 2.0 ** min(times, 6) * random.uniform(0.75, 1.25)
            await asyncio.sleep(error.retry_after or doubled)
        else:
            return


def request(number: int, address: str | None = None, run: str = "call") -> Request:
    """One of the measurement's requests."""
    return Request("m", (Message("user", f"{run} {number}"),), base_url=address)


def measure(limit: Limit, ask: Callable[[Limit, int], None]) -> tuple[list[tuple[float, str]], int]:
    """When answers were given, and to what, and how many requests were refused."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(limit, theirs), daemon=True)
    process.start()
    # So that a server that fails is heard of.
    theirs.close()
    ask(limit, ours.recv())
    ours.send("enough")
    answers: tuple[list[tuple[float, str]], int] = ours.recv()
    process.join()
    return answers


def with_fine_timers(work: Coroutine[Any, Any, None]) -> None:
    """Runs it on an event loop like a session's own."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work)


def as_a_run(limit: Limit, port: int, run: str = "call", start: float = 0.0) -> None:
    """Asks through a gateway, from a wall-clock time on."""
    time.sleep(max(0.0, start - time.time()))
    with_fine_timers(through_gateway(limit, port, run))


def as_a_run_that_knows(pace: float, limit: Limit, port: int) -> None:
    """Asks through a gateway at a constant pace."""
    timing = Constant(pace)
    methods = {name: getattr(timing, name) for name in ("book", "accepted", "refused")}
    with mock.patch.multiple(RateFinder, **methods):
        with_fine_timers(through_gateway(limit, port))


def as_a_client_that_knows(pace: float, limit: Limit, port: int) -> None:
    """Asks at a constant pace."""
    with_fine_timers(without_gateway(limit, port, pace))


def as_workers(limit: Limit, port: int) -> None:
    """Asks with plain back-off."""
    asyncio.run(with_back_off(limit, port))


def as_two_runs(limit: Limit, port: int) -> None:
    """Two runs that begin together, each with half of the calls."""
    half, start = replace(limit, calls=limit.calls // 2), time.time() + 5
    context = multiprocessing.get_context("spawn")
    runs = [context.Process(target=as_a_run, args=(half, port, name, start)) for name in ("one", "other")]
    for run in runs:
        run.start()
    for run in runs:
        run.join()


@functools.cache
def best_pace(rate: float, ask: Callable[[float, Limit, int], None]) -> float:
    """Answers a second that a leaky bucket gives to a client which sends at the best constant pace."""
    best = 0.0
    for pace in (rate * share for share in PACES):
        limit = Limit(int(pace * PACE_SECONDS), rate)
        granted, refused = measure(limit, functools.partial(ask, pace))
        if refused <= MOST_REFUSED * (refused + len(granted)):
            best = max(best, rate_within(granted, 1.0))
    return best


def compare_with_back_off(name: str, limit: Limit) -> None:
    """Prints a row of the table."""
    granted, refused = measure(limit, as_a_run)
    plain, _ = measure(limit, as_workers)
    seconds, others = granted[-1][0] - granted[0][0], plain[-1][0] - plain[0][0]
    share = f"{(limit.calls - limit.burst) / seconds / limit.rate:.0%}" if limit.rate else ""
    part = refused / (refused + limit.calls)
    print(
        f"| {name} | {limit.calls} | {seconds:.1f} | {others:.1f} | {share} | {part:.1%} | "
        f"{' | '.join(beside_the_best(limit, granted))} |",
        flush=True,
    )


def beside_the_best(limit: Limit, granted: list[tuple[float, str]]) -> list[str]:
    """Answers a second once the rate was found, and those of clients that know it, for a leaky bucket."""
    if limit.rate is None or limit.burst > 1:
        return [""] * 3
    found = rate_within(granted, UNCOUNTED)
    best = [best_pace(limit.rate, ask) for ask in (as_a_run_that_knows, as_a_client_that_knows)]
    return [f"{found:.1f}", *(f"{rate:.1f} ({found / rate:.0%})" if rate else "" for rate in best)]


def rate_within(granted: list[tuple[float, str]], uncounted: float) -> float:
    """Answers a second, but for the first seconds, and for the last few, which wait while nothing else is asked."""
    begin, end = granted[0][0] + uncounted, granted[int(0.98 * len(granted))][0]
    return sum(begin < at <= end for at, _ in granted) / (end - begin)


def compare_two(name: str, limit: Limit) -> None:
    """Prints a row of the table of two runs."""
    granted, refused = measure(limit, as_two_runs)
    times = {run: [at for at, text in granted if text.startswith(run)] for run in ("one", "other")}
    begin, end = granted[0][0] + UNCOUNTED, min(max(answers) for answers in times.values())
    counts = [sum(begin < at <= end for at in answers) for answers in times.values()]
    print(
        f"| {name} | {counts[0]} | {counts[1]} | {max(counts) / max(1, min(counts)):.2f} | "
        f"{sum(counts) / (end - begin):.1f} | {refused / (refused + len(granted)):.1%} |",
        flush=True,
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    servers = f"one of: {'; '.join(LIMITS)}. Default: all"
    parser.add_argument("server", nargs="*", help=servers)
    parser.add_argument("--two", action="store_true", help="two runs at a time")
    options = parser.parse_args()
    for name in options.server:
        if name not in LIMITS:
            parser.error(f"no server {name!r}: {servers}")
    if options.two:
        print("| server | one run | the other | ratio | a second | refused |\n|---|--:|--:|--:|--:|--:|")
    else:
        print(
            "| server | calls | seconds | plain back-off | of the rate | refused | a second, once found "
            "| a run that knows | a client that knows |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
        )
    for name in options.server or LIMITS:
        (compare_two if options.two else compare_with_back_off)(name, LIMITS[name])


if __name__ == "__main__":
    main()
