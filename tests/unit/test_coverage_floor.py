"""The floor under branch coverage that `.ci/run` holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[2] / ".ci" / "coverage_floor.py"


def measurement(**percent: float) -> dict[str, Any]:
    """What `coverage json` writes, as far as it is read."""
    files = {
        f"evalsuite/{name}.py": {
            "summary": {"percent_covered": value, "num_statements": 80, "num_branches": 20},
            "missing_lines": [7, 9, 10, 11] if value < 100 else [],
        }
        for name, value in percent.items()
    }
    return {"files": files, "totals": {"percent_covered": sum(percent.values()) / len(percent)}}


def run(folder: Path, *options: str, **percent: float) -> tuple[int, list[str]]:
    """Exit status and lines, for a program of its own with a floor of its own."""
    program = folder / PROGRAM.name
    program.write_bytes(PROGRAM.read_bytes())
    (folder / "now.json").write_text(json.dumps(measurement(**percent)))
    command = [sys.executable, str(program), str(folder / "now.json"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def test_a_measurement_just_under_what_was_saved_holds(tmp_path: Path) -> None:
    assert run(tmp_path, "--save", a=100.0, b=90.0) == (0, ["branch coverage 95.00%, floor 94.5%"])
    assert run(tmp_path, a=99.2, b=90.0)[0] == 0


def test_a_missed_floor_names_the_files_that_fell_and_no_others(tmp_path: Path) -> None:
    run(tmp_path, "--save", a=100.0, b=90.0, c=80.0)
    status, lines = run(tmp_path, a=96.0, b=90.0, c=60.0, d=100.0)
    assert status == 1
    assert lines[2:] == [
        "evalsuite/c.py: 80.0 -> 60.0; lines missed: 7, 9-11",
        "evalsuite/a.py: 100.0 -> 96.0; lines missed: 7, 9-11",
    ]
