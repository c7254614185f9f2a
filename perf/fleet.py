"""Where one gateway saturates: 1, 10 and 100 hosts before one or several gateways and one rate limit.

    python perf/fleet.py [MS] [--seed N]

Virtual time, no network. Gateways, limiters and rate finders are the real ones; simulated are the hosts, each with 32
calls in flight and no pause between them; the gateway's one core, which each request holds for MS milliseconds
(perf/gateway_service.py measures them); and the model server, whose answers take a second (log-normal, sigma 0.3)
and which refuses what is above its rate, with bursts of a tenth of a second. With several gateways, the hash of a
request decides which one it goes to, as with `--gateway URL1,URL2`. Each tenth request is one that another host makes,
too; it should reach the server once. `told`: each gateway is given its part of the rate (--max-rpm); otherwise each
finds out for itself.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from evalsuite.core.types import Completion, Message, Request, Usage
from evalsuite.gateway.gateway import Gateway
from evalsuite.gateway.limiter import Limiter
from evalsuite.models.protocol import RateLimited
from tests.unit.gateway.conftest import now, run_virtual
from tests.unit.gateway.random_servers import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator

PER_HOST = 32
LATENCY, SPREAD = 1.0, 0.3
WARM, MEASURED = 10.0, 20.0
"""Virtual seconds before the figures are taken, in which rates are found, and in which they are."""


@dataclass(eq=False)
class Server:
    """The model's."""

    rate: float | None
    dice: random.Random
    asked: Counter[str] = field(default_factory=Counter)
    refusals: int = 0
    identity: str = "server"
    metered: bool = True
    connections: int | None = None
    _free_at: float = 0.0

    async def complete(self, request: Request) -> Completion:
        if self.rate:
            # A bucket that holds a tenth of a second's requests.
            self._free_at = max(self._free_at, now() - 0.1)
            if self._free_at > now():
                self.refusals += 1
                raise RateLimited("too many")
            self._free_at += 1 / self.rate
        self.asked[request.messages[0].content] += 1
        await asyncio.sleep(LATENCY * self.dice.lognormvariate(-SPREAD * SPREAD / 2, SPREAD))
        return Completion("fine", usage=Usage(1, 20, 3))

    async def aclose(self) -> None:
        pass


class Service:
    """A gateway on its one core."""

    def __init__(self, server: Server, connections: int, cost: float, rpm: float | None) -> None:
        limiter = Limiter(connections, rpm, clock=now)
        store: Any = MemoryStore()
        backend: Any = server
        self.gateway = Gateway(lambda *_: backend, store, limiter, clock=now)
        self._core, self._cost, self.busy = asyncio.Lock(), cost, 0.0

    async def ask(self, request: Request) -> None:
        # One half to read the request and look for it, one to keep the answer and send it.
        await self._work()
        await self.gateway.ask(request)
        await self._work()

    async def _work(self) -> None:
        async with self._core:
            await asyncio.sleep(self._cost / 2)
        self.busy += self._cost / 2


def prompts(host: int) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        # Each tenth is shared by two hosts.
        yield f"shared {host // 2} {number}" if number % 10 == 0 else f"{host} {number}"


async def fleet(
    hosts: int, services: int, rate: float | None, cost: float, seed: int, *, told: bool
) -> dict[str, float]:
    server = Server(rate, random.Random(seed))
    rpm = 60 * rate / services if rate and told else None
    ways = [Service(server, 100_000, cost, rpm) for _ in range(services)]
    waits: list[float] = []

    async def call(texts: Iterator[str]) -> None:
        while True:
            text = next(texts)
            way = ways[hashlib.sha256(text.encode()).digest()[0] % services]
            began = now()
            await way.ask(Request("m", (Message("user", text),)))
            waits.append(now() - began)

    tasks = []
    for host in range(hosts):
        texts = prompts(host)
        tasks += [asyncio.create_task(call(texts)) for _ in range(PER_HOST)]
    await asyncio.sleep(WARM)
    waits.clear()
    before = (sum(server.asked.values()), server.refusals, sum(way.busy for way in ways))
    await asyncio.sleep(MEASURED)
    asked, refused = sum(server.asked.values()) - before[0], server.refusals - before[1]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "answers a second": len(waits) / MEASURED,
        "p95 s": sorted(waits)[int(0.95 * len(waits))],
        "core": (sum(way.busy for way in ways) - before[2]) / MEASURED / services,
        "refused": refused / max(1, asked + refused),
        "asked twice": sum(times > 1 for times in server.asked.values()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "milliseconds", type=float, nargs="?", default=2.0, help="of a gateway's core for a request (default: 2)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of latencies and refusals (default: 0)")
    options = parser.parse_args()
    if not options.milliseconds > 0:
        parser.error("a request takes more than 0 ms of a core")
    print("| hosts | gateways | server's rate | answers/s | p95 s | core of a gateway | refused | asked twice |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    sizes = ((1, 1), (10, 1), (100, 1), (100, 2), (100, 4), (100, 8))
    for rate, told in ((None, False), (200.0, False), (200.0, True)):
        for hosts, services in sizes if not told else sizes[2:]:
            row = run_virtual(fleet(hosts, services, rate, options.milliseconds / 1000, options.seed, told=told))
            shown = f"{rate:.0f}/s{', told' if told else ''}" if rate else "none"
            print(
                f"| {hosts} | {services} | {shown} | {row['answers a second']:.0f} | {row['p95 s']:.2f} "
                f"| {row['core']:.0%} | {row['refused']:.1%} | {row['asked twice']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
