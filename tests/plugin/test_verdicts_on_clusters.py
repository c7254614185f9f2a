"""Verdicts on clustered cases through sessions; perf/a_against_a.py measures their rates."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "perf" / "a_against_a.py"


@pytest.mark.parametrize("workers", [0, 2])
def test_equal_models_are_rarely_worse_and_a_great_loss_is_shown(tmp_path: Path, workers: int) -> None:
    spec = importlib.util.spec_from_file_location("a_against_a", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    program: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    program.write_suite(tmp_path)
    seed = str(random.random())
    given = {"SIZES": str(program.SHAPES["Zipf"]), "TIMES": "2", "SEED": seed, "LOSS": "0"}
    base, equal = (program.ask(tmp_path, role, workers, given) for role in ("base", "equal"))
    worse = program.ask(tmp_path, "worse", workers, given | {"LOSS": "0.6"})
    assert sum(red for red, _ in program.compare(base, equal, 8)) < 2, seed
    assert all(red for red, _ in program.compare(base, worse, 8)), seed
