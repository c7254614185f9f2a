"""What a case costs as a suite grows: processor time, and peak memory of the controlling process and of a worker.

    python perf/many_cases.py -n 0 --cases 10000 100000
    python perf/many_cases.py -n 8 --cases 10000 100000
    python perf/many_cases.py -n evaluate --cases 4000 20000    # evaluate() in place of pytest
    python perf/many_cases.py -n 2 --cases 6000 --plain         # as many parametrized tests without evalsuite

The cases are `perf/cases`, with a plain function as the model. An empty session of the same shape is taken off.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASES = Path(__file__).with_name("cases")
MODEL = "async def answer(messages, **_):\n    return 'A' + messages[-1]['content'].split()[1]\n"
EVALUATE = (
    "import sys, evalsuite, test_fake; evalsuite.evaluate(test_fake.test_fake, model=sys.argv[1], reports=sys.argv[2])"
)
PLAIN = """
import os, pytest

@pytest.mark.parametrize("n", range(int(os.environ["N"])))
def test_plain(n):
    assert n >= 0
"""
TICKS = os.sysconf("SC_CLK_TCK")


def family(root: int) -> list[int]:
    """A process and all that descend from it."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    members = [root]
    for member in members:
        members += [child for child, parent in parents.items() if parent == member]
    return members


def used(pid: int) -> tuple[float, int] | None:
    """Processor seconds so far and the peak of resident memory in KiB; None for a process that has gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return (int(fields[11]) + int(fields[12])) / TICKS, int(status["VmHWM"].split()[0])
    except (OSError, KeyError):
        return None


def session(cases: int, workers: str, folder: Path, *, plain: bool) -> dict[str, float]:
    """Runs so many cases; gives wall and processor seconds, and MiB of the controller and of the largest worker."""
    (folder / "app.py").write_text(MODEL)
    suite: Path = CASES
    options: tuple[str, ...] = ("--model=function:app:answer", f"--reports={folder / 'reports'}")
    if plain:
        (folder / "test_plain.py").write_text(PLAIN)
        suite, options = folder, ()
    command: tuple[str, ...] = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "-n", workers, f"--rootdir={suite}", "-c", os.devnull, str(suite), *options)  # fmt: skip
    if workers == "evaluate":
        command = (sys.executable, "-c", EVALUATE, "function:app:answer", str(folder / "reports"))
    started, seen = time.perf_counter(), dict[int, tuple[float, int]]()
    paths = os.pathsep.join(filter(None, (str(folder), str(CASES), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"N": str(cases), "PYTHONPATH": paths}
    output = (folder / "out.txt").open("w")
    child = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    while child.poll() is None:
        seen |= {pid: now for pid in family(child.pid) if (now := used(pid))}
        time.sleep(0.5)
    workers_peak = max((peak for pid, (_, peak) in seen.items() if pid != child.pid), default=0)
    if child.returncode != 0:
        print((folder / "out.txt").read_text()[-2000:], f"ended with status {child.returncode}")
    return {
        "wall": time.perf_counter() - started,
        "cpu": sum(cpu for cpu, _ in seen.values()),
        "controller": seen[child.pid][1] / 1024,
        "worker": workers_peak / 1024,
    }


def main() -> None:
    """Prints a line a size, with what a case takes beyond a session of one case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", dest="workers", default="0")
    parser.add_argument("--cases", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    idle: dict[str, float] = {}
    for cases in (1, *options.cases):
        with tempfile.TemporaryDirectory() as folder:
            took = session(cases, options.workers, Path(folder), plain=options.plain)
        idle = idle or took
        ms = {key: 1000 * (took[key] - idle[key]) / cases for key in ("wall", "cpu")}
        kib = {key: 1024 * (took[key] - idle[key]) / cases for key in ("controller", "worker")}
        print(
            f"-n {options.workers} {cases:>7}: {took['wall']:.1f} s wall, {took['cpu']:.1f} s CPU, "
            f"controller {took['controller']:.0f} MiB, worker {took['worker']:.0f} MiB; a case {ms['wall']:.2f} ms "
            f"wall, {ms['cpu']:.2f} ms CPU, {kib['controller']:.1f} + {kib['worker']:.1f} KiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
