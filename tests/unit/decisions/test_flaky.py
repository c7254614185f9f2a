"""Flaky cases: the same ask of the same model with both outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.decisions.history import FlakyCase, find_flaky_cases
from evalsuite.output.reports.compare import write_history

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.core.types import Outcome
    from evalsuite.results.runs import Run
    from tests.unit.conftest import Desk


def run(desk: Desk, name: str, *outcomes: Outcome, asked: str = "a", model: str = "gpt-4") -> Run:
    """A run of one sample, an epoch for each outcome."""
    records = [
        desk.record("fr", {}, outcome, epoch=epoch, fingerprints={"input": "i", "prompt": asked})
        for epoch, outcome in enumerate(outcomes, 1)
    ]
    return desk.run(records, name, model=model)


def test_a_flip_between_epochs_or_runs_of_one_model_is_flaky(desk: Desk) -> None:
    assert find_flaky_cases([run(desk, "e", "passed", "failed", "passed")]) == [
        FlakyCase("gpt-4", "capitals", "fr", 2, 1)
    ]
    two = [run(desk, "a", "passed"), run(desk, "b", "failed")]
    assert find_flaky_cases(two) == [FlakyCase("gpt-4", "capitals", "fr", 1, 1)]


def test_another_model_another_prompt_and_an_error_are_no_flip(desk: Desk) -> None:
    first = run(desk, "a", "passed", "error")
    others = [run(desk, "b", "failed", model="gpt-5"), run(desk, "c", "failed", asked="b")]
    assert not find_flaky_cases([first, *others])


def test_the_history_lists_flaky_cases(desk: Desk, tmp_path: Path) -> None:
    runs = [run(desk, "a", "passed"), run(desk, "b", "failed")]
    assert "## Flaky cases" in write_history(runs, [], tmp_path / "history").read_text("utf-8")
