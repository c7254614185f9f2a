"""Servers that refuse: a run beside plain back-off, and beside a client that knows the limit.

    python perf/rate_limits.py [--servers N] [--seed SEED] [--tolerate N]

Draws servers at random (tests/unit/gateway/random_servers.py) and asks each through the real gateway in virtual time,
in memory; beside it with one worker per connection, each of which backs off exponentially with full jitter and
honours Retry-After (medians of three runs each); and, where the server has a limit, with a client that sees it. Prints
a row per kind of server, then each server at which a run takes more than SLOWER times as long as plain back-off. Such a
server is measured again with new jitter, because medians of three runs of plain back-off alone differ as much.

The exit status is 1 where a run does not end, loses a call that plain back-off keeps, or is slower than SLOWER in both
measurements at more servers than --tolerate (0). From ENOUGH servers on, it is 1 also where the runs at real limits
miss their bounds. Without --seed the servers are new ones.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import math
import random
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.unit.gateway.random_servers import Drawn, Result, draw, through_gateway, with_knowledge, with_plain_back_off

if TYPE_CHECKING:
    from collections.abc import Sequence

SLOWER = 1.3  # How many times as long as plain back-off a run may take.

OPTIMUM = 1.15
"""How many times as long as with knowledge a run takes at a real limit, in the median."""

ENOUGH = 200
"""Servers from which medians over real limits are bounded, because those of fewer differ too much by chance."""

RUNS, AGAIN = 3, 15
"""Runs in each way whose median counts, and runs at a server that was slower. One run of plain back-off may take 3
times as long as another; medians of three runs differ by more than SLOWER at 1 to 2% of the servers."""


@dataclass(frozen=True, slots=True)
class Row:
    """What three clients got of one server.

    Attributes:
        drawn: the server.
        plain: plain back-off.
        run: the gateway.
        best: seconds of a client that knows the limit; None where there is none.
    """

    drawn: Drawn
    plain: Result
    run: Result
    best: float | None

    @property
    def slower(self) -> float:
        """How many times as long as plain back-off the run took."""
        return 1.0 if self.plain.seconds == math.inf else self.run.seconds / self.plain.seconds

    @property
    def kind(self) -> str:
        """The kind of server, without its numbers."""
        return next((kind for kind in KINDS if kind in self.drawn.kind), self.drawn.kind)


KINDS = (
    "untrue header",
    "at once",
    "bucket",
    "leaky",
    "fixed window",
    "sliding window",
    "tokens",
    "changing",
    "each refused once",
    "refused at random",
    "outage",
)


def measure(seed: str, number: int, first: int = 0, runs: int = RUNS) -> Row:
    """Ask one server in each way, with the jitter of the runs from `first` on."""
    logging.disable(logging.CRITICAL)
    drawn = draw(random.Random(f"{seed} {number}"))
    plain, run = (
        sorted(
            (ask(drawn, number + 1000 * times) for times in range(first, first + runs)),
            key=lambda result: result.seconds,
        )
        for ask in (with_plain_back_off, through_gateway)
    )
    best = with_knowledge(drawn, number) if drawn.real else None
    # A rule is made by a function that no other process could be handed.
    shown = dataclasses.replace(drawn, make=None)  # type: ignore[arg-type]
    return Row(shown, plain[runs // 2], run[runs // 2], best)


def share_refused(row: Row, result: Result) -> float:
    """The share of a client's requests that was refused."""
    return result.refused / (result.refused + row.drawn.calls)


def print_table(rows: Sequence[Row]) -> None:
    """Print a row per kind of server."""
    print(
        "| server | drawn | of plain's time | the worst | of the optimum | refused | refused, plain |\n"
        "|---|--:|--:|--:|--:|--:|--:|"
    )
    for name in (*KINDS, "all"):
        of_kind = [row for row in rows if name in {row.kind, "all"}]
        if not of_kind:
            continue
        slower = [row.slower for row in of_kind]
        best = [row.run.seconds / row.best for row in of_kind if row.best]
        refused, plain = (
            statistics.median(share_refused(row, getattr(row, way)) for row in of_kind) for way in ("run", "plain")
        )
        print(
            f"| {name} | {len(of_kind)} | {statistics.median(slower):.2f} | {max(slower):.2f} | "
            f"{f'{statistics.median(best):.2f}' if best else ''} | {refused:.0%} | {plain:.0%} |"
        )


def find_faults(rows: Sequence[Row]) -> list[str]:
    """Say which bounds are missed."""
    faults = [f"did not end: {row.drawn}" for row in rows if row.run.seconds == math.inf]
    faults += [f"lost calls: {row.drawn}" for row in rows if row.run.lost > row.plain.lost]
    real = [row for row in rows if row.best]
    if len(rows) >= ENOUGH:
        optimum = statistics.median(row.run.seconds / row.best for row in real if row.best)
        if optimum > OPTIMUM:
            faults.append(f"{optimum:.2f} times the optimum at real limits, in the median")
        run, plain = (
            statistics.median(share_refused(row, getattr(row, way)) for row in real) for way in ("run", "plain")
        )
        if run > plain:
            faults.append(f"{run:.0%} refused at real limits, where plain back-off has {plain:.0%}")
    return faults


def main() -> int:
    """Print the table and what misses its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--seed", default=str(random.randrange(10**6)))
    parser.add_argument("--tolerate", type=int, default=0)
    options = parser.parse_args()
    print(f"{options.servers} servers, --seed {options.seed}", flush=True)
    with ProcessPoolExecutor() as pool:
        numbers = range(options.servers)
        rows = list(pool.map(measure, repeat(options.seed), numbers, chunksize=4))
        print_table(rows)
        faults = find_faults(rows)
        slow = [number for number in numbers if rows[number].slower > SLOWER]
        print(
            f"slower than {SLOWER} times plain back-off in medians of {RUNS} runs: {len(slow)} of {len(rows)} servers"
        )
        slower = []
        for number, again in zip(
            slow, pool.map(measure, repeat(options.seed), slow, repeat(RUNS), repeat(AGAIN)), strict=False
        ):
            told = f"{again.slower:.2f} times in medians of {AGAIN} runs, {rows[number].slower:.2f} of {RUNS}"
            print(f"server {number}: {told}: {again.drawn}")
            if again.slower > SLOWER:
                slower.append(f"slower than {SLOWER} times plain back-off: server {number}")
        faults += slower if len(slower) > options.tolerate else []
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
