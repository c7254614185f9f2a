"""IMDb's build beside the straightforward one, turn by turn: time, memory, and whether they ask the same.

    python perf/head_to_tail_dumps.py imdb DIR --scale 2000000
    python perf/head_to_tail_build.py DIR --runs 5

Peak memory is that of the process, as the system counts it. Ratios are of wall times of one turn; on a
machine that others use too, only these hold, and their median is what to quote.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = """
import argparse, sys
from evalsuite.builders.head_to_tail import run_build
from evalsuite.core.option_values import ARGUMENTS
parser = argparse.ArgumentParser()
ARGUMENTS[run_build](parser)
sys.exit(run_build(parser.parse_args()))
"""
REFERENCE = str(Path(__file__).with_name("head_to_tail_reference.py"))


def measured(name: str, command: list[str]) -> float:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{name} ended with {process.returncode}")
    processor = usage.ru_utime + usage.ru_stime
    print(f"{name}: {wall:.1f} s, processor {processor:.1f} s, peak {usage.ru_maxrss / 1024:.0f} MiB", flush=True)
    return wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.json", Path(folder) / "theirs.json"
        for _ in range(args.runs):
            command = [sys.executable, "-c", BUILD, "imdb", "--from", str(args.folder), "--to", str(ours)]
            quick = measured("build", command)
            slow = measured("reference", [sys.executable, REFERENCE, str(args.folder), str(theirs)])
            ratios.append(quick / slow)
            same = json.loads(ours.read_text("utf-8")) == json.loads(theirs.read_text("utf-8"))
            print(f"ratio {ratios[-1]:.3f}; the questions are {'the same' if same else 'NOT THE SAME'}", flush=True)
    print(f"MEDIAN ratio of {len(ratios)} turns: {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
