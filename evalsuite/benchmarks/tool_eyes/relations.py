"""Do scenarios differ, and which capabilities go together?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.capabilities import CAPABILITIES, OVERALL
from evalsuite.benchmarks.tool_eyes.episode_rows import by_sample, named
from evalsuite.benchmarks.tool_eyes.paper_results import SCENARIOS
from evalsuite.reporting.section import Chart, Column, Series, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.reporting.section import Block, Cell
    from evalsuite.reporting.table_rows import LabelledCases


def anova(lines: Sequence[LabelledCases]) -> Table:
    """Table 3 of the paper: do scenarios differ? Repetitions of a sample count once, with their mean."""
    from evalsuite.stats import welch_anova

    rows: list[list[Cell]] = []
    for line in lines:
        for metric in (OVERALL, *CAPABILITIES):
            groups = [list(by_sample(line.tally.where(scenario=name), metric).values()) for name in SCENARIOS]
            present = [group for group in groups if group]
            if len(present) > 1:
                found = welch_anova(*present)
                rows.append([line.label, named(metric), _or_none(found.statistic), _or_none(found.pvalue)])
    note = (
        "Welch's analysis of variance over the scenarios; a small p says that the model does not do equally "
        "well in all of them. A dash: a scenario has fewer than two samples, or all its scores are equal."
    )
    columns = [Column("Run"), Column("Score"), Column("F", "number", 2), Column("p", "number", 4)]
    return Table("Do scenarios differ?", columns, rows, note)


def correlations(line: LabelledCases, number: int) -> list[Block]:
    """Figure 6 of the paper, as a table and a heat map; nothing where fewer than two capabilities stand."""
    measured = [name for name in CAPABILITIES if line.tally.values(name)]
    if len(measured) < 2:
        return []
    scores = {name: by_sample(line.tally, name) for name in measured}
    found = {name: [_correlation(scores[name], scores[other]) for other in measured] for name in measured}
    labels = [named(name) for name in measured]
    title = f"Correlation of capabilities: {line.label}"
    columns = [Column(""), *(Column(label, "number", 2) for label in labels)]
    note = "Pearson's r over the samples. A dash: fewer than three samples, or all scores are equal."
    return [
        Table(title, columns, [[named(name), *values] for name, values in found.items()], note),
        Chart(
            kind="heatmap",
            name=f"tool_eyes_correlation_{number}",
            title=title,
            labels=labels,
            series=[Series(named(name), values) for name, values in found.items()],
            limits=(-1.0, 1.0),
        ),
    ]


def _correlation(one: Mapping[str, float], other: Mapping[str, float]) -> float | None:
    from evalsuite.stats import pearson

    shared = [sample for sample in one if sample in other]
    return _or_none(
        pearson([one[sample] for sample in shared], [other[sample] for sample in shared]).statistic
    )


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
