"""The sealed test of table metrics, which one command opens once per version. The set itself stays shut here."""

from __future__ import annotations

import hashlib
import json
import lzma
import runpy
from pathlib import Path

import pytest

COMMAND = Path(__file__).parents[3] / "perf" / "blind_tables.py"
TABLE = "| name | points |\n|---|---|\n| {} | {} |\n| Bob | 31 |"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rated = [
        {"reference": TABLE.format(name, 12), "format": "markdown", "prediction": prediction, "human": human}
        for name in ("Ann", "Eve", "Kim")
        for prediction, human in (
            (TABLE.format(name, 12), 10),
            (TABLE.format(name, 13), 8),
            (TABLE.format(name, 12).splitlines()[0], 2),
            ("Sorry.", 0),
        )
    ]
    (tmp_path / "blind_tables.json.xz").write_bytes(lzma.compress(json.dumps(rated).encode()))
    (tmp_path / "blind_tables.md").write_text("# Versions\n\n| version |\n|---|\n")
    return tmp_path


def test_a_version_is_scored_on_the_sealed_set_only_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    score = runpy.run_path(str(COMMAND))
    seal = hashlib.sha256((folder / "blind_tables.json.xz").read_bytes()).hexdigest()
    assert score["main"](folder, seal) == 0
    line = (folder / "blind_tables.md").read_text().splitlines()[-1]
    assert line.startswith(f"| {score['VERSION']} | ")
    assert line.split(" | ")[2] == "9"
    assert "unreadable as zeros" in capsys.readouterr().out
    assert score["main"](folder, seal) == 2
    assert "each version is scored once" in capsys.readouterr().err


def test_a_set_with_another_hash_is_not_opened(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    score = runpy.run_path(str(COMMAND))
    assert score["main"](folder, "0" * 64) == 2
    assert "is not the sealed set" in capsys.readouterr().err
    assert score["VERSION"] not in (folder / "blind_tables.md").read_text().split()


def test_the_committed_set_has_the_hash_of_its_seal() -> None:
    packed = COMMAND.with_suffix(".json.xz").read_bytes()
    assert hashlib.sha256(packed).hexdigest() == runpy.run_path(str(COMMAND))["SEAL"]
