"""The section of a benchmark that brings none of its own: its metrics, over all cases and by each tag."""

from __future__ import annotations

import re
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from evalsuite.output.reports.judges import judge_blocks
from evalsuite.output.reports.section import Cell, Chart, Column, Passage, Section, Series, Table
from evalsuite.results.runs import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalsuite.results.tally import Estimate, RunView, Tally

    DerivedMetric = Callable[[Tally], Estimate | None]

EMPTY: Mapping[str, DerivedMetric] = MappingProxyType({})
MOST_VALUES = 20
"""A tag with more values than this is no group but a name."""

MOST_CHARTED = 4
"""Metrics in one chart."""


def generic_section(
    title: str,
    name: str,
    runs: Sequence[RunView],
    derived: Mapping[str, DerivedMetric] = EMPTY,
    primary: str | None = None,
) -> Section:
    """Every metric with its interval; rows are runs or, for a single run, the values of each tag as well.

    Where judges left their ballots, their biases and agreement follow.

    Args:
        title: heading.
        name: of the benchmark; the names of its pictures begin with it.
        runs: that ran it.
        derived: metrics that are no mean over cases, by name.
        primary: the metric that matters most, which comes first; None keeps the order of the scores.
    """
    metrics = _primary_first(dict.fromkeys(metric for run in runs for metric in run.tally.metrics()), primary)
    blocks: list[Table | Chart | Passage] = [
        _overall(runs, metrics, derived, first=primary),
        *_failures(derived),
    ]
    if len(runs) == 1:
        blocks += _by_tags(name, runs[0], metrics)
    return Section(title, [*blocks, *judge_blocks(runs)])


def _primary_first(metrics: Iterable[str], primary: str | None) -> list[str]:
    return sorted(metrics, key=lambda metric: metric != primary)


def _overall(
    runs: Sequence[RunView],
    metrics: Sequence[str],
    derived: Mapping[str, DerivedMetric],
    *,
    first: str | None,
) -> Table:
    measures: dict[str, Callable[[RunView], Estimate | None]] = {
        metric: partial(_estimate, metric) for metric in metrics
    }
    measures |= {metric: partial(_derived, measure) for metric, measure in derived.items()}
    ordered = _primary_first(measures, first)
    columns = [Column("run"), Column("cases", "count"), *(Column(metric, "number", 3) for metric in ordered)]
    rows = [[run.label, len(run.tally), *(measures[metric](run) for metric in ordered)] for run in runs]
    return Table("", columns, rows)


def _estimate(metric: str, run: RunView) -> Estimate | None:
    return run.estimate(metric, run.tally)


def _derived(measure: DerivedMetric, run: RunView) -> Estimate | None:
    return measure(run.tally)


def _by_tags(name: str, run: RunView, metrics: Sequence[str]) -> Iterator[Table | Chart]:
    columns = [Column("cases", "count"), *(Column(metric, "number", 3) for metric in metrics)]
    for tag in _tags(run.tally):
        groups = run.tally.groups(tag)
        rows: list[list[Cell]] = [
            [value, len(cases), *(run.estimate(metric, cases) for metric in metrics)]
            for value, cases in groups.items()
        ]
        yield Table(f"By {tag}", [Column(tag), *columns], rows)
        if metrics and len(groups) > 1:
            yield _chart(name, tag, metrics, run, groups)


def _failures(derived: Mapping[str, DerivedMetric]) -> list[Passage]:
    """A line for each derived metric whose function failed on the cases of the last run."""
    reasons = {name: failure_of(metric) for name, metric in derived.items()}
    return [Passage("", f"{name} is not measured: {why}.") for name, why in reasons.items() if why]


def _tags(tally: Tally) -> list[str]:
    # What the tag `cluster` holds is shared by cases for the sake of their intervals; it groups nothing.
    tags = sorted({tag for row in tally for tag in row.tags} - {"cluster"})
    return [tag for tag in tags if 1 < len(tally.groups(tag)) <= MOST_VALUES]


def _chart(name: str, tag: str, metrics: Sequence[str], run: RunView, groups: Mapping[str, Tally]) -> Chart:
    """The first metric, and others beside it where all of them are shares: one axis has one scale."""
    shares = [metric for metric in metrics if _is_share(run, metric)][:MOST_CHARTED]
    drawn = shares if metrics[0] in shares else metrics[:1]
    return Chart(
        "bars",
        # It names a file.
        re.sub(r"\W+", "_", f"{name}_by_{tag}"),
        f"{name}: {', '.join(drawn)} by {tag}",
        list(groups),
        [Series(metric, [run.estimate(metric, cases) for cases in groups.values()]) for metric in drawn],
        limits=(0.0, 1.0) if drawn == shares else None,
        y_title="mean from 0 to 1, 95% interval" if drawn == shares else "mean, 95% interval",
    )


def _is_share(run: RunView, metric: str) -> bool:
    """Whether a metric is declared to lie from 0 to 1 or, without a declaration, does."""
    declared = run.declared.get(metric)
    if declared is not None and declared.range is not None:
        return declared.range == (0.0, 1.0)
    return all(0 <= value <= 1 for value in run.tally.values(metric))
