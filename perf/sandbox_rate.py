"""How many one-line pandas programs a second: the warm sandbox against a fresh interpreter, side by side.

    python perf/sandbox_rate.py [PROGRAMS]

Everything is pinned to one core at first, so that the figure is a core's: the host's own work, the warm
interpreter's and the programs'. The rounds of both contestants alternate, and the medians are shown, so that
other work on the machine hits both alike; CPU time a program says what is left where the machine is busy.
"""

from __future__ import annotations

import asyncio
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.sandbox import Sandbox, TableFile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TABLE = "city,people,area\n" + "".join(f"city{n},{n * 37 % 101},{n / 7:.3f}\n" for n in range(100))
PROGRAM = "print(df['people'].sum())"
EXPECTED = str(sum(n * 37 % 101 for n in range(100)))
FRESH = f"import sys, pandas as pd; df = pd.read_csv(sys.stdin); {PROGRAM}"
ROUNDS = 5


async def warm(sandbox: Sandbox, count: int, at_once: int) -> None:
    """Runs programs in the sandbox, several at a time."""
    table = TableFile(TABLE.encode())
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            execution = await sandbox.run(PROGRAM, {"df": table})
            assert execution.stdout.strip() == EXPECTED, execution

    await asyncio.gather(*(worker() for _ in range(at_once)))


async def fresh(count: int, at_once: int) -> None:
    """Runs each program in an interpreter of its own, outside any sandbox."""
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", FRESH, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            printed, _ = await process.communicate(TABLE.encode())
            assert printed.decode().strip() == EXPECTED

    await asyncio.gather(*(worker() for _ in range(at_once)))


def cpu_seconds() -> float:
    """CPU time of this process and all below it, those that have ended and were waited for included."""
    parents, used = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)], used[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    family = [os.getpid()]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    return sum(used[pid] for pid in family) / os.sysconf("SC_CLK_TCK")


async def measured(run: Callable[[], Awaitable[None]], count: int) -> tuple[float, float]:
    """Programs a second, and milliseconds of CPU time a program."""
    cpu, clock = cpu_seconds(), time.perf_counter()
    await run()
    seconds = time.perf_counter() - clock
    return count / seconds, 1000 * (cpu_seconds() - cpu) / count


async def compare(count: int, cores: set[int]) -> list[tuple[str, float, float]]:
    """Medians over the rounds, for the sandbox and for fresh interpreters, on these cores alone."""
    os.sched_setaffinity(0, cores)
    at_once, few = len(cores), max(2, count // 40)
    sandbox = Sandbox()
    await warm(sandbox, 10, at_once)
    results: dict[str, list[tuple[float, float]]] = {"warm sandbox": [], "fresh interpreter": []}
    for _ in range(ROUNDS):
        results["warm sandbox"].append(await measured(lambda: warm(sandbox, count, at_once), count))
        results["fresh interpreter"].append(await measured(lambda: fresh(few, at_once), few))
    await sandbox.aclose()
    return [(name, *map(statistics.median, zip(*figures, strict=True))) for name, figures in results.items()]


async def main() -> None:
    """Prints the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    everywhere = os.sched_getaffinity(0)
    print(f"{count} programs, {ROUNDS} rounds, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}\n")
    print("| cores | how | programs a second | CPU ms a program |\n|--:|---|--:|--:|")
    for cores in ({min(everywhere)}, everywhere):
        for name, rate, cpu in await compare(count, cores):
            print(f"| {len(cores)} | {name} | {rate:.1f} | {cpu:.1f} |")


if __name__ == "__main__":
    asyncio.run(main())
