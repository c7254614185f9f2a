"""What has a row of its own in the report, and what is read off its cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.reporting.tally import Row, RunView, Tally


@dataclass(frozen=True, slots=True)
class Line:
    """What has a row of its own: a run, or one mode of it where it has several."""

    label: str
    tally: Tally
    view: RunView


def lines_of(view: RunView, *, alone: bool) -> Iterator[Line]:
    """The lines of a run; `alone` where no other run stands beside it."""
    modes = view.tally.groups("mode")
    if len(modes) < 2:
        yield Line(view.label, view.tally, view)
        return
    for mode, tally in modes.items():
        yield Line(mode if alone else f"{view.label}, {mode}", tally, view)


def named(metric: str) -> str:
    """A metric's name as a heading."""
    return metric.replace("_", " ").capitalize()


def episodes(tally: Tally) -> list[Row]:
    """The rows that hold an episode."""
    return [row for row in tally if row.outcome != "error" and "turns" in row.facts]


def by_sample(tally: Tally, metric: str) -> dict[str, float]:
    """The mean over each sample's repetitions."""
    found: dict[str, list[float]] = {}
    for row in tally.scored(metric):
        found.setdefault(row.sample, []).append(row.scores[metric])
    return {sample: sum(values) / len(values) for sample, values in found.items()}
