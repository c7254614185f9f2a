"""Several runs of one benchmark as polygons, for a benchmark whose own section draws no radar of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalsuite.output.reports.section import Chart, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalsuite.output.reports.section import Section
    from evalsuite.results.tally import RunView, Tally

FEWEST, MOST = 3, 12
"""Spokes of a radar that can be read."""


def radar(
    name: str,
    views: Sequence[RunView],
    section: Section,
    primary: str | None,
    falls: Callable[[str], bool] = lambda _metric: False,
) -> Chart | None:
    """One polygon per run; None where the section has a radar already, or nothing has enough spokes.

    Further out is better on every spoke: metrics of which less is better are left out.

    The spokes are the metrics that are shares in every run; where these are too few, the values of the first tag
    that has enough of them, with the mean of the primary metric.
    """
    drawn = any(
        isinstance(block, Chart) and block.kind == "radar" and _is_seen(block) for block in section.blocks
    )
    if drawn:
        return None
    if len(metrics := [metric for metric in _shares(views) if not falls(metric)][:MOST]) >= FEWEST:
        series = [Series(view.label, [view.tally.mean(metric) for metric in metrics]) for view in views]
        return _chart(name, metrics, series, f"{name}: means of its metrics, in percent")
    for tag, values in _groups(views).items():
        if primary and FEWEST <= len(values) <= MOST:
            series = [Series(view.label, _means(view.tally, tag, values, primary)) for view in views]
            return _chart(name, values, series, f"{name}: mean {primary} by {tag}, in percent")
    return None


def _is_seen(chart: Chart) -> bool:
    return any(value is not None for series in chart.series for value in series.values)


def _shares(views: Sequence[RunView]) -> list[str]:
    """Metrics that every run has and whose values lie in [0, 1]; the first where there are many."""
    return [
        metric
        for metric in views[0].tally.metrics()
        if all(view.tally.values(metric) for view in views)
        and all(0 <= value <= 1 for view in views for value in view.tally.values(metric))
    ]


def _groups(views: Sequence[RunView]) -> dict[str, list[str]]:
    """The values of each tag, over all runs."""
    tags = sorted({tag for view in views for row in view.tally for tag in row.tags})
    return {tag: sorted({value for view in views for value in view.tally.groups(tag)}) for tag in tags}


def _means(tally: Tally, tag: str, values: Sequence[str], metric: str) -> list[float | None]:
    groups = tally.groups(tag)
    return [groups[value].mean(metric) if value in groups else None for value in values]


def _chart(name: str, labels: Sequence[str], series: Sequence[Series], title: str) -> Chart:
    # The name is a file's.
    file = re.sub(r"\W+", "_", f"{name}_runs")
    return Chart(
        "radar", file, title, [label.replace("_", " ") for label in labels], series, "percent", (0.0, 1.0)
    )
