"""The section of a benchmark that brings none of its own: its metrics, over all cases and by each tag."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from evalsuite.reporting.judges import judge_blocks
from evalsuite.reporting.section import Cell, Chart, Column, Passage, Section, Series, Table
from evalsuite.results.guarded_metric import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.results.estimate import Estimate
    from evalsuite.results.tally import RunView, Tally

    DerivedMetric = Callable[[Tally], Estimate | None]

EMPTY: Mapping[str, DerivedMetric] = MappingProxyType({})
MOST_VALUES = 20
"""A tag with more values than this is no group but a name."""


def generic_section(
    title: str, name: str, runs: Sequence[RunView], derived: Mapping[str, DerivedMetric] = EMPTY
) -> Section:
    """Every metric with its interval; rows are runs, or, of a single run, the values of each tag.

    Of judges that left their ballots it tells biases and agreement as well.

    Args:
        title: heading.
        name: of the benchmark; it begins the names of pictures.
        runs: that ran it.
        derived: metrics that are no mean over cases, by name.
    """
    metrics = list(dict.fromkeys(metric for run in runs for metric in run.tally.metrics()))
    columns = [Column("run"), Column("cases", "count"), *(Column(metric, "number", 3) for metric in metrics)]
    overall = Table(
        "",
        [*columns, *(Column(metric, "number", 3) for metric in derived)],
        [
            [run.label, *_cells(run.tally, metrics), *(measure(run.tally) for measure in derived.values())]
            for run in runs
        ],
    )
    blocks: list[Table | Chart | Passage] = [overall, *_failures(derived)]
    if len(runs) == 1:
        for tag in _tags(runs[0].tally):
            groups = runs[0].tally.groups(tag)
            rows = [[value, *_cells(cases, metrics)] for value, cases in groups.items()]
            blocks.append(Table(f"By {tag}", [Column(tag), *columns[1:]], rows))
            if metrics and len(groups) > 1:
                blocks.append(_chart(name, tag, metrics, groups))
    return Section(title, [*blocks, *judge_blocks(runs)])


def _failures(derived: Mapping[str, DerivedMetric]) -> list[Passage]:
    """A line for each derived metric whose function failed on the cases of the last run."""
    reasons = {name: failure_of(metric) for name, metric in derived.items()}
    return [Passage("", f"{name} is not measured: {why}.") for name, why in reasons.items() if why]


def _cells(cases: Tally, metrics: Sequence[str]) -> list[Cell]:
    return [len(cases), *(cases.estimate(metric) for metric in metrics)]


def _tags(tally: Tally) -> list[str]:
    tags = sorted({tag for row in tally for tag in row.tags})
    return [tag for tag in tags if 1 < len(tally.groups(tag)) <= MOST_VALUES]


def _chart(name: str, tag: str, metrics: Sequence[str], groups: dict[str, Tally]) -> Chart:
    return Chart(
        "bars",
        # It names a file.
        re.sub(r"\W+", "_", f"{name}_by_{tag}"),
        f"{name} by {tag}",
        list(groups),
        [Series(metric, [cases.estimate(metric) for cases in groups.values()]) for metric in metrics[:4]],
        y_title="mean, 95% interval",
    )
