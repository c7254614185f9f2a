"""Every value of a run's `run.json` and of a record replaced by wrong ones, one at a time: does any command crash?

    python perf/faults/wrong_values.py [EVERY]

`crashed` are commands that end with an exception rather than with a status and, where need be, one message.
With EVERY only each EVERY-th replacement is tried. Ends with status 1 where anything crashed.
"""

from __future__ import annotations

import copy
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.cli import main as evalsuite

if TYPE_CHECKING:
    from collections.abc import Iterator

SUITE = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=str(n), input="Paris", target="Paris", tags={"region": "eu"}) for n in range(3)]

def echo(messages):
    return messages[-1]["content"]

@benchmark("capitals", SAMPLES, solver=generate(max_tokens=8), scorers=[exact_match()])
def test_capitals(scores):
    assert scores["exact_match"] == 1.0
"""
WRONG: tuple[Any, ...] = (None, -1, 1e308, "wrong", [], {}, [None], {"a": []})
COMMANDS = (
    ("report", "r"), ("gate", "r"), ("compare", "base", "r"), ("compare", "r", "base"), ("verify", "r"),
    ("merge", "joined", "r"), ("runs",), ("show", "r", "0"), ("diff", "r", "base"),
)  # fmt: skip


def make_runs(folder: Path) -> None:
    """Two runs of three cases each."""
    (folder / "test_capitals.py").write_text(SUITE)
    for run in ("base", "r"):
        command = [sys.executable, "-m", "pytest", "-q", "-pevalsuite.plugin", f"--run={run}"]
        command += ["--model=function:test_capitals:echo", "--gate=capitals.exact_match >= 0.5"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def replaced(whole: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each place in a JSON value, with each wrong value of another type or meaning."""
    value = whole
    for step in place:
        value = value[step]
    for wrong in WRONG if place else ():
        changed = copy.deepcopy(whole)
        inner = changed
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = wrong
        yield place, changed
    for step in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from replaced(whole, (*place, step))


def crashes(place: tuple[Any, ...]) -> Counter[str]:
    """How often each command ends with an exception."""
    found: Counter[str] = Counter()
    for command in COMMANDS:
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                evalsuite(command)
        except SystemExit:
            continue
        except Exception as error:  # noqa: BLE001 - that is what is counted
            found[command[0]] += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            at = ".".join(map(str, place))
            sys.stderr.write(
                f"{command[0]}: {at}: {type(error).__name__}: {error!s:.100} ({where.filename}:{where.lineno})\n"
            )
    return found


def attack(file: Path, line: int | None, every: int) -> tuple[int, Counter[str]]:
    """Attempts and crashes over all replacements in a file, or in one of its lines."""
    before = file.read_text("utf-8")
    lines = before.splitlines()
    whole = json.loads(before if line is None else lines[line])
    attempts, found = 0, Counter[str]()
    for number, (place, changed) in enumerate(replaced(whole)):
        if number % every:
            continue
        text = json.dumps(changed)
        file.write_text(text if line is None else "\n".join([text, *lines[1:]]) + "\n", "utf-8")
        found += crashes(place)
        attempts += len(COMMANDS)
    file.write_text(before, "utf-8")
    return attempts, found


def main(every: int) -> int:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        make_runs(Path(folder))
        os.environ["NO_COLOR"] = "1"
        run = Path(folder) / "reports" / "r"
        print("| fault | attempts | crashed |\n|---|--:|--:|")
        total = 0
        for name, line in (("run.json", None), ("records.jsonl", 0)):
            attempts, found = attack(run / name, line, every)
            total += found.total()
            print(f"| a wrong value in {name} | {attempts} | {found.total()} |", flush=True)
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
