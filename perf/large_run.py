"""What `gate`, `report`, `compare` and `merge` cost over large runs: seconds, and peak memory of the process.

    python perf/large_run.py FOLDER [--cases 10000 100000]

Makes the runs in FOLDER where they are missing: for each number of cases two of them, which differ in a case in
ten, and two shards. Records are like a real session's, 1.9 KB each: all scores and fingerprints, a short chat.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SETTINGS = {"gate": ["alpha.exact_match >= 0.5", "beta.token_f1 >= 0.3 @95%"]}
FINGERPRINTS = ("input", "target", "prompt", "requests")


def record(number: int, seed: str) -> dict[str, Any]:
    """One case of made-up words; `seed` decides what the model makes of it."""
    rng = random.Random(f"{seed} {number}" if number % 10 == 0 else number)
    name, right = ("alpha", "beta")[number % 2], float(rng.random() < 0.7)
    asked, answer = "word " * 40, f"answer {rng.random()} " * 10
    own = hashlib.sha256(str(number).encode()).hexdigest()
    digests = {key: own[16 * at : 16 * at + 16] for at, key in enumerate(FINGERPRINTS)}
    tokens = {"prompt_tokens": 40 + number % 30, "completion_tokens": 9 + number % 7}
    usage = {"calls": 1, **tokens, "cost": 1e-5 * (number % 50), "estimated": 0}
    none = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": 0.0, "estimated": 0}
    return {
        "benchmark": name,
        "case": f"cases/test_{name}.py::test_{name}[sample-{number:06}]",
        "sample": f"sample-{number:06}",
        "epoch": 1,
        "model": "made up",
        "outcome": "passed" if right else "failed",
        "error": None if right else "assert 0.0 == 1.0",
        "source": "samples in the test file",
        "scores": {"exact_match": right, "token_f1": round(rng.random(), 6) if right else 0.0},
        "tags": {"region": ("eu", "asia", "africa")[number % 3], "length": ("short", "long")[number % 2]},
        "facts": {"finish_reason": "stop"},
        "fingerprints": {**digests, "model": "0" * 16, "scorers": "1" * 16, "params": "2" * 16},
        "input": asked,
        "target": answer[:20],
        "usage": usage,
        "judge_usage": none,
        "simulator_usage": none,
        "seconds": rng.random() + 1.0,
        "solving_seconds": rng.random(),
        "transcript": {
            "answer": answer,
            "messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}],
            "reasoning": "",
            "events": [],
            "facts": {},
        },
    }  # fmt: skip


def make_run(folder: Path, numbers: range, seed: str, shard: str | None = None) -> None:
    """Writes a run of these cases, unless it is there."""
    if (folder / "run.json").is_file():
        return
    folder.mkdir(parents=True)
    in_order = sorted(numbers, key=lambda number: (number % 2, number))  # As a session exports records: by case id.
    lines = (json.dumps(record(number, seed), separators=(",", ":")) for number in in_order)
    with (folder / "records.jsonl").open("w") as stream:
        stream.writelines(f"{line}\n" for line in lines)
    settings = SETTINGS | ({"shard": shard} if shard else {})
    share = {"range": [0.0, 1.0], "better": "higher"}
    metrics = {name: {"exact_match": share, "token_f1": share} for name in ("alpha", "beta")}
    begun = {"started": "2026-01-01T00:00:00", "seconds": 1.0, "metrics": metrics}
    info = {"version": 1, "model": "made up", "settings": settings, **begun}
    (folder / "run.json").write_text(json.dumps(info))


def measured(*command: str) -> str:
    """Runs a command of evalsuite; its processor and wall time, and the most memory that it had at once."""
    started = time.perf_counter()
    child = subprocess.Popen((sys.executable, "-m", "evalsuite", *command), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - started
    code = os.waitstatus_to_exitcode(status)
    if code not in {0, 10, 11}:
        raise SystemExit(f"{' '.join(command)} ended with status {code}")
    return f"{usage.ru_utime + usage.ru_stime:.1f} s CPU, {wall:.1f} s wall, {usage.ru_maxrss >> 10} MiB"


def main() -> None:
    """Makes the runs and prints a line a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, nargs="+", default=[10_000, 100_000])
    options = parser.parse_args()
    for cases in options.cases:
        folder: Path = options.folder / str(cases)
        make_run(folder / "base", range(cases), "base")
        make_run(folder / "other", range(cases), "other")
        for shard in (1, 2):
            make_run(folder / f"shard-{shard}", range(shard - 1, cases, 2), "base", f"{shard}/2")
        for earlier_output in ("merged", "compare-base-other", "report"):
            shutil.rmtree(folder / earlier_output, ignore_errors=True)
        where = f"--reports={folder}"
        for command in (
            ("gate", "base"), ("gate", "other", "--baseline", "base"), ("report", "other"),
            ("report", "base", "--to", f"{folder}/report"), ("compare", "base", "other"),
            ("runs", "merge", "shard-1", "shard-2", "--to", "merged"),
        ):  # fmt: skip
            print(f"{cases:>7} {' '.join(command)}: {measured(*command, where)}", flush=True)


if __name__ == "__main__":
    main()
