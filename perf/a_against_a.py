"""How often sessions call an equal model worse, and how often they show a loss that they claim to see.

    nice python perf/a_against_a.py                          # 200 comparisons per setting, at -n 0
    nice python perf/a_against_a.py --workers 2 --seed 2

Each comparison has 60 cases in clusters (12 of 5; one of half the cases; sizes by Zipf's law) and up to eight metrics.
A session of pytest holds all comparisons of one model, each as a benchmark, because starting sessions would dominate.
The verdict on each is that of a run with this benchmark alone. Promised: an equal model is called worse by any metric
in at most 2.5% of comparisons, and the loss that one metric claims to see is shown in about 80%.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from evalsuite.decisions.verdict import make_verdict
from evalsuite.results.run_folders import RunFolder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.results.runs import Run

SHAPES = {"equal": [5] * 12, "unequal": [30, *[3] * 10], "Zipf": [20, 10, 7, 5, 4, 3, 3, 2, 2, 2, 1, 1]}
METRICS = (1, 4, 8)
SUITE = """
import os
from evalsuite import Metric, Sample, benchmark, generate

SIZES, TIMES = eval(os.environ["SIZES"]), int(os.environ["TIMES"])

class Bits:
    metrics = {f"m{k}": Metric(range=(0, 1)) for k in range(8)}

    def __call__(self, sample, transcript):
        return {f"m{k}": float(bit) for k, bit in enumerate(transcript.answer)}

def declare(time):
    samples = [
        Sample(id=f"{c}-{n}", input=f"{time} {c} {n}", metadata={"document": str(c)})
        for c, size in enumerate(SIZES) for n in range(size)
    ]

    @benchmark(f"t{time}", samples, solver=generate(), scorers=[Bits()], cluster="document")
    def test(scores):
        assert scores
    return test

globals().update({f"test_{time}": declare(time) for time in range(TIMES)})
"""
MODEL = """
import os, random

def answer(messages):
    time, cluster, _ = messages[-1]["content"].split()
    often = random.Random(f"{os.environ['SEED']} {time} {cluster}")
    now = random.Random(f"{os.environ['SEED']} {os.environ['ROLE']} {messages[-1]['content']}")
    loss = float(os.environ["LOSS"])
    return "".join(str(int(now.random() < often.uniform(0.6, 1.0) - loss)) for _ in range(8))
"""


def write_suite(folder: Path) -> None:
    """Write the suite and the scripted model."""
    (folder / "conftest.py").write_text('pytest_plugins = ["evalsuite.plugin"]\n')
    (folder / "test_bits.py").write_text(SUITE)
    (folder / "scripted.py").write_text(MODEL)


def ask(folder: Path, name: str, workers: int, given: dict[str, str]) -> Run:
    """Ask a scripted model in a session of pytest, and read the run."""
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", f"-n{workers}", f"--run={name}"]
    more = ["--model=function:scripted:answer", "test_bits.py"]
    environment = {**os.environ, "PYTHONPATH": str(folder), "ROLE": name, **given}
    ended = subprocess.run([*command, *more], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(ended.stdout + ended.stderr)
    return load_run(RunFolder(folder / "reports" / name))


def compare(baseline: Run, run: Run, metrics: int) -> Iterator[tuple[bool, float]]:
    """Yield of each comparison whether any metric is worse, and the loss that it claims to see."""
    for name in run.benchmarks:
        gates = [f"{name}.m{k} >= 0" for k in range(metrics)]
        settings = {**run.info["settings"], "gate": gates, "baseline": [baseline.folder.name]}
        alone = replace(run, benchmarks={name: run.benchmarks[name]}, info={**run.info, "settings": settings})
        (against,) = make_verdict(alone, replace(baseline, benchmarks={name: baseline.benchmarks[name]})).against
        yield bool(against.list_regressions()), fmean(one.detectable for _, one, _ in against.found)


def measure(shape: str, times: int, workers: int, seed: int) -> Iterator[tuple[int, float, float, float]]:
    """Yield per number of metrics the share of equal models called worse, the loss to see, and how often it is seen."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder)
        given = {"SIZES": str(SHAPES[shape]), "TIMES": str(times), "SEED": f"{shape} {seed}", "LOSS": "0"}
        baseline, equal = (ask(folder, role, workers, given) for role in ("base", "equal"))
        claims = [claim for _, claim in compare(baseline, equal, 1) if math.isfinite(claim)]
        worse = ask(folder, "worse", workers, given | {"LOSS": str(fmean(claims))})
        for metrics in METRICS:
            red = fmean(found for found, _ in compare(baseline, equal, metrics))
            yield metrics, red, fmean(claims), fmean(found for found, _ in compare(baseline, worse, metrics))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    reach = 2 * math.sqrt(0.025 * 0.975 / options.times)
    print(f"promised: at most 2.5% (by chance up to {0.025 + reach:.1%}) of equal models are called worse")
    highest = 0.0
    for shape in SHAPES:
        for metrics, red, loss, shown in measure(shape, options.times, options.workers, options.seed):
            highest = max(highest, red)
            print(
                f"{shape:<8} {metrics} metrics: equal {red:6.1%}   a loss of {loss:.3f} shown {shown:6.1%}", flush=True
            )
    sys.exit(highest > 0.025 + reach)


if __name__ == "__main__":
    main()
