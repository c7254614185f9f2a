"""The judges of a report: every mode of every run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.benchmarks.chat_eval.modes import read_mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.benchmarks.chat_eval.modes import JudgingMode
    from evalsuite.results.tally import RunView, Tally


@dataclass(frozen=True, slots=True)
class JudgeSetting:
    """One mode of one run."""

    name: str
    mode: JudgingMode
    tally: Tally
    view: RunView


def judge_settings(views: Sequence[RunView]) -> list[JudgeSetting]:
    """One for each run and mode, in order."""
    return [
        JudgeSetting(f"{view.label}, {name}", read_mode(name), tally, view)
        for view in views
        for name, tally in view.tally.groups("mode").items()
    ]
