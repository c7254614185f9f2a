"""What a program that draws a figure costs: in the sandbox, and in a fresh interpreter, by turns.

    python perf/sandbox_figures.py [PROGRAMS]

The sandbox imports matplotlib and reads the fonts of this machine when the first such program arrives; a fresh
interpreter in an empty home folder does so each time.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time

from evalsuite.sandbox import Sandbox

DRAW = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.savefig('figure.png')"


def fresh() -> float:
    with tempfile.TemporaryDirectory() as home:
        started = time.perf_counter()
        variables = {"PATH": "/usr/bin", "HOME": home, "MPLBACKEND": "agg"}
        subprocess.run([sys.executable, "-c", DRAW], check=True, cwd=home, env=variables, capture_output=True)
        return time.perf_counter() - started


async def main(programs: int) -> None:
    sandbox = Sandbox()
    await sandbox.run("print(1)")
    started = time.perf_counter()
    await sandbox.run(DRAW)
    first = time.perf_counter() - started
    within, apart = [], []
    for _ in range(programs):
        execution = await sandbox.run(DRAW)
        assert len(execution.files) == 1, execution
        within.append(execution.seconds)
        apart.append(fresh())
    await sandbox.aclose()
    sandboxed, plain = statistics.median(within), statistics.median(apart)
    print(f"first figure, with the import: {first:.2f} s")
    print(f"sandbox {sandboxed:.2f} s, fresh interpreter {plain:.2f} s: {plain / sandboxed:.1f} times")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
