"""The results of measuring table metrics, as tables and a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.output.reports.section import Chart, Column, Series, Table
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.metaeval.agreement import MetricAgreement
    from evalsuite.metaeval.table_grid import GridLine
    from evalsuite.output.reports.section import Cell
    from evalsuite.stats.correlation import Correlation

CORRELATIONS = ("Pearson", "Spearman", "Kendall")
FAILURES_SHOWN = 3


def agreement_table(agreements: Sequence[MetricAgreement], title: str) -> Table:
    """Tabulate the metrics, the best agreement first."""
    columns = [
        Column("Metric"),
        Column("Outputs", "count"),
        *(Column(name, "number", 3) for name in CORRELATIONS),
        Column("Behind table_score", "number", 3),
    ]
    rows: list[list[Cell]] = [
        [line.metric, line.outputs, *map(_estimate, (line.pearson, line.spearman, line.kendall, line.behind))]
        for line in _rank(agreements)
    ]
    note = (
        "Correlation with the mean human rating; intervals of 95% by bootstrap, drawing references with all their "
        "outputs. Behind: the difference in Pearson correlation to table_score on the same outputs and draws."
    )
    return Table(title, columns, rows, note)


def agreement_chart(agreements: Sequence[MetricAgreement], title: str) -> Chart:
    """Pearson and Spearman correlation, a pair of bars a metric."""
    ranked = _rank(agreements)
    series = [
        Series("Pearson", [_estimate(line.pearson) for line in ranked]),
        Series("Spearman", [_estimate(line.spearman) for line in ranked]),
    ]
    return Chart(
        "bars", "metaeval_tables", title, [line.metric for line in ranked], series, y_title="Correlation"
    )


def grid_table(lines: Sequence[GridLine]) -> Table:
    """Tabulate the changes."""
    columns = [
        Column("Change"), Column("The score"), Column("Tables", "count"), Column("Mean", "number", 3),
        Column("Fails", "count"), Column("Where"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            line.change,
            line.rule,
            line.tables,
            line.mean,
            len(line.failures),
            ", ".join(line.failures[:FAILURES_SHOWN])
            + (" ..." if len(line.failures) > FAILURES_SHOWN else ""),
        ]
        for line in lines
    ]
    return Table("Known changes", columns, rows)


def _rank(agreements: Sequence[MetricAgreement]) -> list[MetricAgreement]:
    return sorted(agreements, key=lambda line: (math.isnan(line.pearson.value), -line.pearson.value))


def _estimate(correlation: Correlation | None) -> Estimate | None:
    if correlation is None or math.isnan(correlation.value):
        return None
    if math.isnan(correlation.low):
        return Estimate(correlation.value)
    return Estimate(correlation.value, correlation.low, correlation.high)
