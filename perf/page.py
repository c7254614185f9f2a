"""How fast report.html is: writing it, its first rows, a search, memory. Needs chromium and playwright.

    python perf/page.py FOLDER --cases 10000 --kilobytes 20     # makes a run there, if there is none
    python perf/page.py FOLDER --cases 100000 --kilobytes 0.5

Opening and searching are timed by turns in fresh browsers, the median of three is printed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

from evalsuite.decisions.verdict import make_verdict
from evalsuite.output.page.write import PAGE, summarise_benchmarks, write_page
from evalsuite.output.reports.report import build_report
from evalsuite.results.run_folders import RECORDS, RunFolder
from evalsuite.results.runs import load_run

ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
LETTERS = "aaabcdeeefghiiklmnooprsttuvwy"


def make_run(folder: Path, cases: int, kilobytes: float) -> None:
    """Writes records of made-up words, in the shape of a chat."""
    rng = random.Random(0)
    words = ["".join(rng.choices(LETTERS, k=rng.randint(2, 9))) for _ in range(4000)]

    def text(size: float) -> str:
        return " ".join(rng.choices(words, k=max(1, int(size / 6.5))))

    folder.mkdir(parents=True)
    info = {"version": 1, "model": "made up", "seconds": 1.0, "settings": {"gate": ["alpha.exact_match >= 0.5"]}}
    (folder / "run.json").write_text(json.dumps(info))
    with (folder / RECORDS).open("w") as stream:
        for number in range(cases):
            name, right = ("alpha", "beta")[number % 2], float(rng.random() < 0.7)
            asked, answer = text(kilobytes * 450), text(kilobytes * 450)
            record = {
                "benchmark": name,
                "case": f"cases/test_{name}.py::test_{name}[s{number:06}]",
                "sample": f"s{number:06}",
                "epoch": 1,
                "model": "made up",
                "outcome": "passed" if right else "failed",
                "scores": {"exact_match": right, "token_f1": rng.random()},
                "tags": {"region": ("eu", "asia", "africa")[number % 3]},
                "input": asked[:200],
                "target": text(30),
                "usage": {"calls": 1, "prompt_tokens": 9, "completion_tokens": 9, "cost": 0.0},
                "transcript": {
                    "answer": answer[:200],
                    "messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}],
                    "reasoning": "",
                    "events": [],
                    "facts": {},
                },
            }
            stream.write(json.dumps(record, separators=(",", ":")) + "\n")


def write(folder: Path) -> None:
    run = load_run(RunFolder(folder))
    verdict = make_verdict(run)
    sections = build_report(run, verdict)
    wall, cpu = time.perf_counter(), time.process_time()
    write_page(run, verdict, summarise_benchmarks(run), sections, None, folder)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    beside = sum(file.stat().st_size for file in (folder / "page").glob("*.js"))
    size = (folder / RECORDS).stat().st_size
    print(f"written in {wall:.2f} s, {cpu:.2f} s CPU; records {size >> 20} MiB, chunks {beside >> 20} MiB")


def look(folder: Path, query: str) -> dict[str, float]:
    """Opens the page in a fresh browser, searches twice, and looks at memory."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(ARGUMENTS))
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        started = time.perf_counter()
        page.goto(f"{(folder / PAGE).absolute().as_uri()}#cases")
        page.wait_for_selector(".line.row")
        times = {"first rows": time.perf_counter() - started}
        page.wait_for_timeout(3000)  # as long as somebody looks at the list before searching
        for name, words in (("first search", query), ("second search", query[::-1]), ("common word", "s0")):
            times[name] = page.evaluate(
                "async words => { const from = performance.now(); await change({ q: words });"
                " return (performance.now() - from) / 1000; }",
                words,
            )
        times["filter and sort"] = page.evaluate(
            "async () => { await change({ q: '' }); const from = performance.now();"
            " await change({ benchmark: 'alpha', sort: '-score:token_f1' });"
            " return (performance.now() - from) / 1000; }"
        )
        times["MiB of the page's process"] = renderer_memory() / 2**20
        browser.close()
    return times


def renderer_memory() -> int:
    """Bytes that the largest renderer holds for itself."""
    largest = 0
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"--type=renderer" in status.read_bytes():
                lines = (status.parent / "smaps_rollup").read_text().splitlines()
                private = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
                largest = max(largest, private * 1024)
        except OSError:
            continue
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--kilobytes", type=float, default=20.0)
    options: Any = parser.parse_args()
    if not (options.folder / RECORDS).is_file():
        make_run(options.folder, options.cases, options.kilobytes)
    write(options.folder)
    looks = [look(options.folder, "zebra quagga") for _ in range(3)]
    for name in looks[0]:
        print(f"{name}: {statistics.median(one[name] for one in looks):.2f}")


if __name__ == "__main__":
    main()
