"""Servers that refuse for being asked too often: how close to their rate a run comes, beside plain back-off.

    python perf/rate_limits.py [--two] [SERVER ...]

Each server stands in a process of its own on loopback and answers after 50 ms. A run with 32 connections asks it
through the gateway; beside it stand 32 workers that each back off exponentially. Columns: seconds until the last
answer of either, the share of the server's rate that the run got (the burst not counted), and the share of its
requests that were refused.

With `--two`, two runs in processes of their own ask one server at the same time. Columns: answers of either until the
first of them is done, the first seconds not counted; their ratio; answers a second; and the share that was refused.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.gateway.fine_timers import new_loop
from evalsuite.gateway.opening import open_gateway
from evalsuite.given_settings import read_settings
from evalsuite.journal.answers import Answers
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.protocol import RateLimited
from evalsuite.types import Message, Request

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

LATENCY = 0.05
CONNECTIONS = 32
UNCOUNTED = 3.0
"""Seconds at the beginning of two runs that do not count."""


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


async def through_gateway(limit: Limit, port: int, run: str = "call") -> None:
    """Asks as a run does."""
    address = f"http://127.0.0.1:{port}/v1"
    settings = read_settings({"model": "m", "model_base_url": address, "max_connections": CONNECTIONS})
    with tempfile.TemporaryDirectory() as folder:
        gateway = open_gateway(settings, Answers.open(Path(folder) / "journal.sqlite"))
        await asyncio.gather(*(gateway.ask(request(n, address, run)) for n in range(limit.calls)))
        await gateway.aclose()


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
    ask(limit, ours.recv())
    ours.send("enough")
    answers: tuple[list[tuple[float, str]], int] = ours.recv()
    process.join()
    return answers


def as_a_run(limit: Limit, port: int, run: str = "call", start: float = 0.0) -> None:
    """Asks through a gateway, from a wall-clock time on."""
    time.sleep(max(0.0, start - time.time()))
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(through_gateway(limit, port, run))


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


def compare_with_back_off(name: str, limit: Limit) -> None:
    """Prints a row of the table."""
    granted, refused = measure(limit, as_a_run)
    plain, _ = measure(limit, as_workers)
    seconds, others = granted[-1][0] - granted[0][0], plain[-1][0] - plain[0][0]
    share = f"{(limit.calls - limit.burst) / seconds / limit.rate:.0%}" if limit.rate else ""
    part = refused / (refused + limit.calls)
    print(f"| {name} | {limit.calls} | {seconds:.1f} | {others:.1f} | {share} | {part:.1%} |", flush=True)


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


def main(names: list[str]) -> None:
    """Prints the table."""
    two = "--two" in names
    names = [name for name in names if name != "--two"]
    if two:
        print("| server | one run | the other | ratio | a second | refused |\n|---|--:|--:|--:|--:|--:|")
    else:
        print(
            "| server | calls | seconds | plain back-off | of the rate | refused |\n|---|--:|--:|--:|--:|--:|"
        )
    for name in names or LIMITS:
        (compare_two if two else compare_with_back_off)(name, LIMITS[name])


if __name__ == "__main__":
    main(sys.argv[1:])
