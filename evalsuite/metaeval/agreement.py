"""How well metrics agree with people: three correlations, their intervals, and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError
from evalsuite.metrics import tables
from evalsuite.metrics.tables.readings import read_all
from evalsuite.stats.correlation import ClusterDraws, Correlation, correlations, pearson_r

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evalsuite.metaeval.rated_tables import RatedTable

FIRST = "table_score"
"""The metric that the others are compared with."""

TableMetric = Callable[[str, str, tables.Format], float]
METRICS: Mapping[str, TableMetric] = {
    FIRST: lambda one, two, written: tables.table_score(one, two, format=written).value,
    "table_content": lambda one, two, written: tables.table_score(one, two, format=written).content,
    "table_form": lambda one, two, written: tables.table_score(one, two, format=written).form,
    "teds": lambda one, two, written: tables.teds(one, two, format=written),
    "teds_structure": lambda one, two, written: tables.teds_structure(one, two, format=written),
    "grits_content": lambda one, two, written: tables.grits_content(one, two, format=written),
    "grits_topology": lambda one, two, written: tables.grits_topology(one, two, format=written),
    "rms": lambda one, two, written: tables.rms(one, two, format=written),
    "cell_f1": lambda one, two, written: tables.cell_f1(one, two, format=written).cells,
}


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """One metric against people.

    Attributes:
        metric: its name.
        outputs: how many it has a value for.
        pearson: linear correlation.
        spearman: of ranks.
        kendall: tau-b.
        behind: by how much its Pearson correlation is below that of `FIRST`, over the outputs both have; None
            for `FIRST` itself.
    """

    metric: str
    outputs: int
    pearson: Correlation
    spearman: Correlation
    kendall: Correlation
    behind: Correlation | None


def is_readable(rated: RatedTable) -> bool:
    """Tell whether the prediction holds a table in any markup."""
    return bool(read_all(rated.prediction, rated.format))


def measure(rated: Sequence[RatedTable]) -> dict[str, list[float]]:
    """Compute all metrics of all predictions; NaN where a metric has no value."""
    values = {name: [_value(metric, pair) for pair in rated] for name, metric in METRICS.items()}
    others = dict.fromkeys(name for pair in rated for name in pair.others)
    # What a file calls teds may be another implementation's.
    named = {name: f"{name} (file)" if name in values else name for name in others}
    return values | {named[name]: [pair.others.get(name, float("nan")) for pair in rated] for name in others}


def _value(metric: TableMetric, rated: RatedTable) -> float:
    try:
        return metric(rated.prediction, rated.reference, rated.format)
    except ScoringError:
        return float("nan")


def agreements(rated: Sequence[RatedTable], values: Mapping[str, Sequence[float]]) -> list[MetricAgreement]:
    """Correlate each metric with the ratings; outputs for one reference are drawn together."""
    import numpy as np

    human = np.array([pair.human for pair in rated])
    draws = ClusterDraws([pair.reference for pair in rated])
    first = np.array(values[FIRST])
    return [
        _agreement(name, np.array(column), human, draws, None if name == FIRST else first)
        for name, column in values.items()
    ]


def _agreement(
    name: str,
    column: NDArray[Any],
    human: NDArray[Any],
    draws: ClusterDraws,
    first: NDArray[Any] | None,
) -> MetricAgreement:
    import numpy as np

    has = ~np.isnan(column)
    behind = None
    if first is not None:
        behind = draws.interval(
            lambda at: pearson_r(first[at], human[at]) - pearson_r(column[at], human[at]),
            has & ~np.isnan(first),
        )
    pearson, spearman, kendall = correlations(column, human, draws).values()
    return MetricAgreement(name, int(has.sum()), pearson, spearman, kendall, behind)
