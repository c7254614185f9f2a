"""Holds branch coverage to its floor, and names the files that fell where it is missed.

    coverage json -q -o now.json && python .ci/coverage_floor.py now.json

The floor and the percentage of each file that is not covered whole stand in coverage.json beside this program; with
`--save` they are taken anew from this measurement, the floor SLACK below it: what is covered differs a little from
run to run, as threads and signals fall, and from machine to machine.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

HELD = Path(__file__).with_name("coverage.json")
SLACK = 0.5


def fallen_files(now: dict[str, Any], held: dict[str, Any]) -> list[str]:
    """A line for each file that covers less than it did, the largest loss of lines and branches first."""
    losses = []
    for name, file in now["files"].items():
        summary = file["summary"]
        before, after = held["files"].get(name, 100.0), summary["percent_covered"]
        if after < before - 0.05:
            lines = ranges(file["missing_lines"]) or "none, branches only"
            size = summary["num_statements"] + summary["num_branches"]
            losses.append((size * (before - after), f"{name}: {before:.1f} -> {after:.1f}; lines missed: {lines}"))
    return [line for _, line in sorted(losses, reverse=True)]


def ranges(lines: list[int]) -> str:
    """Ascending numbers as text, neighbours together."""
    groups: list[list[int]] = []
    for line in lines:
        if groups and line == groups[-1][1] + 1:
            groups[-1][1] = line
        else:
            groups.append([line, line])
    return ", ".join(f"{first}-{last}" if first < last else str(first) for first, last in groups)


def measured(now: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a measurement."""
    percent = {name: round(file["summary"]["percent_covered"], 2) for name, file in now["files"].items()}
    return {
        "floor": math.floor((now["totals"]["percent_covered"] - SLACK) * 10) / 10,
        "files": {name: value for name, value in sorted(percent.items()) if value < 100},
    }


def main(arguments: list[str]) -> int:
    """Exit status: 0 where the floor holds, 1 where it is missed."""
    now = json.loads(Path(arguments[0]).read_text("utf-8"))
    if "--save" in arguments:
        HELD.write_text(json.dumps(measured(now), indent=1) + "\n", "utf-8")
    held = json.loads(HELD.read_text("utf-8"))
    total = now["totals"]["percent_covered"]
    print(f"branch coverage {total:.2f}%, floor {held['floor']}%")
    if total >= held["floor"]:
        return 0
    print("Below the floor. These files cover less than they did:")
    print("\n".join(fallen_files(now, held)))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
