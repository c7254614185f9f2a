"""What has a row of its own in a benchmark's tables: a run, or one mode of it where it has several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.results.tally import RunView, Tally


@dataclass(frozen=True, slots=True)
class LabelledCases:
    """One row: its heading, its cases, and the run that they are of."""

    label: str
    tally: Tally
    view: RunView


def lines_of(view: RunView, *, alone: bool) -> Iterator[LabelledCases]:
    """The lines of a run; `alone` where no other run stands beside it."""
    modes = view.tally.groups("mode")
    if len(modes) < 2:
        yield LabelledCases(view.label, view.tally, view)
        return
    for mode, tally in modes.items():
        yield LabelledCases(mode if alone else f"{view.label}, {mode}", tally, view)
