"""Do the scenarios differ, and which capabilities are correlated?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.capabilities import CAPABILITIES, OVERALL
from evalsuite.benchmarks.tool_eyes.episode_rows import by_sample, named
from evalsuite.benchmarks.tool_eyes.published_files import SCENARIOS
from evalsuite.output.reports.section import Chart, Column, Series, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.output.reports.section import Block, Cell
    from evalsuite.output.reports.table_rows import LabelledCases


def anova(lines: Sequence[LabelledCases]) -> Table:
    """Table 3 of the paper: do scenarios differ? Repetitions of a sample count once, with their mean."""
    from evalsuite.stats import welch_anova

    rows: list[list[Cell]] = []
    for line in lines:
        for metric in (OVERALL, *CAPABILITIES):
            groups = [list(by_sample(line.tally.where(scenario=name), metric).values()) for name in SCENARIOS]
            present = [group for group in groups if group]
            if len(present) > 1:
                test = welch_anova(*present)
                rows.append([line.label, named(metric), _or_none(test.statistic), _or_none(test.pvalue)])
    note = (
        "Welch's analysis of variance over the scenarios; a small p means that the model is not equally good "
        "in all of them. A dash: a scenario has fewer than two samples, or all its scores are equal."
    )
    columns = [Column("Run"), Column("Score"), Column("F", "number", 2), Column("p", "number", 4)]
    return Table("Do scenarios differ?", columns, rows, note)


def correlations(line: LabelledCases, number: int) -> list[Block]:
    """Correlations of capabilities within a run; nothing if fewer than two were measured."""
    measured = [name for name in CAPABILITIES if line.tally.values(name)]
    if len(measured) < 2:
        return []
    return _matrix(
        {name: by_sample(line.tally, name) for name in measured},
        f"tool_eyes_correlation_{number}",
        f"Correlation of capabilities: {line.label}",
        "Pearson's r over the samples. A dash: fewer than three samples, or all scores are equal.",
    )


def correlations_over_runs(lines: Sequence[LabelledCases]) -> list[Block]:
    """Figure 6 of the paper: correlations of capabilities over models; needs three runs with a judge."""
    judged = [line for line in lines if line.tally.values(OVERALL)]
    if len(judged) < 3:
        return []
    means = {
        name: {line.label: mean for line in judged if (mean := line.tally.mean(name)) is not None}
        for name in CAPABILITIES
    }
    note = f"Pearson's r over the means of {len(judged)} runs. A dash: all means are equal."
    return _matrix(means, "tool_eyes_correlation_over_runs", "Correlation of capabilities over runs", note)


def _matrix(values: Mapping[str, Mapping[str, float]], chart: str, title: str, note: str) -> list[Block]:
    """Correlations of all pairs of metrics, as a table and a heat map.

    Args:
        values: by metric, the value of each unit.
        chart: name of the picture.
        title: of both.
        note: below the table.
    """
    matrix = {name: [_correlation(values[name], values[other]) for other in values] for name in values}
    labels = [named(name) for name in values]
    columns = [Column(""), *(Column(label, "number", 2) for label in labels)]
    return [
        Table(title, columns, [[named(name), *row] for name, row in matrix.items()], note),
        Chart(
            kind="heatmap",
            name=chart,
            title=title,
            labels=labels,
            series=[Series(named(name), row) for name, row in matrix.items()],
            limits=(-1.0, 1.0),
        ),
    ]


def _correlation(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    from evalsuite.stats import pearson

    shared = [unit for unit in first if unit in second]
    return _or_none(pearson([first[unit] for unit in shared], [second[unit] for unit in shared]).statistic)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
